import { digestOf } from '../lib/canonical.ts'
import type { NewId } from '../lib/ids.ts'
import { needOf, reserveOf, spentOf } from './budget.ts'
import { effectKey } from './effects.ts'
import { type Actor, type Draft, draft, type Usage } from './entries.ts'
import { failureOf, isRuntimeError, RuntimeError, toRuntimeError } from './errors.ts'
import { GovernorWatch } from './governor.ts'
import { type Model, type ModelEvent, type ModelRequest, withMaxOutput } from './model.ts'
import type { CallRules } from './model-calls.ts'
import { isLost, type Thread } from './thread.ts'
import { priced } from './usage.ts'
import { requestTokens } from './window.ts'

export interface CountedCall {
  model: Model
  request: ModelRequest
  signal: AbortSignal
  actor: Actor
  /** What is written before it, if anything: what makes the thread, when it is new. */
  first: () => Draft[]
}

/**
 * A model call outside of any run, through the same ledger: it is counted before it is sent, and not
 * sent when the budget does not cover it (I9). Nobody is asked for more: it rejects with `budget_spent`.
 * When it resolves the call is counted, and made by whoever reads it.
 */
export async function countedCall(
  thread: Thread,
  call: CountedCall,
  rules: CallRules,
  newId: NewId,
): Promise<AsyncGenerator<ModelEvent, void, undefined>> {
  const { model, actor, first } = call
  const request = withMaxOutput(call.request, rules.maxOutput[model.name])
  const { effectId, key } = effectKey(thread.threadId, newId('call'), 'alone', 0)
  const about = { effectId, effect: 'model' as const, name: model.name }
  const digest = digestOf(request)
  const price = rules.prices[model.name]
  const need = needOf(requestTokens(request), request.parameters?.maxOutputTokens, price)
  const watch = new GovernorWatch(thread)
  for (let counted = false; !counted; ) {
    const before = first()
    const { governor } = thread.state
    if (spentOf(after(governor, before), need)) throw new RuntimeError('budget_spent')
    const intent = { ...about, key, digest, attempt: 1, idempotent: true }
    const drafts = [
      ...before,
      draft('effect.intended', { ...intent, ...reserveOf(governor, need) }),
    ]
    try {
      await thread.commit(drafts, { guard: { expect: watch.expect() }, actor })
      counted = true
    } catch (error) {
      if (!isRuntimeError(error, 'journal_conflict') || isLost(error)) throw error
      await watch.again(error)
    }
  }
  return made(thread, { ...call, request }, about, rules)
}

type About = { effectId: string; effect: 'model'; name: string }

/** Makes the call, and settles what it used. */
async function* made(
  thread: Thread,
  { model, request, signal, actor }: CountedCall,
  about: About,
  rules: CallRules,
): AsyncGenerator<ModelEvent, void, undefined> {
  let used: Usage | undefined
  let began = false
  const usage = () => used && { usage: priced(used, rules.prices[model.name]) }
  const meter = (outcome: string) =>
    rules.meter?.({
      ...{ model: model.name, tenant: thread.state.tenant, outcome },
      usage: usage()?.usage,
    })
  const settle = (outcome: Draft) => thread.commit([outcome], { guard: {}, actor })
  let ended = false
  try {
    const sent = { ...request, messages: await thread.whole(request.messages) }
    for await (const event of model.stream(sent, signal)) {
      began = true
      if (event.type === 'usage') used = event.usage
      else yield event
    }
    signal.throwIfAborted() // a model may stop quietly
    ended = true
    meter('ok')
    await settle(draft('effect.done', { ...about, ...usage() }))
  } catch (error) {
    if (ended) throw error
    ended = true
    meter(signal.aborted ? 'stopped' : toRuntimeError(error, 'agent_failed').code)
    const failed = { ...about, error: failureOf(error, 'agent_failed'), ...usage() }
    const unanswered = !began && { unanswered: true }
    await settle(draft('effect.failed', { ...failed, ...unanswered }))
    throw error
  } finally {
    // Whoever listened has left in the middle.
    if (!ended) await settle(draft('effect.unknown', about))
  }
}

/** A budget as these would set it. */
function after(governor: Thread['state']['governor'], drafts: readonly Draft[]) {
  const set = drafts.find((one) => one.kind === 'governor.set')?.body
  if (!set) return governor
  const { tokenLimit, moneyLimit, ...rest } = set as Draft<'governor.set'>['body']
  const { tokens, money } = governor
  return {
    ...governor,
    ...rest,
    tokens: { ...tokens, ...(tokenLimit !== undefined && { limit: tokenLimit }) },
    money: { ...money, ...(moneyLimit !== undefined && { limit: moneyLimit }) },
  } as typeof governor
}
