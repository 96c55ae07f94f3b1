import { offshoot } from '../lib/signal.ts'
import { needOf } from './budget.ts'
import { purposeOf } from './budget-ask.ts'
import type { AgentSetup } from './context.ts'
import { type Bench, placed, workerOf } from './effects.ts'
import { type Body, draft, type Usage } from './entries.ts'
import { failureOf, type RuntimeError, toRuntimeError } from './errors.ts'
import { reserve } from './governor.ts'
import { isStop, LegStop, mayHandOver } from './leg.ts'
import type { Message } from './messages.ts'
import type { Model, ModelRequest, ModelUse } from './model.ts'
import type { Credential, Pass } from './providers.ts'
import { priced } from './usage.ts'
import { watched } from './watch.ts'
import { requestTokens } from './window.ts'
import { Writing } from './writing.ts'

type Intent = Pick<Body<'effect.intended'>, 'effectId' | 'effect' | 'name' | 'key' | 'digest'> & {
  attempt: number
}
type Result =
  | { message: Message; usage?: Usage }
  /** `unsent`: the provider was not asked. `last`: and will not be again. */
  | { failure: RuntimeError; unsent?: boolean; last?: boolean }

interface Attempt {
  model: Model
  request: ModelRequest
  use: ModelUse
  intent: Intent
  path?: string
  hidden?: boolean
}

/** One attempt at a call: past the provider's gate and the budget, through the ledger. */
export async function once(
  { model, request, use, intent: { key, digest, attempt, ...about }, path, hidden }: Attempt,
  { rules, governor }: AgentSetup,
  bench: Bench,
): Promise<Result> {
  const { leg, channel, clock } = bench
  let pass: Pass
  try {
    const provider = model.provider ?? model.name
    pass = await rules.providers.of(provider, credentialOf(model, use)).enter(leg.signal)
  } catch (error) {
    if (leg.signal.aborted) throw leg.signal.reason
    return { failure: toRuntimeError(error), unsent: true }
  }
  let outcome: Parameters<Pass['leave']>[0] = 'stopped'
  const metered = (what: string, usage?: Usage) =>
    rules.meter?.({ model: model.name, tenant: leg.thread.state.tenant, outcome: what, usage })
  try {
    mayHandOver(leg)
    const messageId = bench.newId('msg')
    const intent = { ...about, key, digest, attempt, messageId, idempotent: true }
    const price = rules.prices[model.name]
    const way = path === undefined ? bench.part?.path : placed(bench, path)
    const need = needOf(requestTokens(request), request.parameters?.maxOutputTokens, price)
    const pending = {
      agent: workerOf(bench).agent,
      model: model.name,
      purpose: purposeOf(request.messages),
      ...(way !== undefined && { path: way }),
      effectId: about.effectId,
    }
    let sent: ModelRequest
    try {
      sent = { ...request, messages: await leg.thread.whole(request.messages) }
    } catch (error) {
      return { failure: toRuntimeError(error), unsent: true }
    }
    const { last } = await reserve({ intent, need, pending }, governor, bench)
    await channel.away(() => leg.lease.hold()) // an abort is handled below, with the call's record
    const writing = new Writing(messageId, bench, rules.sizes, hidden)
    const usage = () => writing.usage && { usage: priced(writing.usage, rules.prices[model.name]) }
    const ends = offshoot(leg.signal)
    try {
      leg.signal.throwIfAborted()
      const events = model.stream(last ? summingUp(sent) : sent, ends.signal, use)
      for await (const event of watched(events, rules.silence, clock, ends.abort)) {
        const pause = writing.take(event)
        if (pause) await pause
      }
      leg.signal.throwIfAborted() // a model may stop quietly
      const message = writing.finished()
      bench.crash('effect.ran')
      outcome = 'answered'
      channel.write(
        draft('effect.done', { ...about, messageId, ...usage() }),
        draft('message.added', { message, for: hidden ? 'model' : 'both' }),
      )
      bench.messages.push(message)
      metered('ok', usage()?.usage)
      if (last) throw new LegStop('finished')
      return { message, ...usage() }
    } catch (thrown) {
      if (isStop(thrown, 'finished')) throw thrown
      ends.abort() // whatever it would still say is not wanted
      if (leg.signal.aborted) {
        const keep = isStop(leg.signal.reason, 'cancelled')
        const left = keep ? writing.partial() : writing.retraction('interrupted')
        channel.write(draft('effect.failed', { ...about, error: stopped, ...usage() }), ...left)
        metered('stopped', usage()?.usage)
        throw leg.signal.reason
      }
      const error = toRuntimeError(thrown, 'agent_failed')
      outcome = error
      const unanswered = !writing.began && { unanswered: true }
      const failed = { ...about, error: failureOf(error), ...usage(), ...unanswered }
      channel.write(draft('effect.failed', failed))
      channel.write(...writing.retraction(error.code))
      metered(error.code, usage()?.usage)
      return { failure: error, last }
    } finally {
      ends.leave()
    }
  } finally {
    pass.leave(outcome)
  }
}

const credentialOf = ({ account }: Model, { apiKey }: ModelUse): Credential | undefined => {
  if (apiKey !== undefined) return { owner: 'client', key: apiKey }
  return account === undefined ? undefined : { owner: 'operator', key: account }
}

/** Tools stay known, for providers refuse a history with calls of tools that they were not told of. */
function summingUp(request: ModelRequest): ModelRequest {
  const told =
    'The budget for this work is used up. This is your last answer: sum up what was done, what was found and what is left to do. Call no tools.'
  const { toolChoice: _, ...parameters } = request.parameters ?? {}
  const none = request.tools.length > 0 && { toolChoice: 'none' as const }
  return { ...request, system: [...request.system, told], parameters: { ...parameters, ...none } }
}

const stopped = { code: 'cancelled', message: 'Stopped while it was answering.' }
