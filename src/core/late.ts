import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { Work } from '../lib/work.ts'
import { queueNextLeg, relied } from './asks.ts'
import { pendingAsks } from './branch.ts'
import type { Spool } from './channel.ts'
import { type Actor, type Draft, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { decide, isAway, isLost, type Thread } from './thread.ts'

/** The outcome of a tool call that the leg that made the call can no longer record. */
export type LateOutcome = Draft<'effect.done' | 'effect.failed'>

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
/** Milliseconds after which a late outcome stays in the spool only. */
const giveUpAfter = 10 * 60_000

const actor: Actor = { type: 'system', id: 'late_result' }

/**
 * Records outcomes of tool calls after the fact: the call timed out, or its leg
 * ended or lost its fence. The outcome is evidence, so no fence is needed. The store accepts it only while
 * the effect is in doubt. It settles the open question about the effect and queues the next leg. The spool
 * keeps it until it is recorded.
 */
export function lateOutcomes({ clock, newId, spool, ring, log }: Setup) {
  const offer = async (thread: Thread, outcome: LateOutcome): Promise<void> => {
    const { threadId } = thread
    const { effectId } = outcome.body
    await spool?.save(effectId, { ...evidenceOf(outcome), at: clock.now() }).catch(() => {})
    const since = clock.monotonic()
    let result = await settle(thread, outcome, newId)
    for (let wait = firstWait; result === 'not_yet'; wait = Math.min(wait * 2, longestWait)) {
      if (clock.monotonic() - since > giveUpAfter) {
        log.warn({ threadId, effectId }, 'late outcome of a tool call could not be recorded')
        return
      }
      await waitForChange(thread, effectId, wait, clock)
      result = await settle(thread, outcome, newId)
    }
    await spool?.remove(effectId).catch(() => {})
    if (result === 'settled') ring(threadId)
    else log.warn({ threadId, effectId }, 'outcome of a tool call arrived after it was decided')
  }
  const offers = new Work()
  return {
    offer(thread: Thread, outcome: LateOutcome): void {
      const offered = offer(thread, outcome).catch((error: unknown) =>
        log.warn({ threadId: thread.threadId, err: error }, 'late outcome could not be recorded'),
      )
      void offers.add(offered)
    },
    /** Resolves when every outcome that was offered is recorded, or after `ms`. */
    async recorded(ms: number): Promise<void> {
      const over = new AbortController()
      await Promise.race([offers.over(), clock.sleep(ms, over.signal).catch(() => {})])
      over.abort('over')
    },
  }
}

/** Resolves when an entry about the effect is folded, or after `ms`. */
async function waitForChange(
  thread: Thread,
  effectId: string,
  ms: number,
  clock: Clock,
): Promise<void> {
  const changed = new AbortController()
  const unlisten = thread.listen(({ body }) => {
    if ('effectId' in body && body.effectId === effectId) changed.abort('changed')
  })
  await clock.sleep(ms, changed.signal).catch(() => {})
  unlisten()
}

/** `not_yet`: the effect is not in doubt yet, or the store is unavailable. `refused`: it was settled otherwise. */
async function settle(
  thread: Thread,
  outcome: LateOutcome,
  newId: NewId,
): Promise<'settled' | 'refused' | 'not_yet'> {
  try {
    await thread.sync()
    return await decide(thread, () => {
      const { state } = thread
      const { effectId } = outcome.body
      const record = state.effects.get(effectId)
      const run = state.runs.get(record?.runId ?? '')
      if (!record || !run) return { result: 'refused' as const }
      if (record.state === 'intended') return { result: 'not_yet' as const }
      if (record.state !== 'unknown') return { result: 'refused' as const }
      const asked = pendingAsks(state, run).filter(({ ask }) => ask.effectId === effectId)
      const askIds = new Set(asked.map(({ ask }) => ask.askId))
      const answers = [...askIds].map((askId) =>
        draft('ask.answered', answerFor(askId, outcome), { runId: run.runId }),
      )
      const next = askIds.size > 0 ? queueNextLeg(state, run, newId, askIds) : []
      const expect = [
        { fact: `effect:${effectId}`, is: 'unknown' },
        ...(askIds.size > 0 ? relied(state, run) : []),
      ]
      const drafts = [outcome, ...answers, ...next]
      return { drafts, writing: { guard: { expect }, actor }, result: 'settled' as const }
    })
  } catch (error) {
    if (isLost(error)) return 'refused' // the thread was erased
    if (isAway(error) || isRuntimeError(error, 'journal_conflict')) return 'not_yet'
    throw error
  }
}

const answerFor = (askId: string, { kind }: LateOutcome) => ({
  askId,
  state: 'answered' as const,
  ...(kind === 'effect.done' && { outcome: 'happened' as const }),
  reason: 'The tool reported the outcome of the call.',
})

const evidenceOf = (outcome: LateOutcome) =>
  outcome.kind === 'effect.done'
    ? { output: outcome.body.output ?? '' }
    : { error: outcome.body.error.message }
