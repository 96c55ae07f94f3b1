import { answer, type Decider, type Decision, type Named } from './asks.ts'
import { pendingAsks } from './branch.ts'
import { type Actor, type Draft, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { GovernorWatch } from './governor.ts'
import { keyUnused, type RequestKey, usedKey } from './keys.ts'
import type { AskRecord, ThreadState } from './state.ts'
import { isLost } from './thread.ts'

export interface BudgetChange {
  isHitlEnabled?: boolean
  actionLimit?: number
  /** `null` lifts the limit. */
  tokenLimit?: number | null
  moneyLimit?: number | null
  /** Begins to count anew, also where nothing asks for it. */
  reset?: boolean
}

/** The question for more budget that a thread waits with. */
export function budgetAskOf(state: ThreadState): AskRecord | undefined {
  const run = state.runs.get(state.active ?? '')
  return run && pendingAsks(state, run).find(({ ask }) => ask.kind === 'budget')
}

/**
 * Sets a thread's budget. Where the thread waits for more, this is the answer: the question is settled
 * and the budget set in one transition, whichever way it came. The same key again changes nothing.
 */
export async function setBudget(
  decider: Decider,
  change: BudgetChange,
  named: Named,
  { actor, key }: { actor: Actor; key?: RequestKey | undefined },
): Promise<void> {
  const { thread } = decider
  const { isHitlEnabled, actionLimit, tokenLimit, moneyLimit, reset } = change
  const decision: Decision = {
    ...(actionLimit !== undefined && { newLimit: actionLimit }),
    ...(isHitlEnabled !== undefined && { newStatus: isHitlEnabled }),
    ...(tokenLimit !== undefined && { newTokenLimit: tokenLimit }),
    ...(moneyLimit !== undefined && { newMoneyLimit: moneyLimit }),
    ...(reset && { approved: true }),
  }
  const { reset: _, ...set } = change
  const body = { ...set, ...(reset && { resetCounter: true }) }
  const watch = new GovernorWatch(thread)
  for (;;) {
    if (usedKey(thread.state, key)) return
    const open = budgetAskOf(thread.state)
    if (open) {
      const { askId } = open.ask
      const decisions = [{ askId, decision, named }]
      const settled = await answer(decider, { decisions, ...(key && { key }) }, actor)
      if (settled.has(askId) || usedKey(thread.state, key)) return
      continue // somebody else answered it: then this sets what they set
    }
    try {
      const guard = { expect: [...watch.expect(), ...keyUnused(key)] }
      const drafts: Draft[] = [draft('governor.set', body)]
      if (key) drafts.push(draft('key.used', { ...key, ref: 'governor' }))
      await thread.commit(drafts, { guard, actor })
      return
    } catch (error) {
      if (!isRuntimeError(error, 'journal_conflict') || isLost(error)) throw error
      await watch.again(error)
    }
  }
}
