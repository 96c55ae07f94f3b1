'use client'

import Link from 'next/link'
import { actionWords, type Shared } from '../../lib/analysis.ts'
import type { RunError } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { wordsFor } from '../../lib/words.ts'
import { Icon } from '../ui/icon.tsx'

/** What came of it, and what can be done next. */
export function Ending(props: { threadId: string; view: ThreadView; shared: Shared }) {
  const { threadId, view, shared } = props
  const turn = view.outline?.turns.at(-1)
  const { problem, link } = view
  if (!turn || turn.status === 'waiting') return null
  const failed = turn.status === 'failed'
  return (
    <section className="outcome" aria-label="Outcome" data-failed={failed || undefined}>
      <p>
        <Icon name={failed ? 'alert' : turn.status === 'cancelled' ? 'close' : 'check'} />{' '}
        {outcomeWords(turn.status, turn.error, shared)}
      </p>
      {problem && (
        <p className="refused" role="alert">
          {wordsFor(problem.error)}
        </p>
      )}
      <p className="actions">
        {failed && (
          <button type="button" className="button primary" onClick={() => link?.retry(turn.runId)}>
            Try again
          </button>
        )}
        <Link className="button" href="/analysis">
          Analyse another account
        </Link>
        <Link
          className="button plain"
          href={`/t/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(turn.runId)}`}
          prefetch={false}
        >
          Look into the run
        </Link>
      </p>
    </section>
  )
}

function outcomeWords(
  status: string,
  error: RunError | null,
  { approval, recommendations, errors = [] }: Shared,
): string {
  if (status === 'cancelled') return 'The analysis was stopped. What was found is kept.'
  if (status === 'failed') {
    const told = errors.some(({ critical }) => critical) // at its step, in its own words
    return told || !error ? 'The analysis could not be finished.' : wordsFor(error)
  }
  const first = recommendations?.[0]
  if (!approval || !first) return 'The analysis is done.'
  const action = actionWords(first.action_type)
  if (approval.status === 'approved') return `The analysis is done. Approved: ${action}.`
  if (approval.status === 'timeout')
    return `The analysis is done. Nobody decided in time: ${action} is not approved.`
  return `The analysis is done. Not approved: ${action}.`
}
