import { digestOf, digestOnce, sha256 } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { ModelCall } from './agent.ts'
import type { Channel } from './channel.ts'
import { type Body, draft, type Usage } from './entries.ts'
import { failureOf, RuntimeError, toRuntimeError } from './errors.ts'
import { overBudget } from './governor.ts'
import { validHistory } from './history.ts'
import { isStop, type Leg, mayHandOver } from './leg.ts'
import type { Message, Part } from './messages.ts'
import type { Model, ModelEvent, ModelRequest } from './model.ts'
import { pauseAfter, type RetryRule } from './retry.ts'
import type { RunSecrets } from './secrets.ts'
import type { EffectRecord } from './state.ts'

/** What one leg works with. */
export interface Bench {
  leg: Leg
  channel: Channel
  clock: Clock
  newId: NewId
  crash: (point: string) => void
  random: () => number
  secrets: RunSecrets
  /** The branch as the agent sees it: what is durable, then what this leg has said since. */
  messages: Message[]
}

/**
 * The key of an effect says where in the run it stands: the message that the step begins after
 * (its checkpoint), the path to the agent, and which of several. The same work has the same key in
 * every leg and after every crash; the id made of it is the tools' idempotency key.
 */
export function effectKey(runId: string, checkpoint: string, path: string, ordinal: number) {
  const key = `${runId}/${checkpoint}/${path}/${ordinal}`
  return { key, effectId: `eff_${sha256(key).slice(0, 26)}` }
}

/** What a key already led to; the same key for something else is an agent that wavers. */
export function recorded(record: EffectRecord | undefined, digest: string) {
  if (record?.state !== 'done') return undefined
  if (record.intent.digest !== digest) throw new RuntimeError('agent_not_deterministic')
  return record
}

/** Governed model calls of one leg. */
export function modelCaller(model: Model, retry: RetryRule, bench: Bench) {
  const { leg, channel, clock } = bench
  const ordinals = new Map<string, number>()

  return async (call: ModelCall): Promise<{ message: Message; usage?: Usage }> => {
    const request: ModelRequest = {
      system: [...(call.system ?? []), ...(leg.run.options.instructions ?? [])],
      messages: validHistory(call.messages),
      tools: call.tools ?? [],
    }
    if (call.parameters) request.parameters = call.parameters
    const checkpoint = bench.messages.at(-1)?.id ?? ''
    const ordinal = ordinals.get(checkpoint) ?? 0
    ordinals.set(checkpoint, ordinal + 1)
    const { key, effectId } = effectKey(leg.runId, checkpoint, 'model', ordinal)
    const digest = requestDigest(model.name, request)
    const { effects, messages } = leg.thread.state
    const done = recorded(effects.get(effectId), digest)
    const said = done?.messageId === undefined ? undefined : messages.get(done.messageId)
    if (said) return { message: said.message, ...(done?.usage && { usage: done.usage }) }

    let attempt = effects.get(effectId)?.intent.attempt ?? 0
    for (let tries = 1; ; tries++) {
      mayHandOver(leg)
      await overBudget(bench)
      attempt++
      const messageId = bench.newId('msg')
      const about = { effectId, effect: 'model' as const, name: model.name }
      const intent: Body<'effect.intended'> = { ...about, key, digest, attempt, messageId }
      await channel.commit(draft('effect.intended', { ...intent, idempotent: true }))
      await channel.away(() => leg.lease.hold())
      const writing = new Writing(messageId, bench)
      try {
        leg.signal.throwIfAborted()
        for await (const event of model.stream(request, leg.signal)) {
          const pause = writing.take(event)
          if (pause) await pause
        }
        leg.signal.throwIfAborted() // a model may stop quietly
        const message = writing.finished()
        bench.crash('effect.ran')
        const { usage } = writing
        const outcome = { ...about, messageId, ...(usage && { usage }) }
        channel.write(
          draft('effect.done', outcome),
          draft('message.added', { message, for: 'both' }),
        )
        bench.messages.push(message)
        return { message, ...(usage && { usage }) }
      } catch (thrown) {
        if (leg.signal.aborted) {
          const keep = isStop(leg.signal.reason, 'cancelled')
          const left = keep ? writing.partial() : writing.retraction('interrupted')
          channel.write(draft('effect.failed', { ...about, error: stopped }), ...left)
          throw leg.signal.reason
        }
        const error = toRuntimeError(thrown, 'agent_failed')
        channel.write(draft('effect.failed', { ...about, error: failureOf(error) }))
        channel.write(...writing.retraction(error.code))
        const pause = pauseAfter(error, tries, retry, bench.random())
        if (pause === undefined) throw error
        const value = { attempt: tries + 1, inMs: pause, code: error.code, message: error.message }
        await channel.commit(draft('event', { name: 'retry', value }))
        await clock.sleep(pause, leg.signal)
      }
    }
  }
}

