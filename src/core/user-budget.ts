import { type Draft, draft } from './entries.ts'
import { creation } from './start.ts'
import type { ThreadState } from './state.ts'
import type { ThreadName } from './store.ts'

/** No client can say this: ids that clients choose are printable. */
const mark = '\u0001calls '

/**
 * Calls that belong to no thread are counted on one that no list shows: one for each user and day, so
 * that a budget is new every day and no such thread grows for long.
 */
export const userBudgetId = (now: number): string =>
  mark + new Date(now).toISOString().slice(0, '2026-01-01'.length)

export const isUserBudget = (clientId: string): boolean => clientId.startsWith(mark)

/** What makes the thread, or sets its limit to what the operator says now. */
export function userBudget(
  { seq, governor }: ThreadState,
  { name, agent, limit }: { name: ThreadName; agent: string; limit: number },
): Draft[] {
  const budget = { isHitlEnabled: true, actionLimit: limit }
  if (seq === 0) return creation({ name, agent, governor: budget })
  return governor.actionLimit === limit ? [] : [draft('governor.set', budget)]
}
