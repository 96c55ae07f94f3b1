import { sharedAbort } from '../lib/signal.ts'
import { oneByOne } from '../lib/turn.ts'
import { Work } from '../lib/work.ts'
import { expire } from './asks.ts'
import { historyFor } from './branch.ts'
import { CallIds } from './call-ids.ts'
import { finishCancel } from './cancel.ts'
import { Channel, type Spool } from './channel.ts'
import { type AgentSetup, contextOf } from './context.ts'
import { drive } from './driver.ts'
import type { Bench } from './effects.ts'
import { atEnd, cancelledAsks, next, orphans, sameAsks, unfinished } from './ending.ts'
import { type Actor, type Draft, draft } from './entries.ts'
import { lateOutcomes } from './late.ts'
import { type Heartbeat, isStop, type Lease, type Leg, LegStop } from './leg.ts'
import { cancelGrace } from './marks.ts'
import { recall } from './recall.ts'
import type { RunSecrets } from './secrets.ts'
import type { Run } from './state.ts'
import type { Expectation, Slots } from './store.ts'
import { decide, isAway, isLost, type Surroundings, type Thread } from './thread.ts'
import { troubleOf } from './trouble.ts'

export interface WorkerSetup extends Surroundings {
  serverId: string
  leaseTtl: number
  maxLegs: number
  slots?: Slots
  spool?: Spool
  heartbeat: Heartbeat
  /** No more legs are taken. */
  leaving: AbortSignal
  closing: AbortSignal
  secrets: RunSecrets
  agent: (name: string) => AgentSetup
  open: (threadId: string) => Promise<Thread>
  /** Tells the outside what it is to know of a thread, in its own time. */
  offer: (thread: Thread) => void
  /** Has the thread looked at again, at once or at a time. */
  ring: (threadId: string, at?: number) => void
  log: Log
}

/** The few words core says; pino fits. */
export interface Log {
  info(about: object, message: string): void
  warn(about: object, message: string): void
  error(about: object, message: string): void
}

/** Threads that wait for room and are remembered; the others are looked at again in a while. */
const waitingLimit = 10_000

/** Milliseconds in which a leg that a command queued is left to the server that took the command. */
const headStart = 300
const claimAgain = 30

/** Taken up this often after crashes without getting anywhere, a run is ended. */
const recoveryLimit = 10

/** Looks at threads: settles what is due and drives the legs that wait, one driver per thread (I6). */
export class Worker {
  readonly #setup: WorkerSetup
  readonly #driving = new Map<string, { done: Promise<void>; leg?: Leg }>()
  /** Threads for whose legs there was no room, the longest wait first. */
  readonly #waiting = new Set<string>()
  /** Threads that a command came for, to this server. */
  readonly #expected = new Set<string>()
  readonly #late: ReturnType<typeof lateOutcomes>
  #places = 0

  constructor(setup: WorkerSetup) {
    this.#setup = setup
    this.#late = lateOutcomes(setup)
  }

  get driving(): number {
    return this.#driving.size
  }

  /** Whether this server can drive one more leg. */
  get hasRoom(): boolean {
    return this.#places < this.#setup.maxLegs && !this.#setup.leaving.aborted
  }

