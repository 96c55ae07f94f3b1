import { digestOf } from '../lib/canonical.ts'
import { offshoot } from '../lib/signal.ts'
import type { AgentEvent } from './agent.ts'
import { askUnder } from './asked.ts'
import { branch } from './branch.ts'
import { countdown } from './countdown.ts'
import { type Bench, effectKey, placed, workerOf } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { type ErrorCode, failureOf, RuntimeError, toRuntimeError } from './errors.ts'
import { notBegun } from './execute.ts'
import { type GovernorRules, reserve } from './governor.ts'
import type { Guard } from './guard.ts'
import { holdLease, isStop, LegStop, mayHandOver } from './leg.ts'
import { asText, type Message, textOf } from './messages.ts'
import { retractOpen } from './retract.ts'
import type { EffectRecord } from './state.ts'

/** The event by which an adapter tells of model calls that it has heard of: `{ calls, usage }`. */
export const remoteCalls = 'remote.calls'

/** A stretch of work that another server does: one effect, whatever it says on the way. */
export interface RemoteCall {
  /** One plain sentence, for the person who is asked whether it happened. */
  title: string
  /** What it is asked to do, as far as that tells one request from another. */
  input: unknown
  /** Doing it twice is the same as doing it once: it is simply done again after a crash. */
  idempotent?: boolean
  /** Milliseconds after which it is given up and cannot still be going on. */
  timeout: number
  /**
   * After a crash: whether the effect with this id is known there. When that cannot be found out, a
   * person is asked, with the evidence that there is.
   */
  look?(begun: Begun, signal: AbortSignal): Promise<Looked>
  /** Does it: yields what is said, gives what the next leg has to know. Must end with its signal. */
  work(use: RemoteUse): AsyncGenerator<AgentEvent, string, undefined>
}

export type Looked = 'absent' | 'there' | { evidence?: unknown }

export interface Begun {
  /** The same for every attempt: hand it on as the idempotency key. */
  effectId: string
  /** Counts from 1. */
  attempt: number
}

export interface RemoteUse extends Begun {
  signal: AbortSignal
  /** It is under way there since before a crash: read on, begin nothing. */
  rejoin: boolean
}

/** What earlier legs at one remote have left. */
export interface RemoteLine {
  /** How the last leg of this run there ended. */
  last(): RemoteEnd | undefined
  /** How many of this run have ended there. */
  legs(): number
  /** How the last one on this branch before this run ended. `tip`: nothing else was begun there since. */
  before(): (RemoteEnd & { tip: boolean }) | undefined
  leg(call: RemoteCall): AsyncGenerator<AgentEvent, void, undefined>
}

export interface RemoteEnd {
  effectId: string
  output: string
}

export interface RemoteRules {
  governor: GovernorRules
  guard?: Guard | undefined
}

/** Legs of one run at the remote of this name. Each counts as one action of the budget. */
export function remoteLine(name: string, rules: RemoteRules, bench: Bench): RemoteLine {
  const { leg } = bench
  const { effects } = leg.thread.state
  const isOurs = (one: EffectRecord | undefined) =>
    one?.intent.effect === 'remote' &&
    one.intent.name === name &&
    one.intent.path === bench.part?.path
  const doneOf = ({ effectIds }: { effectIds: string[] }) =>
    effectIds.map((id) => effects.get(id)!).filter((one) => isOurs(one) && one.state === 'done')
  return {
    last: () => endOf(doneOf(leg.run).at(-1)),
    legs: () => doneOf(leg.run).length,
    before() {
      if (bench.part) return undefined // a part of a run begins afresh with every run
      const { state } = leg.thread
      const { parentRunId, branch: at } = leg.run
      const parent = parentRunId !== undefined ? parentRunId : at ? at.parentRunId : state.head
      const path = branch(state, parent)
      const record = path.flatMap(doneOf).at(-1)
      const end = endOf(record)
      if (!record || !end) return undefined
      const known = new Set([...path, leg.run].map(({ runId }) => runId))
      const later = [...effects.values()].filter((one) => isOurs(one) && one.seq > record.seq)
      return { ...end, tip: later.every(({ runId }) => known.has(runId)) }
    },
    leg: (call) => remoteLeg(name, doneOf(leg.run).length, call, rules, bench),
  }
}

const endOf = (record: EffectRecord | undefined): RemoteEnd | undefined =>
  record && { effectId: record.intent.effectId, output: record.output ?? '' }

