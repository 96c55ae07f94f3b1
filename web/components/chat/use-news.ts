'use client'

import { useEffect, useRef } from 'react'
import { isRunning } from '../../lib/link/state.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { wordsFor } from '../../lib/words.ts'
import { useAnnounce } from '../shell/announcer.tsx'

/** Says in whole sentences what has come of things: who does not see the page hears it once. */
export function useNews(view: ThreadView, finished = 'Answer finished.'): void {
  const announce = useAnnounce()
  const running = isRunning(view)
  const { phase, outline, stopping, problem } = view
  const waiting = outline?.status === 'waiting'
  const was = useRef(phase)
  /** Something was going on: how it ends is told, once it is sure. */
  const owed = useRef(false)
  const lost = useRef(false)
  useEffect(() => {
    const before = was.current
    was.current = phase
    if (before !== phase) {
      if (phase === 'reconnecting') announce('The connection is lost. Trying again.')
      // Catching up with a change is no news: only what was said to be lost is said to be back.
      if (phase === 'live' && lost.current) announce('Connected again.')
      if (phase === 'reconnecting') lost.current = true
      if (phase === 'live') lost.current = false
    }
    if (running || waiting) owed.current = true // what is asked is told as it comes
    if (running || waiting || phase !== 'live' || !owed.current) return
    owed.current = false
    if (problem) return // nothing came of it, and that is told below
    const last = outline?.turns.at(-1)
    if (last?.status === 'cancelled') announce('Stopped.')
    else if (last?.error) announce(`The answer failed. ${wordsFor(last.error)}`)
    else announce(finished)
  }, [running, waiting, phase, outline, problem, announce, finished])
  const asks = outline?.asks
  const told = useRef(new Set<string>())
  useEffect(() => {
    const fresh = asks?.filter(({ id }) => !told.current.has(id)) ?? []
    for (const { id } of fresh) told.current.add(id)
    const more = fresh.length > 1 ? ` And ${fresh.length - 1} more.` : ''
    if (fresh[0]) announce(`Needs your decision: ${fresh[0].title}${more}`)
  }, [asks, announce])
  useEffect(() => {
    if (stopping) announce('Stopping.')
  }, [stopping, announce])
  useEffect(() => {
    if (problem) announce(wordsFor(problem.error))
  }, [problem, announce])
}
