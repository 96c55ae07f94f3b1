import type { Known } from './entries.ts'
import type { Governor, Measure, ThreadState } from './state.ts'
import { type Price, priced } from './usage.ts'

/** The most that a call may use, as far as that is known before it is made. */
export interface Need {
  tokens?: number
  money?: number
}

export type Spent = 'actions' | 'tokens' | 'money'

/** What does not cover a call any more; undefined when it may be made. */
export function spentOf(governor: Governor, need: Need): Spent | undefined {
  const { isHitlEnabled, actionLimit, actionCounter, tokens, money } = governor
  if (!isHitlEnabled) return undefined
  if (actionCounter >= actionLimit) return 'actions'
  if (exceeds(tokens, need.tokens)) return 'tokens'
  return exceeds(money, need.money) ? 'money' : undefined
}

/** Where nobody knows what a call needs, the limit stops the call after the one that passes it. */
const exceeds = ({ limit, used }: Measure, need = 0): boolean =>
  limit !== null && (used + need > limit || used >= limit)

/** `output`: the most that the model may write. Without it only what is sent is known. */
export function needOf(input: number, output: number | undefined, price: Price | undefined): Need {
  const tokens = input + (output ?? 0)
  if (!price) return { tokens }
  const { cost } = priced({ inputTokens: input, outputTokens: output ?? 0 }, price)
  return { tokens, money: cost ?? 0 }
}

/** What is held back for a call: only what is limited. */
export function reserveOf(governor: Governor, need: Need): { reserve?: Need } {
  if (!governor.isHitlEnabled) return {}
  const reserve: Need = {
    ...(governor.tokens.limit !== null && need.tokens !== undefined && { tokens: need.tokens }),
    ...(governor.money.limit !== null && need.money !== undefined && { money: need.money }),
  }
  return Object.keys(reserve).length > 0 ? { reserve } : {}
}

/** Whether an entry changes what a person sees of the budget; where there is no limit, calls do not. */
export function isMeterNow(entry: Known, { governor }: ThreadState): boolean {
  if (entry.id !== governor.mark) return false // it has moved since
  if (entry.kind === 'governor.set') return entry.seq > 2
  if (entry.kind === 'governor.metered') return true
  if (entry.kind !== 'effect.intended' || !governor.isHitlEnabled) return false
  return entry.body.effect !== 'tool'
}

/** Why limits in tokens and money are best-effort for an agent's models. */
export interface Softness {
  tokens: string
  money: string
}

/** Only the provider counts tokens exactly, and it does so after the call. */
const estimated = 'the tokens of a request are estimated from its length before it is sent'

export function softness(
  models: readonly string[],
  { maxOutput, prices }: { maxOutput: Readonly<Record<string, number>>; prices: object },
): Softness {
  const unbounded = models.filter((name) => maxOutput[name] === undefined)
  const unpriced = models.filter((name) => !Object.hasOwn(prices, name))
  const tokens =
    unbounded.length > 0 ? `no maxOutput is set for ${unbounded.join(', ')}` : estimated
  const money = unpriced.length > 0 ? `no price is set for ${unpriced.join(', ')}` : tokens
  return { tokens, money }
}

/** The governor as people and programs read it. */
export function governorView(governor: Governor) {
  const { isHitlEnabled, actionLimit, actionCounter, total, remote } = governor
  return {
    isHitlEnabled,
    actionLimit,
    actionsUsed: actionCounter,
    remaining: isHitlEnabled ? Math.max(0, actionLimit - actionCounter) : null,
    total,
    tokens: governor.tokens,
    money: governor.money,
    ...(remote.legs > 0 && { remote: { ...remote, reported: remote.reported > 0 } }),
    ...(governor.cheaper !== null && { cheaper: true }),
    policy: 'in force' as const,
  }
}
