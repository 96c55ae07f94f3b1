import { digestOf, digestOnce, sha256 } from '../lib/canonical.ts'
import type { ModelCall } from './agent.ts'
import { needOf } from './budget.ts'
import { purposeOf } from './budget-ask.ts'
import type { AgentSetup } from './context.ts'
import { type Bench, effectKey, placed, recorded, workerOf } from './effects.ts'
import { type Body, draft, type Usage } from './entries.ts'
import { failureOf, isRuntimeError, RuntimeError, toRuntimeError } from './errors.ts'
import { Fitting, type Windows } from './fitting.ts'
import { reserve } from './governor.ts'
import { validHistory } from './history.ts'
import { isStop, LegStop, mayHandOver } from './leg.ts'
import type { Message } from './messages.ts'
import { type Model, type ModelRequest, type ModelUse, withMaxOutput } from './model.ts'
import type { Pass, Providers } from './providers.ts'
import { pauseAfter, type RetryRule } from './retry.ts'
import type { EffectRecord } from './state.ts'
import { type Prices, priced } from './usage.ts'
import { type Silence, watched } from './watch.ts'
import { requestTokens } from './window.ts'
import { type Sizes, Writing } from './writing.ts'

/** How models are called: what they share on one server, and what each call is held to. */
export interface CallRules {
  retry: RetryRule
  silence: Silence
  providers: Providers
  prices: Prices
  /** Windows by the name of the model, over what the model says of itself. */
  windows: Windows
  /** The most that a model may write in one answer, by its name: it is told so. */
  maxOutput: Readonly<Record<string, number>>
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

/** Governed model calls of one leg. */
export function modelCaller(setup: AgentSetup, bench: Bench) {
  const { rules } = setup
  const { leg, channel, clock } = bench
  const { retry } = rules
  const ordinals = new Map<string, number>()
  const earlier = earlierCalls(bench)

  return async (call: ModelCall): Promise<{ message: Message; usage?: Usage }> => {
    const request: ModelRequest = {
      system: [...(call.system ?? []), ...(leg.run.options.instructions ?? [])],
      messages: validHistory(call.messages),
      tools: call.tools ?? [],
    }
    if (call.parameters) request.parameters = call.parameters
    const { path } = call
    const checkpoint = path === undefined ? (bench.messages.at(-1)?.id ?? '') : ''
    const way = placed(bench, path ?? 'model')
    const place = `${checkpoint}/${way}`
    const ordinal = ordinals.get(place) ?? 0
    ordinals.set(place, ordinal + 1)
    const { key, effectId } = effectKey(leg.runId, checkpoint, way, ordinal)
    // Of the agent's own model, whichever is asked: the agent asks for the same.
    const digest = requestDigest((call.by ?? setup.model).name, request)
    const { effects, messages } = leg.thread.state
    const made = recorded(effects.get(effectId), digest)
    const done = path === undefined ? earlier(digest, made) : made
    const said = done?.messageId === undefined ? undefined : messages.get(done.messageId)
    if (said && done?.intent.last) throw new LegStop('finished')
    if (said) return { message: said.message, ...(done?.usage && { usage: done.usage }) }

    const models = call.by ? [call.by] : modelsFor(setup, bench)
    const use = keyFor(rules, bench)
    const able = use.apiKey === undefined ? models : models.slice(0, 1)
    let attempt = effects.get(effectId)?.intent.attempt ?? 0
    let failure: RuntimeError | undefined
    for (const model of able) {
      if (failure) {
        const value = { model: model.name, code: failure.code, message: failure.message }
        channel.write(draft('event', { name: 'fallback', value }))
      }
      const limited = withMaxOutput(request, rules.maxOutput[model.name])
      const fitting = new Fitting(model, limited, rules.windows, bench)
      for (let tries = 1; ; tries++) {
        const fit = fitting.request()
        const about = { effectId, effect: 'model' as const, name: model.name, key, digest }
        const intent = { ...about, attempt: ++attempt }
        const result = await once({ ...call, model, request: fit, use, intent }, setup, bench)
        if ('message' in result) return result
        failure = result.failure
        if (result.last) throw failure
        if (result.unsent) attempt--
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
async function once(
  { model, request, use, intent: { key, digest, attempt, ...about }, path, hidden }: Attempt,
  { rules, governor }: AgentSetup,
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
    const { last } = await reserve({ intent, need, pending }, governor, bench)
    await channel.away(() => leg.lease.hold())
    const writing = new Writing(messageId, bench, rules.sizes, hidden)
    const usage = () => writing.usage && { usage: priced(writing.usage, rules.prices[model.name]) }
    try {
      leg.signal.throwIfAborted()
      const late = new AbortController()
      const signal = AbortSignal.any([leg.signal, late.signal])
      const events = model.stream(last ? summingUp(request) : request, signal, use)
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
      if (last) throw new LegStop('finished')
      return { message, ...usage() }
    } catch (thrown) {
      if (isStop(thrown, 'finished')) throw thrown
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
    }
  } finally {
    pass.leave(outcome)
  }
}

/** The one to ask, then the one that stands in for it; or the cheaper one, where a person chose so. */
function modelsFor({ model, fallback, cheaper }: AgentSetup, { leg }: Bench): Model[] {
  if (cheaper && leg.thread.state.governor.cheaper === leg.runId) return [cheaper]
  return fallback ? [model, fallback] : [model]
}

/**
 * Calls that earlier legs of the run have made, by what was asked. Branches that run side by side add to
 * the history that their keys name, so after a leg that was parked between them the keys are others.
 */
function earlierCalls({ leg, part }: Bench) {
  let made: Map<string, EffectRecord[]> | undefined
  const read = () => {
    const found = new Map<string, EffectRecord[]>()
    for (const effectId of leg.run.effectIds) {
      const record = leg.thread.state.effects.get(effectId)
      if (record?.state !== 'done' || record.intent.effect !== 'model') continue
      const { digest, key, path } = record.intent
      if (path !== part?.path) continue // another agent's
      if (key.startsWith(`${leg.runId}//`)) continue // its branch has a name, and finds it by that
      found.set(digest, [...(found.get(digest) ?? []), record])
    }
    return found
  }
  return (digest: string, known: EffectRecord | undefined): EffectRecord | undefined => {
    made ??= read() // at the first call: what this leg makes itself is not among them
    const left = made.get(digest) ?? []
    if (known)
      made.set(
        digest,
        left.filter((one) => one !== known),
      )
    return known ?? left.shift()
  }
}

/** Tools stay known, for providers refuse a history with calls of tools that they were not told of. */
function summingUp(request: ModelRequest): ModelRequest {
  const told =
    'The budget for this work is used up. This is your last answer: sum up what was done, what was found and what is left to do. Call no tools.'
  const { toolChoice: _, ...parameters } = request.parameters ?? {}
  const none = request.tools.length > 0 && { toolChoice: 'none' as const }
  return { ...request, system: [...request.system, told], parameters: { ...parameters, ...none } }
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
