import { digestOf } from '../lib/canonical.ts'
import { offshoot } from '../lib/signal.ts'
import type { AgentEvent } from './agent.ts'
import { askUnder } from './asked.ts'
import { branch } from './branch.ts'
import { countdown } from './countdown.ts'
import { type Bench, effectKey, placed, workerOf } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { failureOf, RuntimeError, toRuntimeError } from './errors.ts'
import { notBegun } from './execute.ts'
import { type GovernorRules, reserve } from './governor.ts'
import type { Guard } from './guard.ts'
import { isStop, LegStop, mayHandOver } from './leg.ts'
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
    const held = channel.away(() => leg.lease.hold()).then(() => leg.signal.throwIfAborted())
    await held.catch((error: unknown) => {
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
    const late = `The remote agent was not done after ${call.timeout / 1_000} s.`
    const error = time.signal.aborted
      ? new RuntimeError('remote_timeout', late)
      : toRuntimeError(thrown, 'agent_failed')
    await retractOpen(leg, channel, error.code)
    channel.write(draft('effect.failed', { ...about, error: failureOf(error) }))
    throw error
  } finally {
    over.abort()
    leave()
  }
}

const stopped = { code: 'cancelled', message: 'Stopped while it was at work.' }

type Fate = 'run' | 'rejoin' | 'skip' | { result: string }

/** What is to be done about a leg that may have been begun before. */
async function fateOf(
  record: EffectRecord | undefined,
  call: RemoteCall,
  bench: Bench,
): Promise<Fate> {
  // What failed is done again only in a run that somebody wants again.
  if (!record || record.state === 'failed') return 'run'
  const { leg, clock } = bench
  const { effectId, attempt, timeout = call.timeout } = record.intent
  const found = await call.look?.({ effectId, attempt }, leg.signal)
  if (found === 'there') return 'rejoin'
  if (found === 'absent' || call.idempotent) return 'run'
  const key = `doubt:${effectId}:${attempt}`
  const asked = askUnder(bench, key)
  if (asked) {
    if (!asked.answer) throw new LegStop('parked')
    const { outcome, value } = asked.answer
    if (outcome === 'happened') return { result: asText(value ?? '') }
    return outcome === 'did_not' ? 'run' : 'skip'
  }
  // It may still be at work there: nobody can say yet what became of it.
  const until = record.at + timeout
  if (clock.now() < until) await clock.sleep(until - clock.now(), leg.signal)
  const later = await call.look?.({ effectId, attempt }, leg.signal)
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
