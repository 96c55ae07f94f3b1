'use client'

import type { ThreadView } from '../../lib/use-link.ts'
import { brief } from '../../lib/words.ts'

/** Why a message cannot be sent as it is, and what can be done instead. */
export function Blocked(props: {
  view: ThreadView
  waiting: boolean
  onQueue: () => void
  onInstead: () => void
}) {
  const { view, waiting, onQueue, onInstead } = props
  const answer = () => {
    const question = document.querySelector<HTMLElement>('.ask-card h2')
    question?.scrollIntoView({ block: 'center' })
    question?.focus()
  }
  return (
    <div className="blocked">
      <p>
        {waiting
          ? `This chat waits for a decision: ${brief(view.outline?.asks[0]?.title ?? '', 80)}`
          : 'An answer is being written.'}
      </p>
      <p className="actions">
        {waiting ? (
          <button type="button" className="button" onClick={answer}>
            Show the question
          </button>
        ) : (
          <button type="button" className="button" onClick={onQueue}>
            Send after it
          </button>
        )}
        <button type="button" className="button" onClick={onInstead}>
          {waiting ? 'Drop it and send' : 'Stop it and send'}
        </button>
      </p>
    </div>
  )
}
