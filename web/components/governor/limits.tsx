'use client'

import { type FormEvent, useEffect, useId, useState } from 'react'
import { type BudgetChange, getBudget, setBudget } from '../../lib/api.ts'
import type { Budget, Measure } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'
import { useAnnounce } from '../shell/announcer.tsx'

/** The budget of a chat, to read and to set. Where the chat waits for more, setting it is the answer. */
export function Limits({ threadId, onSet }: { threadId: string; onSet: () => void }) {
  const [budget, setRead] = useState<Budget>()
  const [on, setOn] = useState(false)
  const [limit, setLimit] = useState('')
  const [problem, setProblem] = useState<string>()
  const announce = useAnnounce()
  const id = useId()
  useEffect(() => {
    getBudget(threadId).then(
      (read) => {
        setRead(read)
        setOn(read.isHitlEnabled)
        setLimit(String(read.actionLimit))
      },
      (error) => setProblem(errorWords(error)),
    )
  }, [threadId])
  const change = async (wish: BudgetChange) => {
    try {
      await setBudget(threadId, wish)
      announce('The budget is set.')
      onSet()
    } catch (error) {
      setProblem(errorWords(error))
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const calls = Number(limit)
    if (!/^\d+$/.test(limit.trim()) || calls > 1_000_000)
      return setProblem('The limit is a whole number up to 1,000,000.')
    void change({ isHitlEnabled: on, actionLimit: calls })
  }
  return (
    <form className="meter-panel" onSubmit={submit} noValidate>
      <h2>Budget of this chat</h2>
      {!budget && problem === undefined && <p className="quiet">Reading…</p>}
      {budget && (
        <>
          <label className="check">
            <input type="checkbox" checked={on} onChange={(event) => setOn(event.target.checked)} />
            Ask me when the limit is reached
          </label>
          <label htmlFor={id}>Model calls before I am asked</label>
          <input
            id={id}
            inputMode="numeric"
            disabled={!on}
            value={limit}
            onChange={(event) => setLimit(event.target.value)}
          />
          <p className="note">
            {budget.actionsUsed} used since the budget was given, {budget.total} in all. Questions
            about tools are asked either way.
          </p>
          <Amount name="Tokens" measure={budget.tokens} />
          <Amount name="Money" measure={budget.money} />
        </>
      )}
      {problem !== undefined && (
        <p className="refused" role="alert">
          {problem}
        </p>
      )}
      <p className="actions">
        {budget && on && budget.actionsUsed > 0 && (
          <button type="button" className="button" onClick={() => change({ reset: true })}>
            Begin at 0 again
          </button>
        )}
        <button type="submit" className="button primary" disabled={!budget}>
          Set
        </button>
      </p>
    </form>
  )
}

function Amount({ name, measure }: { name: string; measure: Measure }) {
  const { limit, used, total, hard, why } = measure
  if (limit === null && total === 0) return null
  const shown = (value: number) => value.toLocaleString([], { maximumFractionDigits: 4 })
  return (
    <p className="note">
      {name}: {limit === null ? shown(total) : `${shown(used)} of ${shown(limit)}`}
      {limit !== null && hard === false && ` (not exact: ${why})`}
    </p>
  )
}