/** Grows with the number of messages, not with what they say: each is digested once in its life. */
function requestDigest(model: string, { messages, tools, system, parameters }: ModelRequest) {
  const parts = sha256([...messages, ...tools].map(digestOnce).join())
  return digestOf([model, system, parameters ?? null, parts])
}

const stopped = { code: 'cancelled', message: 'Stopped while it was answering.' }

/** Pieces between two looks at the rest of the world: a model that never waits must not starve it. */
const burst = 32

/** The message that a model call is writing. */
class Writing {
  #began = false
  usage: Usage | undefined
  readonly #messageId: string
  readonly #bench: Bench
  readonly #parts: Part[] = []
  #text: string[] = []
  #open: 'text' | 'reasoning' | undefined
  #count = 0

  constructor(messageId: string, bench: Bench) {
    this.#messageId = messageId
    this.#bench = bench
  }

  /** Takes an event; gives a promise when the event loop should have its turn. */
  take(event: ModelEvent): Promise<void> | undefined {
    const id = this.#messageId
    this.#began = true
    switch (event.type) {
      case 'text':
      case 'reasoning':
        if (event.text === '') return
        if (this.#open !== event.type) this.#close()
        this.#open = event.type
        this.#text.push(event.text)
        this.#bench.channel.piece({ kind: event.type, id, text: event.text })
        break
      case 'input': {
        const { callId, name, text } = event
        this.#bench.channel.piece({ kind: 'input', id: callId, messageId: id, name, text })
        break
      }
      case 'call': {
        const { callId, name, input, meta } = event
        this.#close()
        this.#parts.push({ type: 'call', callId, name, input, ...(meta && { meta }) })
        break
      }
      case 'usage':
        this.usage = event.usage
    }
    if (++this.#count % burst > 0) return
    this.#bench.crash('model.pieces')
    return new Promise((resolve) => setImmediate(resolve))
  }

  finished(): Message {
    this.#close()
    const id = this.#messageId
    return { id, role: 'assistant', parts: withOwnIds(this.#parts, this.#bench.leg) }
  }

  /** What was shown before the stop, if it says anything. Calls are left out: they were not made. */
  partial() {
    this.#close()
    const parts = this.#parts.filter((part) => part.type !== 'call')
    const id = this.#messageId
    if (parts.length === 0) return this.retraction('cancelled')
    const message: Message = { id, role: 'assistant', parts, partial: true }
    return [draft('message.added', { message, for: 'both' })]
  }

  retraction(why: string) {
    return this.#began ? [draft('message.retracted', { ids: [this.#messageId], why })] : []
  }

  #close(): void {
    if (this.#open) this.#parts.push({ type: this.#open, text: this.#text.join('') })
    this.#open = undefined
    this.#text = []
  }
}

/** Some providers use a call id again in a later message; on a thread each names one call. */
function withOwnIds(parts: Part[], leg: Leg): Part[] {
  const { calls } = leg.thread.state
  const mine = new Set<string>()
  return parts.map((part) => {
    if (part.type !== 'call') return part
    let { callId } = part
    for (let n = 2; calls.has(callId) || mine.has(callId); n++) callId = `${part.callId}_${n}`
    mine.add(callId)
    return callId === part.callId ? part : { ...part, callId }
  })
}
