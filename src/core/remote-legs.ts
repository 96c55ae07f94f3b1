import { digestOf } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import type { AgentEvent } from './agent.ts'
import { branch } from './branch.ts'
import { countdown } from './countdown.ts'
import { type Bench, effectKey, placed, workerOf } from './effects.ts'
import { draft } from './entries.ts'
import {
  type ErrorCode,
  failureOf,
  isRuntimeError,
  RuntimeError,
  toRuntimeError,
} from './errors.ts'
import { notBegun } from './execute.ts'
import { type GovernorRules, reserve } from './governor.ts'
import type { Guard } from './guard.ts'
import type { LateOutcome } from './late.ts'
import { holdLease, isStop, LegStop, mayHandOver } from './leg.ts'
import { type Message, textOf } from './messages.ts'
import { type RemoteCall, type RemoteEnd, type RemoteLine, remoteCalls } from './remote.ts'
import { afterStart, fateOf } from './remote-fate.ts'
import { Transcript, unrecordedOf } from './remote-transcript.ts'
import { retractOpen } from './retract.ts'
import type { EffectRecord } from './state.ts'

export interface RemoteRules {
  governor: GovernorRules
  guard?: Guard | undefined
  /** See `Toolbox`. */
  evidence: (effectId: string) => Promise<unknown>
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
    effectIds.map((id) => effects.get(id)!).filter((one) => isOurs(one) && isRecorded(one))
  // A leg that was recorded late for a cancelled run has no output. Later legs do not continue from it.
  const isRecorded = (one: EffectRecord) =>
    one.state === 'done' &&
    one.output !== undefined &&
    unrecordedOf(one, leg.thread.state).length === 0
  /** The number of recorded legs when the agent read the last one. */
  let ordinal: number | undefined
  return {
    last() {
      const done = doneOf(leg.run)
      ordinal = done.length
      return endOf(done.at(-1))
    },
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
    leg(call) {
      // A leg that was recorded late since `last()` is replayed. With the next ordinal, it would be requested again.
      const at = ordinal ?? doneOf(leg.run).length
      ordinal = undefined
      return remoteLeg(name, at, call, rules, bench)
    },
  }
}

const endOf = (record: EffectRecord | undefined): RemoteEnd | undefined =>
  record && { effectId: record.intent.effectId, output: record.output ?? '' }

async function* remoteLeg(
  name: string,
  ordinal: number,
  call: RemoteCall,
  { governor, guard, evidence }: RemoteRules,
  bench: Bench,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { leg, channel, clock } = bench
  // Not by the last message: a leg that was cut may have left some, and is still the same leg.
  const { key, effectId } = effectKey(leg.runId, '', placed(bench, `remote:${name}`), ordinal)
  const about = { effectId, effect: 'remote' as const, name }
  const record = leg.thread.state.effects.get(effectId)
  const fate = await fateOf(record, call, evidence, bench)
  const attempt = (record?.intent.attempt ?? 0) + (fate === 'run' ? 1 : 0)
  if (fate === 'skip') {
    const error = new RuntimeError('remote_cut', 'Whether the remote agent did it is not known.')
    channel.write(draft('effect.failed', { ...about, error: failureOf(error) }))
    throw error
  }
  if (typeof fate === 'object' && 'unrecorded' in fate) {
    yield* guarded(replay(fate.unrecorded), guard)
    await channel.commit() // the next leg reads the messages
    return
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
  const { signal, leave } = stopSignal(leg.signal, time.signal, call.timeout, clock)
  const transcript = new Transcript()
  /** The output, once the remote has finished. */
  let ended: string | undefined
  const failedWith = (error: unknown) =>
    draft('effect.failed', { ...about, error: failureOf(error, 'agent_failed', leg.secrets?.()) })
  /** Evidence for another leg. Undefined if the outcome is not certain, or too large to be offered. */
  const failureIn = (thrown: unknown) => (isReported(thrown) ? failedWith(thrown) : undefined)
  const doneWith = (output: string) => {
    const unrecorded = transcript.events()
    return unrecorded && draft('effect.done', { ...about, output, unrecorded })
  }
  const offer = (outcome: LateOutcome | undefined) => {
    if (!outcome || call.idempotent) return // an idempotent leg is run again
    leg.late(outcome, { attempt, onlyIfAsked: call.look !== undefined })
  }
  try {
    const events = call.work({ effectId, attempt, signal, rejoin: fate === 'rejoin' })
    const output = yield* transcript.of(metered(guarded(events, guard), effectId, bench))
    signal.throwIfAborted() // it may stop quietly
    ended = output
    bench.crash('effect.ran')
    await channel.commit(draft('effect.done', { ...about, output })) // what comes next looks for it
  } catch (thrown) {
    const cancelled = isStop(leg.signal.reason, 'cancelled')
    if (leg.signal.aborted) {
      if (!cancelled) offer(ended === undefined ? failureIn(thrown) : doneWith(ended))
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
      channel.write(
        fate === 'rejoin'
          ? draft('effect.unknown', about)
          : draft('effect.failed', { ...about, error: notBegun }),
      )
      throw thrown
    }
    const late = `The remote agent was not done after ${call.timeout / 1_000} s.`
    const error = signal.aborted
      ? new RuntimeError('remote_timeout', late)
      : afterStart(fate, toRuntimeError(thrown, 'agent_failed'))
    const told = call.idempotent && outcomeUnknown.has(error.code) ? repeatable(error) : error
    const failed = failedWith(told)
    try {
      await retractOpen(leg, channel, told.code)
      if (isReported(told)) await channel.commit(failed)
      else channel.write(failed)
    } catch (reason) {
      if (!isStop(leg.signal.reason, 'cancelled')) offer(failureIn(told))
      throw reason
    }
    throw told
  } finally {
    over.abort()
    leave()
  }
}

/** Milliseconds in which a server that lost the thread or was suspended reads the rest of an answer. */
const readLimit = 2_000
/** A timer that fires this many milliseconds late belongs to a process that was suspended or blocked. */
const suspended = 100

/**
 * The signal that stops the work of a leg: the leg's own, or the end of its time. It fires `readLimit` later if
 * the leg has lost its lease or the process was suspended when the time ended: the complete answer may be in the
 * socket already. The leg cannot start anything in that time, see `holdLease`.
 */
function stopSignal(leg: AbortSignal, time: AbortSignal, timeout: number, clock: Clock) {
  const own = new AbortController()
  const startedAt = clock.monotonic()
  const cancels: (() => void)[] = []
  const follow = (one: AbortSignal, isDelayed: () => boolean) => {
    const fire = () => own.abort(one.reason)
    const stop = () => void (isDelayed() ? cancels.push(clock.timer(readLimit, fire)) : fire())
    if (one.aborted) stop()
    else one.addEventListener('abort', stop, { once: true })
    cancels.push(() => one.removeEventListener('abort', stop))
  }
  follow(leg, () => isStop(leg.reason, 'lost'))
  follow(time, () => clock.monotonic() - startedAt > timeout + suspended)
  const leave = () => {
    for (const cancel of cancels) cancel()
  }
  return { signal: own.signal, leave }
}

/** Whether the remote itself reported the failure. Only then is the failure certain. */
const isReported = (error: unknown): boolean => isRuntimeError(error, 'remote_failed')

async function* replay(
  events: readonly AgentEvent[],
): AsyncGenerator<AgentEvent, string, undefined> {
  yield* events
  return ''
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
