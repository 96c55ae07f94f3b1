'use client'

import Link from 'next/link'
import { useState } from 'react'
import { actionWords, type Shared } from '../../lib/analysis.ts'
import { retryRun } from '../../lib/api.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { errorWords, wordsFor } from '../../lib/words.ts'
import { Icon } from '../ui/icon.tsx'

/** What came of it, and what can be done next. */
export function Ending(props: { threadId: string; view: ThreadView; shared: Shared }) {
  const { threadId, view, shared } = props
  const turn = view.outline?.turns.at(-1)
  const [problem, setProblem] = useState<string>()
  const [busy, setBusy] = useState(false)
  if (!turn || turn.status === 'waiting') return null
  const again = async () => {
    setBusy(true)
    await retryRun(threadId, turn.runId).catch((error) => setProblem(errorWords(error)))
    setBusy(false)
    view.link?.refresh()
  }
  const failed = turn.status === 'failed'
  return (
    <section className="outcome" aria-label="Outcome" data-failed={failed || undefined}>
      <p>
        <Icon name={failed ? 'alert' : turn.status === 'cancelled' ? 'close' : 'check'} />{' '}
        {outcomeWords(turn.status, turn.error, shared)}
      </p>
      {problem !== undefined && (
        <p className="refused" role="alert">
          {problem}
        </p>
      )}
      <p className="actions">
        {failed && (
          <button type="button" className="button primary" disabled={busy} onClick={again}>
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
  error: { code: string; message: string } | null,
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
