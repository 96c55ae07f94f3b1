'use client'

import { useId, useState } from 'react'
import { answerAsk, type Decision } from '../../lib/api.ts'
import type { Link } from '../../lib/link/link.ts'
import type { AskSummary } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'

const choices: Partial<Record<AskSummary['kind'], readonly (readonly [string, Decision])[]>> = {
  approval: [
    ['Approve', { approved: true }],
    ['Reject', { approved: false }],
  ],
  in_doubt: [
    ['It happened', { outcome: 'happened' }],
    ['It did not: do it', { outcome: 'did_not' }],
    ['Skip it', { outcome: 'skip' }],
  ],
}

/** What the agent asks of a person before it goes on. */
export function Question(props: { threadId: string; ask: AskSummary; link: Link | undefined }) {
  const { threadId, ask, link } = props
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const id = useId()
  const answer = async (decision: Decision) => {
    setBusy(true)
    try {
      await answerAsk(threadId, ask.runId, ask.id, decision)
      link?.refresh()
    } catch (error) {
      setProblem(errorWords(error))
      setBusy(false)
      link?.refresh()
    }
  }
  return (
    <section className="question" aria-labelledby={id}>
      <h2 id={id}>{ask.title}</h2>
      {problem && <p role="alert">{problem}</p>}
      <p className="actions">
        {choices[ask.kind]?.map(([words, decision], i) => (
          <button
            key={words}
            type="button"
            className={i === 0 ? 'button primary' : 'button'}
            disabled={busy}
            onClick={() => answer(decision)}
          >
            {words}
          </button>
        ))}
        <button type="button" className="button" disabled={busy} onClick={() => link?.stop()}>
          Stop here
        </button>
      </p>
    </section>
  )
}
