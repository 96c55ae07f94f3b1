'use client'

import { useEffect, useState } from 'react'
import type { ThreadView } from '../../lib/use-link.ts'
import { callsOf, type ShownTurn, standingOf } from './turns.ts'

/** That something goes on, in words, while nothing of it can be seen yet. */
export function Working({ turn, view }: { turn: ShownTurn; view: ThreadView }) {
  const { stopping, outline, retry, phase } = view
  const wait = useSecondsUntil(retry?.at)
  const part = turn.parts.at(-1)
  const writes = part?.role === 'assistant' && part.content !== '' && callsOf(part).length === 0
  if (phase === 'reconnecting')
    return <p className="working">The connection is lost. Trying again…</p>
  if (stopping || outline?.status === 'cancelling')
    return <p className="working">Stopping… what has begun is brought to its end.</p>
  if (retry)
    return (
      <p className="working">
        The model did not answer: {retry.message} Trying again{wait > 0 ? ` in ${wait} s` : ''}…
      </p>
    )
  if (writes) return null
  const doubted = part && callsOf(part).find(({ id }) => standingOf(view, id)?.state === 'unknown')
  if (doubted)
    return (
      <p className="working">
        The outcome of {doubted.function.name.replace(/_+/g, ' ')} is not known: it ran for too
        long, or the server stopped while it ran. Once it cannot be running any more, you are asked.
      </p>
    )
  return (
    <p className="working dots">
      <span className="visually-hidden">Working</span>
      <span aria-hidden="true">●</span>
      <span aria-hidden="true">●</span>
      <span aria-hidden="true">●</span>
    </p>
  )
}

function useSecondsUntil(at: number | undefined): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (at === undefined) return
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [at])
  return at === undefined ? 0 : Math.max(0, Math.ceil((at - now) / 1_000))
}
