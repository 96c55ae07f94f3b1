import type { Need, Spent } from './budget.ts'
import type { Bench } from './effects.ts'
import type { Ask } from './entries.ts'
import { type Message, textOf } from './messages.ts'
import type { Governor } from './state.ts'

/** The call that waits for more budget, in words. */
export interface Pending {
  agent: string
  model: string
  /** What it answers: the last words of what would be sent. */
  purpose: string
  path?: string
  effectId: string
}

/** Milliseconds a person has to grant more. */
const patience = 24 * 3_600_000

/** Characters of the last words that are shown. */
const purposeLength = 200

export function purposeOf(messages: readonly Message[]): string {
  const last = messages.at(-1)
  if (!last) return ''
  // The beginning is enough: the text may have a million characters.
  const words = textOf(last).trimStart().slice(0, 1_000).replace(/\s+/g, ' ').trim()
  const by = last.role === 'tool' ? `result of ${last.name ?? 'a tool'}` : last.role
  return `${by}: ${words.length > purposeLength ? `${words.slice(0, purposeLength)}…` : words}`
}

/** The question that stops a run whose budget is spent. Each option can be sent back as it is. */
export function budgetAsk(
  spent: Spent,
  pending: Pending,
  need: Need,
  cheaper: string | undefined,
  { leg, clock, newId }: Bench,
): Ask {
  const { governor } = leg.thread.state
  const { isHitlEnabled, actionLimit, actionCounter, total, tokens, money } = governor
  const limits = {
    ...(tokens.limit !== null && { tokens: { ...tokens, needs: need.tokens } }),
    ...(money.limit !== null && { money: { ...money, needs: need.money } }),
  }
  const about = {
    actionLimit,
    isHitlEnabled,
    actionsUsed: actionCounter,
    total,
    spent,
    needs: need,
  }
  return {
    askId: newId('ask'),
    kind: 'budget',
    title: titleOf(spent, governor, need),
    step: leg.legId,
    key: `budget:${pending.effectId}:${total}`,
    effectId: pending.effectId,
    input: { ...about, ...limits, pending, options: optionsOf(spent, governor, need, cheaper) },
    deadline: clock.now() + patience,
    atTimeout: 'stop',
  }
}

function titleOf(spent: Spent, { actionLimit, tokens, money }: Governor, need: Need): string {
  if (spent === 'actions')
    return actionLimit === 0
      ? 'This chat may make no model call without being asked. Allow some?'
      : `${allOf(actionLimit)} used. Continue?`
  const [what, { limit, used }, needs] =
    spent === 'tokens'
      ? (['tokens', tokens, need.tokens] as const)
      : (['of its money', money, need.money] as const)
  const next = needs === undefined ? '' : ` The next call may use ${shown(needs)}.`
  return `This chat has used ${shown(used)} of ${shown(limit ?? 0)} ${what}.${next} Continue?`
}

const allOf = (calls: number) =>
  calls === 1
    ? "The one model call of this chat's budget is"
    : `All ${calls} model calls of this chat's budget are`

/** What may be chosen; `newLimit` is the budget that is given anew, with its counter at zero. */
function optionsOf(spent: Spent, governor: Governor, need: Need, cheaper: string | undefined) {
  const newLimit = Math.max(1, governor.actionLimit)
  const raised = (limit: number | null, needs = 0) => Math.max(limit ?? 0, needs)
  const more = {
    actions: { label: newLimit === 1 ? 'One more call' : `${newLimit} more calls` },
    tokens: {
      label: 'The same number of tokens again',
      newTokenLimit: raised(governor.tokens.limit, need.tokens),
    },
    money: {
      label: 'The same money again',
      newMoneyLimit: raised(governor.money.limit, need.money),
    },
  }[spent]
  return [
    { option: 'more', newLimit, newStatus: true, ...more },
    { option: 'unlimited', label: 'No limit', newStatus: false },
    ...(cheaper === undefined
      ? []
      : [{ option: 'cheaper', label: `Go on with ${cheaper}`, model: cheaper }]),
    { option: 'summarise', label: 'Finish with a summary: one more call' },
    { option: 'stop', label: 'Stop here', stop: true },
  ]
}

const shown = (value: number): string => String(Number(value.toPrecision(6)))