async function* remoteLeg(
  name: string,
  ordinal: number,
  call: RemoteCall,
  { governor, guard }: RemoteRules,
  bench: Bench,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { leg, channel, clock } = bench
  // Not by the last message: a leg that was cut may have left some, and is still the same leg.
  const { key, effectId } = effectKey(leg.runId, '', placed(bench, `remote:${name}`), ordinal)
  const about = { effectId, effect: 'remote' as const, name }
  const record = leg.thread.state.effects.get(effectId)
  const fate = await fateOf(record, call, bench)
  const attempt = (record?.intent.attempt ?? 0) + (fate === 'run' ? 1 : 0)
  if (fate === 'skip') {
    const error = new RuntimeError('remote_cut', 'Whether the remote agent did it is not known.')
    channel.write(draft('effect.failed', { ...about, error: failureOf(error) }))
    throw error
  }
  if (typeof fate === 'object') {
    if (fate.result !== '') yield { type: 'message', message: said(fate.result, bench) }
    await channel.commit(draft('effect.done', { ...about, output: '' }))
    return
  }
  if (fate === 'run') {
    mayHandOver(leg)
    const { input, timeout, idempotent = false } = call
    const intent = { ...about, key, digest: digestOf(input ?? null), attempt, timeout, idempotent }
    const { agent } = workerOf(bench)
    const pending = { agent, model: name, purpose: call.title, effectId }
    await reserve({ intent, need: {}, pending }, governor, bench)
    await holdLease(leg, channel).catch((error: unknown) => {
      channel.write(draft('effect.failed', { ...about, error: notBegun }))
      throw error
    })
  }
  const over = new AbortController()
  const time = countdown(call.timeout, clock, over.signal)
  const { signal, leave } = offshoot(leg.signal, time.signal)
  try {
    const events = call.work({ effectId, attempt, signal, rejoin: fate === 'rejoin' })
    const output = yield* metered(guarded(events, guard), effectId, bench)
    signal.throwIfAborted() // it may stop quietly
    bench.crash('effect.ran')
    await channel.commit(draft('effect.done', { ...about, output })) // what comes next looks for it
  } catch (thrown) {
    if (leg.signal.aborted) {
      const cancelled = isStop(leg.signal.reason, 'cancelled')
      if (!cancelled) await retractOpen(leg, channel, 'interrupted').catch(() => {})
      channel.write(
        cancelled
          ? draft('effect.failed', { ...about, error: stopped })
          : draft('effect.unknown', about),
      )
      throw leg.signal.reason
    }
    // Only a lease that was lost before a start or a retry ends it like this.
    if (thrown instanceof LegStop) {
      channel.write(draft('effect.failed', { ...about, error: notBegun }))
      throw thrown
    }
    const late = `The remote agent was not done after ${call.timeout / 1_000} s.`
    const error = time.signal.aborted
      ? new RuntimeError('remote_timeout', late)
      : toRuntimeError(thrown, 'agent_failed')
    const told = call.idempotent && outcomeUnknown.has(error.code) ? repeatable(error) : error
    await retractOpen(leg, channel, told.code)
    channel.write(draft('effect.failed', { ...about, error: failureOf(told) }))
    throw told
  } finally {
    over.abort()
    leave()
  }
}

/** Failures of legs that may have done their work. */
const outcomeUnknown = new Set<ErrorCode>([
  'remote_cut',
  'remote_timeout',
  'remote_outcome_unknown',
])

const repeatable = ({ code, message, cause }: RuntimeError) =>
  new RuntimeError(code, message, { cause, retryable: true })

const stopped = { code: 'cancelled', message: 'Stopped while it was at work.' }

type Fate = 'run' | 'rejoin' | 'skip' | { result: string }