  /** A command came to this server: what it queued is for us to drive. */
  expect(threadId: string): void {
    if (!this.#setup.store.shared || !this.hasRoom) return
    if (this.#expected.size < waitingLimit) this.#expected.add(threadId)
  }

  /** Does what the thread needs now; legs go on in the background. Gives the next time to look. */
  async look(threadId: string): Promise<number | undefined> {
    const { clock, newId, leaving, log, heartbeat } = this.#setup
    const thread = await this.#setup.open(threadId)
    await thread.sync()
    const { state } = thread
    const synced = state.seq
    await expire(thread, clock.now(), newId)
    const settled = state.seq > synced
    this.#setup.secrets.dropEnded(state)
    if (state.hooks.size > 0) this.#setup.offer(thread)
    await this.#overdue(thread)
    this.#waiting.delete(threadId)
    if (this.#driving.has(threadId)) return nextLook(thread, clock.now())
    const ours = this.#expected.delete(threadId) || settled
    if (state.leg !== null) {
      if (leaving.aborted) return clock.now() + 100 // for another server
      const theirs = ours ? undefined : this.#theirsUntil(thread)
      if (theirs !== undefined) return theirs
      const taken = await this.#take(thread, state.leg, ours)
      if ('again' in taken) return taken.again
      const { fence, claimedAt, leave } = taken
      const before = state.seq
      const done = this.#drive(thread, heartbeat.lease(fence, claimedAt))
        .catch((error: unknown) => {
          if (isLost(error)) log.warn({ threadId }, 'another driver took the thread')
          else if (isAway(error) || isStop(error, 'handover'))
            log.warn({ threadId, err: error }, 'the store is away; the leg waits')
          else log.error({ threadId, err: error }, 'leg failed to be driven')
        })
        .finally(() => {
          this.#driving.delete(threadId)
          leave()
          // A leg may have been queued while this one was ending. What got nowhere waits a while.
          this.#setup.ring(threadId, state.seq > before ? undefined : clock.now() + 1_000)
          this.#next()
        })
      this.#driving.set(threadId, { done })
    }
    return nextLook(thread, clock.now())
  }

  /** The lease, and room to drive; or when to look again. */
  async #take(
    thread: Thread,
    legId: string,
    ours: boolean,
  ): Promise<{ fence: number; claimedAt: number; leave: () => void } | { again: number }> {
    const { store, clock, serverId, leaseTtl, leaving } = this.#setup
    const { threadId, state } = thread
    // A leg that has begun is most likely being driven: whether it is, the lease knows.
    const begun = state.runs.get(state.active ?? '')?.status !== 'queued'
    let leave = begun ? undefined : await this.#room(thread, legId)
    if (!begun && !leave) return { again: clock.now() + 1_000 }
    try {
      const claim = async () => {
        const claimedAt = clock.monotonic()
        const claimed = await store.claim(threadId, serverId, leaseTtl)
        return claimed && { ...claimed, claimedAt }
      }
      let claimed = await claim()
      // Whoever drove the leg before is about to let go.
      for (let since = clock.monotonic(); ours && !begun && !claimed; ) {
        if (leaving.aborted || clock.monotonic() - since > headStart) break
        await clock.sleep(claimAgain)
        claimed = await claim()
      }
      if (claimed) leave ??= await this.#room(thread, legId)
      if (claimed && leave) return { ...claimed, leave }
      if (claimed) await store.release(threadId, claimed.fence)
      leave?.()
      return { again: clock.now() + (claimed ? 1_000 : leaseTtl) }
    } catch (error) {
      leave?.()
      throw error
    }
  }

  /** Until when another server may take what came to it; undefined when it is anybody's. */
  #theirsUntil({ state }: Thread): number | undefined {
    const { store, clock } = this.#setup
    const run = state.runs.get(state.active ?? '')
    if (!store.shared || run?.status !== 'queued' || run.queued.fence > 0) return undefined
    const left = run.queued.at + headStart - clock.now()
    return left > 0 && left <= headStart ? run.queued.at + headStart : undefined
  }

  /** Room for a leg, here and in all; without it, the thread waits until there may be. */
  async #room({ threadId, state }: Thread, legId: string): Promise<(() => void) | undefined> {
    const { maxLegs, slots } = this.#setup
    if (this.#places < maxLegs) {
      this.#places++ // before asking: others ask meanwhile
      const leave = slots ? await slots.take(state.tenant, legId) : () => {}
      if (leave)
        return () => {
          this.#places--
          leave()
        }
      this.#places--
    }
    if (this.#waiting.size < waitingLimit) this.#waiting.add(threadId)
    return undefined
  }

  /** There is room again. */
  #next(): void {
    for (const threadId of this.#waiting) {
      this.#waiting.delete(threadId)
      this.#setup.ring(threadId)
      return
    }
  }

