import { useState } from 'react'

/** What the server puts into an interrupt that is an approval. */
export interface Approval {
  id: string
  message?: string
  metadata?: { tool?: string; input?: Record<string, unknown> }
}

export interface Decision {
  approved: boolean
  reason?: string
  editedArgs?: Record<string, unknown>
}

/** One question: the sentence, the arguments to look at and to change, and the two answers. */
export function ApprovalCard({
  approval: { message, metadata },
  decide,
}: {
  approval: Approval
  decide: (decision: Decision) => void
}) {
  const input = metadata?.input ?? {}
  const [edits, setEdits] = useState<Record<string, string>>({})
  const [decided, setDecided] = useState<'approved' | 'rejected'>()
  const changed = Object.entries(edits).some(([name, value]) => value !== input[name])
  const answer = (decision: Decision) => {
    setDecided(decision.approved ? 'approved' : 'rejected')
    decide(decision)
  }
  return (
    <section className="card" aria-label={message}>
      <h2>{message}</h2>
      <p>
        Tool <code>{metadata?.tool}</code>
      </p>
      {Object.entries(input).map(([name, value]) => (
        <label key={name}>
          {name}
          <input
            value={edits[name] ?? String(value)}
            onChange={(event) => setEdits({ ...edits, [name]: event.target.value })}
          />
        </label>
      ))}
      {decided ? (
        <p role="status">You {decided} this.</p>
      ) : (
        <p className="answers">
          <button
            type="button"
            onClick={() =>
              answer({ approved: true, ...(changed && { editedArgs: { ...input, ...edits } }) })
            }
          >
            {changed ? 'Approve with changes' : 'Approve'}
          </button>
          <button
            type="button"
            onClick={() => answer({ approved: false, reason: 'Not on this page' })}
          >
            Reject
          </button>
        </p>
      )}
    </section>
  )
}
