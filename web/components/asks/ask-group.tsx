'use client'

import type { Link } from '../../lib/link/link.ts'
import type { Outline } from '../../lib/shapes.ts'
import { AskCard } from './ask-card.tsx'

/** All that one step of the run waits for. What is decided of it stays decided while the rest is open. */
export function AskGroup(props: {
  outline: Outline
  link: Link | undefined
  /** Questions for more budget too: where no message shows them. */
  budget?: boolean
}) {
  const { outline, link, budget = false } = props
  const { asks, decided } = outline
  const cards = asks.filter(({ kind }) => kind !== 'client_tool' && (budget || kind !== 'budget'))
  const steps = new Set(cards.map(({ step }) => step))
  const done = decided.filter(({ step, kind }) => steps.has(step) && kind !== 'budget').length
  const all = done + cards.length
  return (
    <div className="ask-group">
      {all > 1 && cards.length > 0 && (
        <p className="progress">
          <progress value={done} max={all} aria-label="Decided" /> {done} of {all} decided. It goes
          on when all are.
        </p>
      )}
      {cards.map(({ id, title, audience }) => (
        <AskCard
          key={id}
          id={id}
          title={title}
          audience={audience}
          onDecided={() => link?.refresh()}
        />
      ))}
    </div>
  )
}
