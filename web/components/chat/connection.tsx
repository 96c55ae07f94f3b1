'use client'

import type { Phase } from '../../lib/link/state.ts'

const words: Record<Phase, string> = {
  loading: 'Loading',
  live: 'Live',
  reconnecting: 'Reconnecting',
  'catching-up': 'Catching up',
  gone: 'Deleted',
  nowhere: 'No such chat',
}

/** Whether what is shown is what is. */
export function Connection({ phase }: { phase: Phase }) {
  return (
    <p className="connection" data-phase={phase}>
      <span className="dot" aria-hidden="true" />
      {words[phase]}
    </p>
  )
}
