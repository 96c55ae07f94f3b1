'use client'

import { useEffect, useState } from 'react'
import { type BudgetChange, getBudget, setBudget } from '../../lib/api.ts'
import type { Budget, Measure } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'
import { useAnnounce } from '../shell/announcer.tsx'
import { LimitsForm } from './limits-form.tsx'

/** The budget of a chat, to read and to set. Where the chat waits for more, setting it is the answer. */
export function ChatLimits({ threadId, onSet }: { threadId: string; onSet: () => void }) {
  const [budget, setRead] = useState<Budget>()
  const [problem, setProblem] = useState<string>()
  const announce = useAnnounce()
  useEffect(() => {
    getBudget(threadId).then(setRead, (error) => setProblem(errorWords(error)))
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
  if (!budget) return <p className="quiet">{problem ?? 'Reading…'}</p>
  const { isHitlEnabled, actionLimit, actionsUsed, total, tokens, money } = budget
  return (
    <LimitsForm
      limits={{
        on: isHitlEnabled,
        calls: String(actionLimit),
        tokens: String(tokens.limit ?? ''),
        money: String(money.limit ?? ''),
      }}
      problem={problem}
      empty="empty: no limit"
      onSet={change}
      note={
        <>
          <p className="note">
            {actionsUsed} used since the budget was given, {total} in all. Questions about tools are
            asked either way.
          </p>
          <Used name="Tokens" measure={tokens} />
          <Used name="Money" measure={money} />
        </>
      }
      action={
        isHitlEnabled &&
        actionsUsed > 0 && (
          <button type="button" className="button" onClick={() => change({ reset: true })}>
            Begin at 0 again
          </button>
        )
      }
    />
  )
}

/** Calls that a chat gets when nothing else is said. */
const usual = 10

/** The budget that a chat is to begin with: the first message takes it along. */
export function PlannedLimits(props: {
  planned: BudgetChange | undefined
  onPlan: (change: BudgetChange) => void
}) {
  const { planned, onPlan } = props
  const announce = useAnnounce()
  return (
    <LimitsForm
      limits={{
        on: planned?.isHitlEnabled ?? true,
        calls: String(planned?.actionLimit ?? usual),
        tokens: String(planned?.tokenLimit ?? ''),
        money: String(planned?.moneyLimit ?? ''),
      }}
      problem={undefined}
      empty="may be left out"
      onSet={(change) => {
        announce('The budget is set with your first message.')
        const { tokenLimit, moneyLimit, ...calls } = change
        // What is left empty here is the server's to say.
        onPlan({ ...calls, ...(tokenLimit && { tokenLimit }), ...(moneyLimit && { moneyLimit }) })
      }}
      note={
        <p className="note">
          It is set with your first message. Unless you set one, the server’s own holds.
        </p>
      }
      action={null}
    />
  )
}

function Used({ name, measure }: { name: string; measure: Measure }) {
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
