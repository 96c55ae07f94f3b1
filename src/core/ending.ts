import type { NewId } from '../lib/ids.ts'
import { pendingAsks } from './branch.ts'
import type { Channel } from './channel.ts'
import { type Draft, draft } from './entries.ts'
import { failureOf, isRuntimeError } from './errors.ts'
import { type Leg, LegStop } from './leg.ts'
import { ended, type Run, type ThreadState } from './state.ts'
import type { Expectation } from './store.ts'
import { isLost, triesToDecide } from './thread.ts'

/**
 * Ends a leg in one transition: the run is done, failed, cancelled, waiting for people, or goes on
 * in another leg. Whatever commands came meanwhile are folded first; if one slips in, it looks again.
 */
export async function endOf(leg: Leg, channel: Channel, error?: unknown): Promise<void> {
  const stop = error instanceof LegStop ? error.why : undefined
  if (stop === 'lost') return
  const { thread, lease, run } = leg
  // What was written last goes into the same transition: one sync less for every run.
  const rest = await channel.take()
  for (let tries = 1; ; tries++) {
    if (ended(run) || run.legId !== leg.legId) return channel.offer(rest) // somebody else ended it
    const { drafts, expect } = ending(leg, error, rest)
    const placed = drafts.map((one) => ({ runId: leg.runId, legId: leg.legId, ...one }))
    const guard = { fence: lease.fence, expect }
    try {
      await channel.away(() => thread.commit([...rest, ...placed], { guard, actor: leg.actor }))
      return
    } catch (conflict) {
      if (isLost(conflict)) return channel.offer(rest)
      if (!isRuntimeError(conflict, 'journal_conflict') || tries >= triesToDecide) throw conflict
      await channel.away(() => thread.sync())
    }
  }
}

function ending(
  leg: Leg,
  error: unknown,
  rest: Draft[],
): { drafts: Draft[]; expect: Expectation[] } {
  const { thread, runId, run } = leg
  const { state } = thread
  const open = () => unfinished(state, run, rest)
  const close = () => [...open(), ...cancelledAsks(state, run)]
  const as = (status: Run['status']): Expectation => ({ fact: `run:${runId}`, is: status })
  const stop = error instanceof LegStop ? error.why : undefined
  if (run.status === 'cancelling' || stop === 'cancelled') {
    const drafts = [...close(), draft('run.cancelled', {}), ...next({ state, newId: leg.newId })]
    return { drafts, expect: [as('cancelling'), ...atEnd(state, run)] }
  }
  // A leg that ends before its start is written is still queued.
  const running = as(rest.some((one) => one.kind === 'run.started') ? 'queued' : 'running')
  if (stop === 'handover' || stop === 'again') {
    const drafts = [...open(), ...orphans(state, run), queueAgain(leg, 'handover')]
    return { drafts, expect: [running, ...sameAsks(state, run)] }
  }
  if (stop === 'parked') {
    const expect = [running, ...sameAsks(state, run)]
    const askIds = pendingAsks(state, run).map(({ ask }) => ask.askId)
    const then = askIds.length > 0 ? draft('run.waiting', { askIds }) : queueAgain(leg, 'answers')
    return { drafts: [...open(), then], expect } // branches that did not end in time leave effects open
  }
  const last =
    error === undefined || stop === 'finished'
      ? draft('run.completed', {})
      : draft('run.failed', { error: failureOf(error, 'agent_failed', leg.secrets?.()) })
  const value = isRuntimeError(error, 'guardrail') ? error.data : undefined
  const denied = value ? [draft('event', { name: 'guardrail', value })] : []
  const drafts = [...close(), ...denied, last, ...next({ state, newId: leg.newId })]
  return { drafts, expect: [running, ...atEnd(state, run)] }
}

/** What the end of a run rests on: the line is as it was, and no ask was settled meanwhile. */
export const atEnd = (state: ThreadState, run: Run): Expectation[] => [
  { fact: 'joined', is: state.joined },
  // The next may have been cancelled while it waited: it must not come back (I7).
  ...state.line.slice(0, 1).map((runId) => ({ fact: `run:${runId}`, is: 'queued' })),
  ...sameAsks(state, run),
]

export const sameAsks = (state: ThreadState, run: Run): Expectation[] =>
  run.askIds.map((id) => asFolded(state, id))

export function asFolded(state: ThreadState, askId: string): Expectation {
  const record = state.asks.get(askId)
  return { fact: `ask:${askId}`, is: record?.answer?.state ?? 'pending' }
}

/** Intents of this run that nobody will report on any more, and the texts they had begun. */
export function unfinished(state: ThreadState, run: Run, rest: readonly Draft[] = []): Draft[] {
  const drafts: Draft[] = []
  const reported = new Set(rest.map((one) => ('effectId' in one.body ? one.body.effectId : '')))
  for (const effectId of run.effectIds) {
    const record = state.effects.get(effectId)
    if (record?.state !== 'intended' || reported.has(effectId)) continue
    const { effect, name, callId, messageId } = record.intent
    drafts.push(
      draft('effect.unknown', { effectId, effect, name, ...(callId !== undefined && { callId }) }),
    )
    if (messageId !== undefined && !state.messages.has(messageId)) {
      drafts.push(draft('message.retracted', { ids: [messageId], why: 'interrupted' }))
    }
  }
  return drafts
}

/** Questions that end with their run, except those just settled: nobody needs their answers (I7). */
export function cancelledAsks(state: ThreadState, run: Run, settled: readonly string[] = []) {
  const { runId } = run
  return pendingAsks(state, run)
    .filter(({ ask }) => !settled.includes(ask.askId))
    .map(({ ask }) => draft('ask.answered', { askId: ask.askId, state: 'cancelled' }, { runId }))
}

/** Questions that were asked in the middle of a call: it will not hear the answers any more. */
export const orphans = (state: ThreadState, run: Run): Draft[] => {
  const others = pendingAsks(state, run).filter(({ ask }) => !ask.live)
  const kept = others.map(({ ask }) => ask.askId)
  return cancelledAsks(state, run, kept)
}

/** The next in line gets the thread in the same transition that frees it. */
export function next({ state, newId }: { state: ThreadState; newId: NewId }): Draft[] {
  const runId = state.line[0]
  const run = runId === undefined ? undefined : state.runs.get(runId)
  if (!run) return []
  const { agent } = run
  return [draft('run.queued', { agent, why: 'next' }, { runId: run.runId, legId: newId('leg') })]
}

export const queueAgain = (leg: Leg, why: 'answers' | 'handover'): Draft =>
  draft('run.queued', { agent: leg.run.agent, why }, { legId: leg.newId('leg') })
