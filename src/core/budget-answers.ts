import type { Decision, Named } from './asks.ts'
import type { Body } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { AskRecord, Governor } from './state.ts'

/** What a person may choose when a budget is spent, besides a limit of their own. */
export const budgetOptions = ['more', 'unlimited', 'cheaper', 'summarise', 'stop'] as const
export type BudgetOption = (typeof budgetOptions)[number]

/** The most calls that can be granted at once. */
export const mostCalls = 1_000_000

export const isStopped = ({ stop, approved, option }: Decision): boolean =>
  stop === true || option === 'stop' || approved === false

/** What an answer to a spent budget sets. Refuses one that would ask again at once, or says nothing. */
export function budgetFrom(
  said: Decision,
  { ask, runId }: AskRecord,
  governor: Governor,
  named: Named,
): Body<'governor.set'> {
  const { option, newLimit, newStatus, newTokenLimit, newMoneyLimit } = said
  const field = named.limit ?? `${named.value}.newLimit`
  const asked = field.endsWith('newLimit')
  /** As the caller calls it: where a budget is set, not answered for, it has other names. */
  const wordFor = (name: string) => (asked ? name : (settings[name] ?? name))
  const beside = (name: string) => field.replace(/\w+$/, wordFor(name))
  const limits = [newLimit, newStatus, newTokenLimit, newMoneyLimit]
  const silent = limits.every((one) => one === undefined)
  if (silent && option === undefined && said.approved === undefined)
    throw refused(
      field,
      asked
        ? 'is missing. Send newLimit, newStatus, an option, or stop.'
        : 'is missing. Send a limit, or reset: true.',
    )
  const input = (ask.input ?? {}) as AskedBudget
  const offered = input.options?.some((one) => one.option === option)
  if (option !== undefined && !offered)
    throw refused(beside('option'), `${option} is not among the options of this question.`)
  if (option === 'summarise') {
    if (silent) return { last: runId }
    throw refused(field, 'leave it out: a summary is one call, and the budget stays as it is.')
  }
  const on = newStatus ?? (option === 'unlimited' ? false : governor.isHitlEnabled)
  const limit = newLimit ?? governor.actionLimit
  const tokens = newTokenLimit === undefined ? governor.tokens.limit : newTokenLimit
  const money = newMoneyLimit === undefined ? governor.money.limit : newMoneyLimit
  if (on && limit === 0)
    throw refused(
      field,
      `0 would ask again at once. Send 1 or more, or ${wordFor('newStatus')} false.`,
    )
  const short = (most: number | null, needs: number | undefined) =>
    on && most !== null && most < Math.max(needs ?? 0, Number.MIN_VALUE)
  const needs = {
    tokens: input.needs?.tokens ?? input.tokens?.needs,
    money: input.needs?.money ?? input.money?.needs,
  }
  if (short(tokens, needs.tokens))
    throw refused(beside('newTokenLimit'), `the call may use ${needs.tokens} tokens.`)
  if (short(money, needs.money))
    throw refused(beside('newMoneyLimit'), `the call may cost ${needs.money}.`)
  return {
    resetCounter: true,
    ...(newLimit !== undefined && { actionLimit: newLimit }),
    ...(on !== governor.isHitlEnabled && { isHitlEnabled: on }),
    ...(newStatus !== undefined && { isHitlEnabled: newStatus }),
    ...(newTokenLimit !== undefined && { tokenLimit: newTokenLimit }),
    ...(newMoneyLimit !== undefined && { moneyLimit: newMoneyLimit }),
    ...(option === 'cheaper' && { cheaper: runId }),
  }
}

/** What the same are called where a budget is set. */
const settings: Record<string, string> = {
  newStatus: 'isHitlEnabled',
  newTokenLimit: 'tokenLimit',
  newMoneyLimit: 'moneyLimit',
}

interface AskedBudget {
  options?: { option: string }[]
  needs?: { tokens?: number; money?: number }
  /** Of questions that are older than `needs`. */
  tokens?: { needs?: number }
  money?: { needs?: number }
}

const refused = (field: string, problem: string) =>
  new RuntimeError('invalid_request', `${field}: ${problem}`, { field })