/** What is to be done about a leg that may have been begun before. */
async function fateOf(
  record: EffectRecord | undefined,
  call: RemoteCall,
  bench: Bench,
): Promise<Fate> {
  if (!record) return 'run'
  const { leg, clock } = bench
  if (record.state === 'failed') return afterFailure(record, call, leg.run.retriedSeq)
  const { effectId, attempt, timeout = call.timeout } = record.intent
  const look = async () => await call.look?.({ effectId, attempt }, leg.signal)
  const found = await look()
  if (found === 'there') return 'rejoin'
  if (call.idempotent) return 'run'
  if (found === 'absent') return (await appears(record, timeout, look, bench)) ? 'rejoin' : 'run'
  const key = `doubt:${effectId}:${attempt}`
  const asked = askUnder(bench, key)
  if (asked) {
    if (!asked.answer) throw new LegStop('parked')
    const { outcome, value } = asked.answer
    if (outcome === 'happened') return { result: asText(value ?? '') }
    return outcome === 'did_not' ? 'run' : 'skip'
  }
  // It may still be at work there: nobody can say yet what became of it.
  await clock.sleep(remaining(record, timeout, clock.now()), leg.signal)
  const later = await look()
  if (later === 'there') return 'rejoin'
  const evidence = typeof later === 'object' ? later.evidence : undefined
  const ask: Ask = {
    askId: bench.newId('ask'),
    kind: 'in_doubt',
    title: `Did this happen? ${call.title}`,
    step: leg.legId,
    key,
    effectId,
    input: call.input,
    ...(evidence !== undefined && { evidence }),
    deadline: clock.now() + 24 * 3_600_000,
    atTimeout: 'reject',
  }
  await bench.channel.commit(draft('ask.raised', { ask }))
  throw new LegStop('parked')
}

/** Failures of legs that did not start. */
const didNotStart = new Set(['remote_unavailable', notBegun.code])

/**
 * A leg that failed runs again if it did not start, if it is idempotent, or if a person retried the run since.
 * Otherwise throws its failure again: what became of it is not known, and an agent or a workflow step that
 * tries again must not repeat it.
 */
function afterFailure({ seq, error }: EffectRecord, call: RemoteCall, retriedSeq: number): 'run' {
  const { code = 'agent_failed', message } = error ?? {}
  if (call.idempotent || seq < retriedSeq || didNotStart.has(code)) return 'run'
  throw new RuntimeError(code as ErrorCode, message)
}

/** Milliseconds after its intent in which a request of an earlier process may still become known there. */
const startLimit = 30_000
/** Milliseconds between two looks for it. */
const lookEvery = 1_000

/**
 * Looks until the work that an earlier process may have started appears at the remote. Returns false when the
 * lease of that process and the time for its request have passed without it.
 */
async function appears(
  record: EffectRecord,
  timeout: number,
  look: () => Promise<Looked | undefined>,
  { leg, clock }: Bench,
): Promise<boolean> {
  const limit = Math.min(timeout, Math.max(startLimit, leg.lease.ttl))
  const end = clock.monotonic() + remaining(record, limit, clock.now())
  for (;;) {
    const left = end - clock.monotonic()
    if (left <= 0) return false
    await clock.sleep(Math.min(left, lookEvery), leg.signal)
    if ((await look()) === 'there') return true
  }
}

/** Milliseconds left of `limit` since the intent; never more than `limit`, also if the clock was set back. */
const remaining = ({ at }: EffectRecord, limit: number, now: number): number =>
  Math.min(limit, Math.max(0, at + limit - now))

/** What the remote tells of its own model calls is counted on top of its leg, and stops the next one. */
async function* metered(
  events: AsyncGenerator<AgentEvent, string, undefined>,
  effectId: string,
  { channel }: Bench,
): AsyncGenerator<AgentEvent, string, undefined> {
  for (;;) {
    const { done, value } = await events.next()
    if (done) return value
    const told = value.type === 'event' && value.name === remoteCalls ? value.value : undefined
    const { calls } = (told ?? {}) as { calls?: number }
    if (calls !== undefined && Number.isInteger(calls) && calls > 0)
      channel.write(draft('governor.metered', { effectId, calls }))
    yield value
  }
}

/**
 * Nothing is shown that the rules forbid. They judge what a model writes as it comes; what comes from
 * elsewhere may be of several messages at once, and is judged whole.
 */
async function* guarded(
  events: AsyncGenerator<AgentEvent, string, undefined>,
  guard: Guard | undefined,
): AsyncGenerator<AgentEvent, string, undefined> {
  if (!guard?.output) return yield* events
  try {
    for (;;) {
      const { done, value } = await events.next()
      if (done) return value
      if (value.type === 'piece') continue
      if (value.type === 'message' && value.message.role === 'assistant') {
        const watch = guard.output()
        watch.take({ type: 'text', text: textOf(value.message) })
        watch.end()
      }
      yield value
    }
  } finally {
    await events.return('') // what is not to be heard is not listened to
  }
}

const said = (text: string, { newId }: Bench): Message => ({
  id: newId('msg'),
  role: 'assistant',
  parts: [{ type: 'text', text }],
})
