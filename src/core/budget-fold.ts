import type { Known } from './entries.ts'
import type { EffectRecord, Governor, Measure, Run, ThreadState } from './state.ts'
import { lineOf } from './usage.ts'

/** The governor's part of the fold: what is counted, what is charged, and what is set. */
export function counted(
  governor: Governor,
  { id, runId, body }: Known<'effect.intended'>,
  run: Run | undefined,
): void {
  const { effectId, effect, last, reserve = {} } = body
  governor.mark = id
  governor.actionCounter++
  governor.total++
  if (effect === 'remote') governor.remote.legs++
  add(governor.tokens, reserve.tokens ?? 0)
  add(governor.money, reserve.money ?? 0)
  if (!last) return
  if (governor.last === runId) governor.last = null
  if (run) run.lastCall = effectId
}

/** The first outcome of a call settles what was reserved for it. */
export function charged(
  governor: Governor,
  entry: Known<'effect.done' | 'effect.failed' | 'effect.unknown'>,
  { state, intent, period }: EffectRecord,
): void {
  if (state !== 'intended' || intent.effect === 'tool') return
  const { reserve = {} } = intent
  const { tokens, money } = chargeOf(entry, reserve)
  // What was reserved from an earlier budget is not charged to this one.
  const same = period === governor.period
  if (same) add(governor.tokens, tokens - (reserve.tokens ?? 0))
  if (same) add(governor.money, money - (reserve.money ?? 0))
  governor.tokens.total = rounded(governor.tokens.total + tokens)
  governor.money.total = rounded(governor.money.total + money)
}

/**
 * What a call cost. Only one that ended well and said what it used is charged that; one that was
 * cut may have cost all that was reserved, and one that nothing came back from has cost nothing.
 */
function chargeOf(
  entry: Known<'effect.done' | 'effect.failed' | 'effect.unknown'>,
  reserve: { tokens?: number; money?: number },
): { tokens: number; money: number } {
  const usage = entry.kind === 'effect.unknown' ? undefined : entry.body.usage
  const { inputTokens, outputTokens, cost } = usage ?? {}
  const known = { tokens: (inputTokens ?? 0) + (outputTokens ?? 0), money: cost ?? 0 }
  if (entry.kind === 'effect.failed' && entry.body.unanswered) return known
  const whole = entry.kind === 'effect.done' && inputTokens !== undefined
  const most = (named: 'tokens' | 'money', said: boolean) =>
    whole && said ? known[named] : Math.max(known[named], reserve[named] ?? 0)
  return {
    tokens: most('tokens', outputTokens !== undefined),
    money: most('money', cost !== undefined),
  }
}

export function setTo(state: ThreadState, { id, body }: Known<'governor.set'>): void {
  const { governor } = state
  const { isHitlEnabled, actionLimit, tokenLimit, moneyLimit } = body
  governor.mark = id
  if (isHitlEnabled !== undefined) governor.isHitlEnabled = isHitlEnabled
  if (actionLimit !== undefined) governor.actionLimit = actionLimit
  if (tokenLimit !== undefined) governor.tokens.limit = tokenLimit
  if (moneyLimit !== undefined) governor.money.limit = moneyLimit
  governor.cheaper = body.cheaper ?? null
  governor.last = body.last ?? null
  const extended = state.runs.get(body.extended ?? '')
  if (extended) extended.extended = true
  if (!body.resetCounter) return
  governor.period++
  governor.actionCounter = 0
  governor.tokens.used = 0
  governor.money.used = 0
}

export function metered(
  { governor, effects }: ThreadState,
  { id, legId = '', body }: Known<'governor.metered'>,
  run: Run | undefined,
): void {
  governor.mark = id
  governor.actionCounter += body.calls
  governor.total += body.calls
  governor.remote.reported += body.calls
  const name = effects.get(body.effectId)?.intent.name
  if (run && name !== undefined) lineOf(run.usage, legId, name).calls += body.calls
}

function add(measure: Measure, more: number): void {
  measure.used = rounded(measure.used + more)
}

/** Sums of money must not end in the dust of binary fractions. */
const rounded = (value: number): number => Math.round(value * 1e9) / 1e9
