import { digestOf, digestOnce, sha256 } from '../lib/canonical.ts'
import type { ModelCall } from './agent.ts'
import type { AgentSetup } from './context.ts'
import { earlierCalls } from './earlier-calls.ts'
import { type Bench, effectKey, placed, recorded } from './effects.ts'
import { draft, type Usage } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import { Fitting, type Windows } from './fitting.ts'
import { validHistory } from './history.ts'
import { LegStop } from './leg.ts'
import type { Message } from './messages.ts'
import { type Model, type ModelRequest, type ModelUse, withMaxOutput } from './model.ts'
import { once } from './model-attempt.ts'
import type { Providers } from './providers.ts'
import { pauseAfter, type RetryRule } from './retry.ts'
import { type Prices, priced } from './usage.ts'
import type { Silence } from './watch.ts'
import type { Sizes } from './writing.ts'

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
    const messageDigests = await leg.thread.digestsOf(request.messages)
    const digest = requestDigest((call.by ?? setup.model).name, request, messageDigests)
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

/** The one to ask, then the one that stands in for it; or the cheaper one, where a person chose so. */
function modelsFor({ model, fallback, cheaper }: AgentSetup, { leg }: Bench): Model[] {
  if (cheaper && leg.thread.state.governor.cheaper === leg.runId) return [cheaper]
  return fallback ? [model, fallback] : [model]
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
  const apiKey = secrets.header(leg.runId, leg.run.options, keyHeader)
  if (apiKey !== undefined) return { apiKey }
  const told = `The key for the model came with an earlier request and was not kept. Send it again as ${keyHeader}.`
  throw new RuntimeError('authentication', told)
}

/** Grows with the number of messages, not with what they say: each is digested once in its life. */
function requestDigest(
  model: string,
  { tools, system, parameters }: ModelRequest,
  messageDigests: readonly string[],
) {
  const parts = sha256([...messageDigests, ...tools.map(digestOnce)].join())
  return digestOf([model, system, parameters ?? null, parts])
}
