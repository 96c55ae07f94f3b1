'use client'

import type { Face } from '../../lib/analysis.ts'
import type { AskSummary } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { AskGroup } from '../asks/ask-group.tsx'
import { Settled } from '../asks/settled.tsx'
import { faceWords, Stop } from './station.tsx'

/** The last stop: a person decides. Whatever else the agents ask is asked here too. */
export function Decision(props: { view: ThreadView; face: Face; asks: readonly AskSummary[] }) {
  const { view, face, asks } = props
  const { outline, link } = view
  const run = outline?.turns.at(-1)?.runId
  const decided = outline?.decided.filter(({ runId }) => runId === run) ?? []
  return (
    <Stop
      title="Your decision"
      face={face}
      words={face === 'stopped' ? 'not approved' : faceWords[face]}
    >
      {decided.length === 0 && asks.length === 0 && (
        <p className="quiet">
          {face === 'skipped'
            ? 'Nothing was put up for approval.'
            : 'You decide on the first recommendation.'}
        </p>
      )}
      {decided.map((ask) => (
        <Settled key={ask.id} ask={ask} />
      ))}
      {outline && asks.length > 0 && <AskGroup outline={outline} link={link} budget />}
    </Stop>
  )
}
