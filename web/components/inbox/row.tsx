'use client'

import Link from 'next/link'
import { useEffect, useState } from 'react'
import type { Approval } from '../../lib/shapes.ts'
import { moment, until } from '../../lib/words.ts'

const kinds: Record<Approval['kind'], string> = {
  approval: 'Approval',
  budget: 'Budget',
  input: 'Question',
  in_doubt: 'In doubt',
}

export function Row(props: { approval: Approval; chosen: boolean; onChoose: () => void }) {
  const { approval, chosen, onChoose } = props
  const { kind, state, title, agent, owner, chat_id, deadline, raised_at, edited } = approval
  const left = useLeft(Date.parse(deadline))
  return (
    <div className="row-line">
      <button type="button" className="row" aria-expanded={chosen} onClick={onChoose}>
        <span className="badge attention">{kinds[kind]}</span>
        {edited && <span className="badge">edited</span>}
        <span className="title">{title}</span>
        <span className="quiet">
          {agent}
          {chat_id === undefined && `, for ${owner}`} · {moment(raised_at)}
          {state === 'pending' && ` · ${until(left)} left`}
        </span>
      </button>
      {chat_id !== undefined && (
        <Link
          className="button plain"
          href={`/t/${encodeURIComponent(chat_id)}#${approval.id}`}
          prefetch={false}
        >
          Chat<span className="visually-hidden"> of {title}</span>
        </Link>
      )}
    </div>
  )
}

function useLeft(deadline: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  return Math.max(0, deadline - now)
}
