import { digestOf, digestOnce, sha256 } from '../lib/canonical.ts'
import type { ModelCall } from './agent.ts'
import { type Bench, effectKey, recorded } from './effects.ts'
import { type Body, draft, type Usage } from './entries.ts'
import { failureOf, isRuntimeError, RuntimeError, toRuntimeError } from './errors.ts'
import { Fitting, type Windows } from './fitting.ts'
import { overBudget } from './governor.ts'
import { validHistory } from './history.ts'
import { isStop, mayHandOver } from './leg.ts'
import type { Message } from './messages.ts'
import type { Model, ModelRequest, ModelUse } from './model.ts'
import type { Pass, Providers } from './providers.ts'
import { pauseAfter, type RetryRule } from './retry.ts'
import { type Prices, priced } from './usage.ts'
import { type Silence, watched } from './watch.ts'
import { type Sizes, Writing } from './writing.ts'

/** How models are called: what they share on one server, and what each call is held to. */
export interface CallRules {
  retry: RetryRule
  silence: Silence
  providers: Providers
  prices: Prices
  /** Windows by the name of the model, over what the model says of itself. */
  windows: Windows
  sizes: Sizes
  /** Clients may bring their own key, in the header of this name. */
  keyHeader?: string
  meter?: (call: MeteredCall) => void
}

/** One attempt, for whoever counts. */
export interface MeteredCall {
  model: string
  tenant: string
  outcome: string
  usage: Usage | undefined
}

/** Governed model calls of one leg. `models`: the one to ask, then the one that stands in for it. */
export function modelCaller(own: readonly Model[], rules: CallRules, bench: Bench) {
  const { leg, channel, clock } = bench
  const { retry } = rules
  const ordinals = new Map<string, number>()

  return async (call: ModelCall): Promise<{ message: Message; usage?: Usage }> => {
    const models = call.by ? [call.by] : own
    const request: ModelRequest = {
      system: [...(call.system ?? []), ...(leg.run.options.instructions ?? [])],
      messages: validHistory(call.messages),
      tools: call.tools ?? [],
    }
    if (call.parameters) request.parameters = call.parameters
    const checkpoint = call.at ?? bench.messages.at(-1)?.id ?? ''
    const ordinal = call.at === undefined ? (ordinals.get(checkpoint) ?? 0) : 0
    ordinals.set(checkpoint, ordinal + 1)
    const { key, effectId } = effectKey(leg.runId, checkpoint, 'model', ordinal)
    const digest = requestDigest(models[0]!.name, request)
    const { effects, messages } = leg.thread.state
    const done = recorded(effects.get(effectId), digest)
    const said = done?.messageId === undefined ? undefined : messages.get(done.messageId)
    if (said) return { message: said.message, ...(done?.usage && { usage: done.usage }) }

    const use = keyFor(rules, bench)
    const able = use.apiKey === undefined ? models : models.slice(0, 1)
    let attempt = effects.get(effectId)?.intent.attempt ?? 0
    let failure: RuntimeError | undefined
    for (const model of able) {
      if (failure) {
        const value = { model: model.name, code: failure.code, message: failure.message }
        channel.write(draft('event', { name: 'fallback', value }))
      }
      const fitting = new Fitting(model, request, rules.windows, bench)
      for (let tries = 1; ; tries++) {
        const fit = fitting.request()
        const intent = { effectId, effect: 'model' as const, name: model.name, key, digest }
        const make = { intent, hidden: call.hidden ?? false, nextAttempt: () => ++attempt }
        const result = await once(model, fit, use, make, rules, bench)
        if ('message' in result) return result
        failure = result.failure
        if (isRuntimeError(failure, 'context_too_long') && fitting.shrink()) continue
        const tired = leg.run.failedCalls >= retry.perRun || result.unsent
        const pause = tired ? undefined : pauseAfter(failure, tries, retry, bench.random())
        if (pause === undefined) break
        const { code, message } = failure
        const value = { attempt: tries + 1, inMs: pause, code, message }
        await channel.commit(draft('event', { name: 'retry', value }))
        await clock.sleep(pause, leg.signal)
      }
      if (!failure.retryable) break
    }
    throw failure
  }
}

