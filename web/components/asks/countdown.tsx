'use client'

import { useEffect, useState } from 'react'
import type { AskKind, AtTimeout } from '../../lib/shapes.ts'
import { until } from '../../lib/words.ts'
import { Icon } from '../ui/icon.tsx'

const then: Record<AtTimeout, string> = {
  reject: 'it is rejected',
  approve: 'it is approved by the policy',
  stop: 'the run is stopped',
}

/** What a rejection means where there is nothing to reject. */
const unanswered: Partial<Record<AskKind, string>> = {
  in_doubt: 'it is skipped',
  input: 'it goes on without an answer',
}

/** How long there is to decide, and what happens then. Not read aloud: it changes all the time. */
export function Countdown(props: { kind: AskKind; deadline: string; atTimeout: AtTimeout }) {
  const { kind, deadline, atTimeout } = props
  const left = useLeft(Date.parse(deadline))
  const next = atTimeout === 'reject' ? (unanswered[kind] ?? then.reject) : then[atTimeout]
  return (
    <p className="countdown" data-soon={left < 60_000 || undefined}>
      <Icon name="clock" />
      {left > 0 ? `${until(left)} left, then ${next}.` : `The time is over: ${next}.`}
    </p>
  )
}

function useLeft(deadline: number): number {
  const [now, setNow] = useState(() => Date.now())
  const left = Math.max(0, deadline - now)
  const pace = left > 120_000 ? 10_000 : 500
  useEffect(() => {
    if (left === 0) return
    const timer = setInterval(() => setNow(Date.now()), pace)
    return () => clearInterval(timer)
  }, [left === 0, pace])
  return left
}
