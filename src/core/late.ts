import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { Work } from '../lib/work.ts'
import type { AgentEvent } from './agent.ts'
import { queueNextLeg, relied } from './asks.ts'
import { pendingAsks } from './branch.ts'
import type { Spool } from './channel.ts'
import { type Actor, type Body, type Draft, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { textOf } from './messages.ts'
import { type EffectRecord, ended, type Run, type ThreadState } from './state.ts'
import { decide, isAway, isLost, type Thread } from './thread.ts'

/** The outcome of a tool call or a remote leg that the leg that made it can no longer record. */
export type LateOutcome = Draft<'effect.done' | 'effect.failed'>

/** The attempt of a remote leg to which an outcome belongs, and the condition for recording it. */
export interface RemoteAttempt {
  attempt: number
  /** Another leg may find the work at the remote and continue it. Record the outcome only if it has asked a person. */
  onlyIfAsked: boolean
}

interface Setup {
  clock: Clock
  newId: NewId
  spool?: Spool | undefined
  ring: (threadId: string) => void
  log: { warn(about: object, message: string): void }
}

/** Milliseconds between two attempts to record a late outcome: the first and the longest. */
const firstWait = 100
const longestWait = 5_000
/**
 * Milliseconds, beyond the timeout of the effect, after which a late outcome stays in the spool only, and after which
 * a server that stops waits for no call.
 */
const giveUpAfter = 10 * 60_000

const actor: Actor = { type: 'system', id: 'late_result' }

/**
 * Records outcomes of tool calls and remote legs after the fact: the call timed out, or its leg
 * ended or lost its fence. The outcome is evidence, so no fence is needed. The store accepts it only while
 * the effect is in doubt. It settles the open question about the effect and queues the next leg. The spool
 * keeps it until it is recorded. The outcome of a remote leg is refused once a person has decided, or once
 * another attempt has begun.
 */
export function lateOutcomes({ clock, newId, spool, ring, log }: Setup) {
  const offer = async (thread: Thread, outcome: LateOutcome, remote?: RemoteAttempt) => {
    const { threadId } = thread
    const { effectId, effect } = outcome.body
    const about = { threadId, effectId, effect }
    await spool?.save(effectId, { ...evidenceOf(outcome), at: clock.now() }).catch(() => {})
    const since = clock.monotonic()
    let result = await settle(thread, outcome, newId, remote)
    for (let wait = firstWait; result === 'not_yet'; wait = Math.min(wait * 2, longestWait)) {
      const { timeout = 0 } = thread.state.effects.get(effectId)?.intent ?? {}
      if (clock.monotonic() - since > giveUpAfter + timeout) {
        log.warn(about, 'late outcome could not be recorded')
        return
      }
      await waitForChange(thread, effectId, wait, clock)
      result = await settle(thread, outcome, newId, remote)
    }
    await spool?.remove(effectId).catch(() => {})
    if (result === 'refused') log.warn(about, 'outcome arrived after it was decided')
    else {
      await answerMissed(thread, outcome, newId).catch((error: unknown) =>
        log.warn({ ...about, err: error }, 'question about a settled effect could not be answered'),
      )
      ring(threadId)
    }
  }
  const within = async (ms: number, work: () => Promise<void>): Promise<void> => {
    const over = new AbortController()
    await Promise.race([work(), clock.sleep(ms, over.signal).catch(() => {})])
    over.abort('over')
  }
  const offers = new Work()
  /** Calls that still run after their legs gave them up, with the times when they were given up. */
  const calls = new Map<Promise<void>, number>()
  const dropOld = () => {
    for (const [call, since] of calls)
      if (clock.monotonic() - since > giveUpAfter) calls.delete(call)
  }
  return {
    offer(thread: Thread, outcome: LateOutcome, remote?: RemoteAttempt): void {
      const offered = offer(thread, outcome, remote).catch((error: unknown) =>
        log.warn({ threadId: thread.threadId, err: error }, 'late outcome could not be recorded'),
      )
      void offers.add(offered)
    },
    /** Remembers a call that still runs. Its outcome is offered before the promise resolves. */
    await(call: Promise<void>): void {
      dropOld()
      calls.set(call, clock.monotonic())
      const forget = () => calls.delete(call)
      call.then(forget, forget)
    },
    /** Resolves when the calls that still run have returned and every offered outcome is recorded, or after `ms`. */
    async returned(ms: number): Promise<void> {
      if (ms <= 0) return
      dropOld()
      await within(ms, async () => {
        await Promise.allSettled(calls.keys())
        await offers.over()
      })
    },
    /** Resolves when every outcome that was offered is recorded, or after `ms`. */
    recorded: (ms: number): Promise<void> => within(ms, () => offers.over()),
  }
}

/** Resolves when an entry about the effect is folded, after `ms`, or when the signal fires. */
export async function waitForChange(
  thread: Thread,
  effectId: string,
  ms: number,
  clock: Clock,
  signal?: AbortSignal,
): Promise<void> {
  const changed = new AbortController()
  const wake = () => changed.abort('changed')
  const unlisten = thread.listen(({ body }) => {
    if ('effectId' in body && body.effectId === effectId) wake()
    // Remote legs with a look() are settled once there is a question about them.
    if ('ask' in body && body.ask.effectId === effectId) wake()
  })
  signal?.addEventListener('abort', wake, { once: true })
  if (signal?.aborted) wake()
  await clock.sleep(ms, changed.signal).catch(() => {})
  signal?.removeEventListener('abort', wake)
  unlisten()
}

/** `not_yet`: the effect is not in doubt yet, or the store is unavailable. `refused`: it was settled otherwise. */
async function settle(
  thread: Thread,
  outcome: LateOutcome,
  newId: NewId,
  remote?: RemoteAttempt,
): Promise<'settled' | 'refused' | 'not_yet'> {
  try {
    await thread.sync()
    return await decide(thread, () => {
      const { state } = thread
      const { effectId } = outcome.body
      const record = state.effects.get(effectId)
      const run = state.runs.get(record?.runId ?? '')
      if (!record || !run) return { result: 'refused' as const }
      if (remote && record.intent.attempt !== remote.attempt) return { result: 'refused' as const }
      if (record.state === 'intended') return { result: 'not_yet' as const }
      if (record.state !== 'unknown') return { result: 'refused' as const }
      if (remote && isDecided(state, run, record)) return { result: 'refused' as const }
      const { asked, drafts } = answersFor(state, run, outcome, newId)
      if (remote?.onlyIfAsked && !asked && !ended(run)) return { result: 'not_yet' as const }
      const expect = [
        { fact: `effect:${effectId}`, is: 'unknown' },
        ...(asked || remote ? relied(state, run) : []),
      ]
      const settled = [remote ? forRun(outcome, state, run) : outcome, ...drafts]
      return { drafts: settled, writing: { guard: { expect }, actor }, result: 'settled' as const }
    })
  } catch (error) {
    if (isLost(error)) return 'refused' // the thread was erased
    if (isAway(error) || isRuntimeError(error, 'journal_conflict')) return 'not_yet'
    throw error
  }
}

/** Answers the open questions about the effect and, if no other is open, queues the next leg. */
function answersFor(state: ThreadState, run: Run, outcome: LateOutcome, newId: NewId) {
  const { effectId } = outcome.body
  const asked = pendingAsks(state, run).filter(({ ask }) => ask.effectId === effectId)
  const askIds = new Set(asked.map(({ ask }) => ask.askId))
  const answers = [...askIds].map((askId) =>
    draft('ask.answered', answerFor(askId, outcome), { runId: run.runId }),
  )
  const next = askIds.size > 0 ? queueNextLeg(state, run, newId, askIds) : []
  return { asked: askIds.size > 0, drafts: [...answers, ...next] }
}

/** Answers a question that another server raised while the outcome was being recorded. */
async function answerMissed(thread: Thread, outcome: LateOutcome, newId: NewId): Promise<void> {
  await thread.sync()
  await decide(thread, () => {
    const { state } = thread
    const run = state.runs.get(state.effects.get(outcome.body.effectId)?.runId ?? '')
    if (!run) return { result: undefined }
    const { asked, drafts } = answersFor(state, run, outcome, newId)
    if (!asked) return { result: undefined }
    return { drafts, writing: { guard: { expect: relied(state, run) }, actor }, result: undefined }
  })
}

/** Whether a question about this attempt was decided. A question that was cancelled with its run was not decided. */
const isDecided = ({ asks }: ThreadState, { askIds }: Run, { intent }: EffectRecord): boolean =>
  askIds.some((askId) => {
    const { ask, answer } = asks.get(askId)!
    const same = ask.effectId === intent.effectId && ask.key === doubtKey(intent)
    return same && answer !== null && answer.state !== 'cancelled'
  })

/** The key of the question about an attempt of a remote leg. */
export const doubtKey = ({
  effectId,
  attempt,
}: Pick<Body<'effect.intended'>, 'effectId' | 'attempt'>): string => `doubt:${effectId}:${attempt}`

/**
 * Returns the outcome without the messages that the thread already has. For a run that was cancelled or is complete,
 * returns only the settlement: no message is shown (I7), and no later run continues from the output.
 */
function forRun(outcome: LateOutcome, { messages }: ThreadState, run: Run): LateOutcome {
  if (outcome.kind === 'effect.failed') return outcome
  const { unrecorded = [], output, ...body } = outcome.body
  const { status } = run
  const over = status === 'cancelling' || (ended(run) && status !== 'failed')
  if (over) return { ...outcome, body }
  const left = (unrecorded as AgentEvent[]).filter(
    (event) => event.type !== 'message' || !messages.has(event.message.id),
  )
  const some = left.some(({ type }) => type === 'message')
  return { ...outcome, body: { ...body, output, ...(some && { unrecorded: left }) } }
}

const answerFor = (askId: string, { kind, body: { effect } }: LateOutcome) => ({
  askId,
  state: 'answered' as const,
  ...(kind === 'effect.done' && { outcome: 'happened' as const }),
  reason: `The ${effect === 'remote' ? 'remote agent' : 'tool'} reported the outcome of the call.`,
})

function evidenceOf(outcome: LateOutcome): { output: string } | { error: string } {
  if (outcome.kind === 'effect.failed') return { error: outcome.body.error.message }
  const { output = '', unrecorded } = outcome.body
  if (!unrecorded) return { output }
  const events = unrecorded as AgentEvent[]
  const texts = events.flatMap((event) => (event.type === 'message' ? textOf(event.message) : []))
  return { output: texts.filter((text) => text !== '').join('\n\n') }
}