type Intent = Pick<Body<'effect.intended'>, 'effectId' | 'effect' | 'name' | 'key' | 'digest'>
interface Making {
  intent: Intent
  hidden: boolean
  nextAttempt: () => number
}
type Result =
  | { message: Message; usage?: Usage }
  /** `unsent`: the provider was not asked. */
  | { failure: RuntimeError; unsent?: boolean }

/** One attempt at a call: past the provider's gate and the budget, through the ledger. */
async function once(
  model: Model,
  request: ModelRequest,
  use: ModelUse,
  { intent: { key, digest, ...about }, hidden, nextAttempt }: Making,
  rules: CallRules,
  bench: Bench,
): Promise<Result> {
  const { leg, channel, clock } = bench
  let pass: Pass
  try {
    pass = await rules.providers.of(model.provider ?? model.name).enter(leg.signal)
  } catch (error) {
    if (leg.signal.aborted) throw leg.signal.reason
    return { failure: toRuntimeError(error), unsent: true }
  }
  let outcome: Parameters<Pass['leave']>[0] = 'stopped'
  const metered = (what: string, usage?: Usage) =>
    rules.meter?.({ model: model.name, tenant: leg.thread.state.tenant, outcome: what, usage })
  try {
    mayHandOver(leg)
    await overBudget(bench)
    const messageId = bench.newId('msg')
    const intent = { ...about, key, digest, attempt: nextAttempt(), messageId }
    await channel.commit(draft('effect.intended', { ...intent, idempotent: true }))
    await channel.away(() => leg.lease.hold())
    const writing = new Writing(messageId, bench, rules.sizes, hidden)
    const usage = () => writing.usage && { usage: priced(writing.usage, rules.prices[model.name]) }
    try {
      leg.signal.throwIfAborted()
      const late = new AbortController()
      const signal = AbortSignal.any([leg.signal, late.signal])
      const events = model.stream(request, signal, use)
      for await (const event of watched(events, rules.silence, clock, () => late.abort())) {
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
      return { message, ...usage() }
    } catch (thrown) {
      if (leg.signal.aborted) {
        const keep = isStop(leg.signal.reason, 'cancelled')
        const left = keep ? writing.partial() : writing.retraction('interrupted')
        channel.write(draft('effect.failed', { ...about, error: stopped, ...usage() }), ...left)
        metered('stopped', usage()?.usage)
        throw leg.signal.reason
      }
      const error = toRuntimeError(thrown, 'agent_failed')
      outcome = error
      channel.write(draft('effect.failed', { ...about, error: failureOf(error), ...usage() }))
      channel.write(...writing.retraction(error.code))
      metered(error.code, usage()?.usage)
      return { failure: error }
    }
  } finally {
    pass.leave(outcome)
  }
}

/** A call that an agent made without us: all that can be done is to count it. */
export function meteredCall(
  { model, usage }: { model: string; usage?: Usage },
  rules: CallRules,
  { leg, channel, newId }: Bench,
): void {
  const about = { effectId: newId('eff'), effect: 'model', name: model } as const
  const intent = { ...about, key: about.effectId, digest: '', attempt: 1, idempotent: true }
  const cost = usage && { usage: priced(usage, rules.prices[model]) }
  channel.write(draft('effect.intended', intent), draft('effect.done', { ...about, ...cost }))
  rules.meter?.({ model, tenant: leg.thread.state.tenant, outcome: 'ok', usage: cost?.usage })
}

/** The client's own key, where the run is to be paid with it. */
function keyFor({ keyHeader }: CallRules, { leg, secrets }: Bench): ModelUse {
  if (keyHeader === undefined || !leg.run.options.clientKey) return {}
  const apiKey = secrets.join(leg.runId, leg.run.options).headers?.[keyHeader]
  if (apiKey !== undefined) return { apiKey }
  const told = `The key for the model came with an earlier request and was not kept. Send it again as ${keyHeader}.`
  throw new RuntimeError('authentication', told)
}

/** Grows with the number of messages, not with what they say: each is digested once in its life. */
function requestDigest(model: string, { messages, tools, system, parameters }: ModelRequest) {
  const parts = sha256([...messages, ...tools].map(digestOnce).join())
  return digestOf([model, system, parameters ?? null, parts])
}

const stopped = { code: 'cancelled', message: 'Stopped while it was answering.' }