  /** Resolves when nothing is driven any more, or `wait` later. */
  async drained(wait: number): Promise<void> {
    const { clock } = this.#setup
    const over = new AbortController()
    const late = clock.sleep(wait, over.signal).catch(() => {})
    // A look that was under way may have begun one more.
    const done = async () => {
      while (this.#driving.size > 0 && !over.signal.aborted)
        await Promise.all([...this.#driving.values()].map((one) => one.done))
    }
    await Promise.race([done(), late])
    over.abort('over')
  }

  /** Resolves when the tool calls that legs gave up have returned and their outcomes are recorded, or `wait` later. */
  lateReturned = (wait: number): Promise<void> => this.#late.returned(wait)

  /** Stops what is still driven where it is: its effects are cut, and in doubt where that matters. */
  async cut(): Promise<void> {
    for (const { leg } of this.#driving.values()) leg?.abort.abort(new LegStop('handover'))
    await this.drained(3_000)
    await this.#late.recorded(1_000)
  }

  async #drive(thread: Thread, lease: Lease): Promise<void> {
    const { store, leaving, crash } = this.#setup
    const { threadId, state } = thread
    crash('leg.claimed')
    try {
      await thread.sync()
      while (state.leg !== null && !leaving.aborted) {
        const run = state.runs.get(state.active ?? '')
        if (!run) return
        if (run.status === 'cancelling') await finishCancel(thread, lease.fence, this.#setup.newId)
        else if (run.status === 'running') await this.#recover(thread, run, lease)
        else if (!(await this.#leg(thread, run, lease))) return
        if (!this.#expected.has(threadId) && this.#theirsUntil(thread) !== undefined) return
      }
    } finally {
      await store.release(threadId, lease.fence).catch(() => {})
    }
  }

  /** One leg; false when it was lost to another driver. */
  async #leg(thread: Thread, run: Run, lease: Lease): Promise<boolean> {
    const { clock, newId, crash, spool, leaving, closing, log, secrets } = this.#setup
    const { runId, legId } = run
    const abort = sharedAbort()
    const actor: Actor = { type: 'agent', id: run.agent }
    const { signal } = abort
    const late: Leg['late'] = (outcome, remote) =>
      this.#late.offer(thread, { runId, legId, ...outcome }, remote)
    const leg: Leg = {
      late,
      awaitLate: this.#late.await,
      thread,
      run,
      runId,
      legId,
      lease,
      actor,
      newId,
      clock,
      abort,
      signal,
      leaving,
      closing,
      secrets: () => secrets.textsOf(runId),
    }
    const about = { threadId: thread.threadId, runId, legId }
    const channel = new Channel(leg, clock, spool)
    const messages = historyFor(thread.state, run)
    const tools = { clock, newId, crash, random: Math.random, secrets }
    const { agent: agents, store } = this.#setup
    const shared: Pick<Bench, 'turn' | 'callIds' | 'work' | 'agents' | 'recall'> = {
      turn: oneByOne(),
      callIds: new CallIds(),
      work: new Work(),
      agents,
      recall: (query, until) => recall(store, thread.state, query, until),
    }
    const report: Bench['report'] = (error, more, message) =>
      log.warn({ ...about, ...more, ...troubleOf(error, leg.secrets?.()) }, message)
    const bench: Bench = { leg, channel, messages, report, ...shared, ...tools }
    const driving = this.#driving.get(thread.threadId)
    if (driving) driving.leg = leg
    log.info(about, 'leg begins')
    const setup = this.#setup.agent(run.agent)
    const { retry } = setup.rules
    await drive(leg, setup.agent, () => contextOf(setup, bench), { ...bench, channel, retry })
    log.info({ ...about, status: run.status }, 'leg ends')
    // Neither begun nor ended by us: another driver has the thread.
    return run.legId !== legId || (run.status !== 'running' && run.status !== 'queued')
  }

  /** A leg without a driver: what it had begun is in doubt, and the run goes on in a new leg. */
  async #recover(thread: Thread, run: Run, lease: Lease): Promise<void> {
    const { newId, log } = this.#setup
    const { runId } = run
    log.warn(
      { threadId: thread.threadId, runId, legId: run.legId },
      'taking up a leg after a crash',
    )
    await decide(thread, () => {
      if (run.status !== 'running') return { result: undefined }
      const { state } = thread
      const at = { runId, legId: newId('leg') }
      const drafts: Draft[] = unfinished(state, run).map((one) => ({ ...one, ...at }))
      const expect: Expectation[] = [{ fact: `run:${runId}`, is: 'running' }]
      if (run.recoveries < recoveryLimit) {
        drafts.push(...orphans(state, run))
        drafts.push(draft('run.queued', { agent: run.agent, why: 'recover' }, at))
        expect.push(...sameAsks(state, run))
      } else {
        const message = `The server stopped ${run.recoveries} times while running this.`
        const failed = draft('run.failed', { error: { code: 'agent_failed', message } }, at)
        drafts.push(...cancelledAsks(state, run), failed, ...next({ state, newId }))
        expect.push(...atEnd(state, run))
      }
      const actor: Actor = { type: 'system', id: 'recovery' }
      return {
        drafts,
        writing: { guard: { fence: lease.fence, expect }, actor },
        result: undefined,
      }
    })
  }

  /** A driver that did not stop in time loses its lease, and the end is written for it. */
  async #overdue(thread: Thread): Promise<void> {
    const { store, clock, newId, serverId, leaseTtl } = this.#setup
    const run = thread.state.runs.get(thread.state.active ?? '')
    if (run?.status !== 'cancelling') return
    // A long negative time: the clock was set back.
    if (Math.abs(clock.now() - (run.cancellingAt ?? 0)) < cancelGrace) return
    const claimed = await store.claim(thread.threadId, serverId, leaseTtl, true)
    if (!claimed) return
    await finishCancel(thread, claimed.fence, newId)
    await store.release(thread.threadId, claimed.fence)
  }
}

function nextLook({ state }: Thread, now: number): number | undefined {
  let soonest: number | undefined
  // What is due is under way, or waits for room: not to be looked at all the time.
  for (const { at } of state.hooks.values())
    soonest = Math.min(soonest ?? Number.POSITIVE_INFINITY, Math.max(at, now + 1_000))
  const run = state.runs.get(state.active ?? '')
  if (!run) return soonest
  // No wait is longer than it was meant to be, also if the clock was set back.
  if (run.status === 'cancelling') return Math.min(run.cancellingAt ?? 0, now) + cancelGrace
  for (const askId of run.askIds) {
    const record = state.asks.get(askId)
    if (!record || record.answer) continue
    const { ask, raisedAt } = record
    const at = Math.min(ask.deadline, now + Math.max(0, ask.deadline - raisedAt))
    soonest = Math.min(soonest ?? Number.POSITIVE_INFINITY, at)
  }
  return soonest
}
