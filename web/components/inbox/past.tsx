'use client'

import Link from 'next/link'
import { useEffect, useState } from 'react'
import { getApproval } from '../../lib/api.ts'
import type { WholeApproval } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'
import { Facts } from '../asks/facts.tsx'

const originalOf = ({ original_input, original_card, card }: WholeApproval) => ({
  input: original_input,
  card: original_card ?? card,
})

/** A settled request: what was approved, and the original request if the approver changed it. */
export function Past({ id }: { id: string }) {
  const [approval, setApproval] = useState<WholeApproval>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    const gone = new AbortController()
    getApproval(id, gone.signal).then(
      setApproval,
      (error) => !gone.signal.aborted && setProblem(errorWords(error)),
    )
    return () => gone.abort()
  }, [id])
  if (problem !== undefined) return <p className="refused">{problem}</p>
  if (!approval) return <p className="quiet">Reading…</p>
  const { decision, chat_id, interaction_id } = approval
  return (
    <div className="past">
      {decision?.reason && <p>“{decision.reason}”</p>}
      {approval.edited && (
        <p className="edited">
          <span className="badge">edited</span> The approver changed the arguments. This is what was
          approved.
        </p>
      )}
      <Facts approval={approval} />
      {approval.edited && approval.original_card && (
        <details className="original">
          <summary>Original request</summary>
          <p>{approval.original_card.title}</p>
          <Facts approval={{ ...approval, ...originalOf(approval) }} />
        </details>
      )}
      {chat_id !== undefined && (
        <p className="actions">
          <Link className="button" href={`/t/${encodeURIComponent(chat_id)}`} prefetch={false}>
            Open the chat
          </Link>
          {interaction_id !== undefined && (
            <Link
              className="button"
              href={`/t/${encodeURIComponent(chat_id)}/runs/${encodeURIComponent(interaction_id)}`}
              prefetch={false}
            >
              Look into the run
            </Link>
          )}
        </p>
      )}
    </div>
  )
}
