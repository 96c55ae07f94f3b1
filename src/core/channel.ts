import type { Clock } from '../lib/clock.ts'
import type { Piece } from './agent.ts'
import { type Draft, writeDown } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import { isStop, type Leg, LegStop } from './leg.ts'
import { withoutTextsIn } from './secrets.ts'
import type { Expectation } from './store.ts'
import { closedBy } from './tail.ts'
import { isAway, isLost } from './thread.ts'

/** Keeps outcomes of effects while the store is away, as evidence for later. */
export interface Spool {
  save(effectId: string, outcome: { output?: string; error?: string; at: number }): Promise<void>
  find(effectId: string): Promise<unknown>
  remove(effectId: string): Promise<void>
}

interface Waiting {
  drafts: Draft[]
  /** Says something that was not shown yet: pieces must not overtake it. */
  news: boolean
  /** Shown once the drafts are durable. */
  pieces: Piece[]
  /** Without this being so, these drafts alone are not written. */
  expect: readonly Expectation[]
  done: () => void
  failed: (error: unknown) => void
}

/** Refused by the store unless the run is running: it may have been cancelled (I7). */
const starts = (draft: Draft) => draft.kind === 'effect.intended' || draft.kind === 'ask.raised'

/** Told to whoever says it: later it would take all that was said with it along. */
function recordable(draft: Draft): void {
  try {
    writeDown(draft)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split('\n')[0] : String(cause)
    const told = `The agent said what cannot be recorded: ${draft.kind} is not JSON: ${why}`
    throw new RuntimeError('agent_failed', told, { cause })
  }
}

/** Ends messages that may have been shown piece by piece. */
const closes = ({ kind }: Draft) => kind === 'message.added' || kind === 'message.retracted'

/** The grants by which something begins: taken back, it must not (see `revoke`). */
const grantsOf = (drafts: readonly Draft[]): Expectation[] =>
  drafts.flatMap((one) => {
    const grantId = one.kind === 'effect.intended' ? one.body.grantId : undefined
    return grantId === undefined ? [] : [{ fact: `grant:${grantId}`, is: 'given' }]
  })

const isUnmet = ({ expect }: Waiting, fact: unknown) => expect.some((one) => one.fact === fact)

/** It keeps its place for what is shown after it. */
function giveUp(one: Waiting, error: unknown): void {
  one.failed(error)
  Object.assign(one, { drafts: [], expect: nothing, done: () => {}, failed: () => {} })
}

/** What those who work in a leg see of its channel. */
export type Outlet = Pick<Channel, 'piece' | 'waiting' | 'write' | 'commit' | 'commitIf' | 'away'>

/**
 * A leg's one way out. What is written enters in order; what waits goes out as one transition;
 * one transition is under way at a time.
 */
export class Channel {
  readonly #leg: Leg
  readonly #clock: Clock
  readonly #spool: Spool | undefined
  /** Effects whose outcome was put into the spool. */
  readonly #kept = new Set<string>()
  #waiting: Waiting[] = []
  /** Pieces among what waits or is under way. */
  #held = 0
  /** How much of what waits or is under way is news. */
  #news = 0
  /** Messages that are shown piece by piece, until they are written. */
  readonly #spoken = new Set<string>()
  #flushing: Promise<void> | undefined
  #scheduled = false
  /** The leg is over: what an agent that did not stop still says is not heard. */
  #closed = false
  /** Set when a transition showed that the leg has lost its run: nothing is written after it. */
  #lost: LegStop | undefined

  constructor(leg: Leg, clock: Clock, spool?: Spool) {
    this.#leg = leg
    this.#clock = clock
    this.#spool = spool
  }

  /** Shown as soon as all that was said before it is, kept by nobody. */
  piece(piece: Piece): void {
    if (this.#closed) return
    if (piece.kind !== 'output') this.#spoken.add(piece.messageId ?? piece.id)
    if (this.#news === 0) {
      this.#push(piece)
      return
    }
    if (this.#waiting.length === 0) this.write()
    this.#waiting.at(-1)!.pieces.push(piece)
    this.#held++
  }

  #push(piece: Piece): void {
    const { tail } = this.#leg.thread
    // A driver that lost the thread and does not know it yet: others write there now.
    if (tail.fence === this.#leg.lease.fence) tail.push(piece)
  }

  /** How much is written and not under way yet. */
  get waiting(): number {
    return this.#waiting.length + this.#held
  }

  /** Goes out with the next transition, at the latest after this turn of the event loop. */
  write(...drafts: Draft[]): void {
    if (this.#closed) this.offer(drafts)
    else this.#add(drafts)
    if (this.#closed || this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#flush().catch(() => {}) // whoever commits next is told
    })
  }

  /** Resolves when all that was written, and this, is durable. */
  async commit(...drafts: Draft[]): Promise<void> {
    await this.commitIf([], ...drafts)
  }

  /** The same, unless something is not so: then it rejects with `journal_conflict`, and the leg goes on. */
  async commitIf(expect: readonly Expectation[], ...drafts: Draft[]): Promise<void> {
    if (this.#closed) throw new LegStop('lost')
    const written = new Promise<void>((done, failed) => {
      this.#add(drafts, done, failed, expect)
    })
    this.#flush().catch(() => {})
    await written
  }

  /** What is written and not under way yet, for the leg's last transition to take along. */
  async take(): Promise<Draft[]> {
    this.#closed = true
    while (this.#flushing) await this.#flushing.catch(() => {})
    const rest = this.#waiting
    this.#waiting = []
    const drafts = rest.flatMap((one) => (one.expect.length > 0 ? [] : one.drafts)) // nothing begins now
    this.#showBefore(drafts)
    return drafts
  }

  /**
   * Offers outcomes of tool calls that this leg cannot record, because it is over or has lost its fence: they
   * are evidence for the leg that finds these calls in doubt.
   */
  offer(drafts: readonly Draft[]): void {
    for (const draft of drafts) {
      if (draft.kind !== 'effect.done' && draft.kind !== 'effect.failed') continue
      const told = draft.kind === 'effect.done' || draft.body.error.code !== 'cancelled'
      if (draft.body.effect === 'tool' && told) this.#leg.late(draft)
    }
  }

  /** Who keeps pace has all pieces of a message before it is durable, and they go. */
  #showBefore(drafts: readonly Draft[]): void {
    if (drafts.some(closes)) this.#leg.thread.tail.flush()
  }

  #add(written: Draft[], done = () => {}, failed: Waiting['failed'] = () => {}, expect = nothing) {
    const { runId, legId, secrets } = this.#leg
    const given = secrets ? written.map((draft) => withoutTextsIn(draft, secrets)) : written
    for (const draft of given) recordable(draft)
    const drafts = given.map((draft) => ({ runId, legId, ...draft }))
    const news = drafts.some((draft) => !this.#isShown(draft))
    if (news) this.#news++
    const relied = [...expect, ...grantsOf(drafts)]
    this.#waiting.push({ drafts, news, pieces: [], expect: relied, done, failed })
  }

  /** Whether clients have all of it as pieces. */
  #isShown(draft: Draft): boolean {
    return draft.kind === 'message.added' && this.#spoken.delete(draft.body.message.id)
  }

  async #flush(): Promise<void> {
    this.#flushing ??= this.#sendAll()
    await this.#flushing
  }

  async #sendAll(): Promise<void> {
    try {
      await null // all that is committed in the same turn goes out together
      while (this.#waiting.length > 0) {
        const batch = this.#waiting
        this.#waiting = []
        if (this.#lost) this.#refuse(batch, this.#lost)
        else await this.#send(batch)
      }
    } finally {
      this.#flushing = undefined // at once: what comes next must not wait for a sender that is done
    }
  }

  /** Tries until the store is back. Nothing is begun meanwhile: whoever wants to waits for this. */
  async away<T>(write: () => Promise<T>, each?: () => Promise<void>): Promise<T> {
    for (let wait = 250; ; wait = Math.min(wait * 2, 5_000)) {
      try {
        return await write()
      } catch (error) {
        if (!isAway(error)) throw error
        await each?.()
        const slept = this.#clock.sleep(wait, this.#leg.closing)
        if (!(await slept.then(yes, no))) throw new LegStop('handover')
      }
    }
  }

  async #send(batch: Waiting[]): Promise<void> {
    const drafts = batch.flatMap((one) => one.drafts)
    this.#showBefore(drafts)
    try {
      if (drafts.length > 0) {
        await this.away(
          () =>
            this.#append(
              drafts,
              batch.flatMap((one) => one.expect),
            ),
          () => this.#keepEvidence(drafts),
        )
      }
      this.#settle(batch)
      for (const one of batch) one.done()
    } catch (error) {
      const conflict = isRuntimeError(error, 'journal_conflict') ? error.data : undefined
      if (batch.some((one) => isUnmet(one, conflict?.fact))) {
        await this.away(() => this.#leg.thread.sync())
        for (const one of batch) if (isUnmet(one, conflict?.fact)) giveUp(one, error)
        return await this.#send(batch)
      }
      // Cancelled: what was begun is still told. Any other conflict: the leg is somebody else's.
      const cancelled = conflict?.fact === `run:${this.#leg.runId}` && (await this.#isCancelling())
      const lostIt = conflict !== undefined || isLost(error)
      const stop = lostIt ? new LegStop(cancelled ? 'cancelled' : 'lost') : error
      if (lostIt && !cancelled) this.#lost = stop as LegStop
      const kept = cancelled ? batch.filter((one) => !one.drafts.some(starts)) : []
      this.#refuse(
        batch.filter((one) => !kept.includes(one)),
        stop,
      )
      this.#leg.abort.abort(stop)
      if (kept.length > 0) await this.#send(kept)
    }
  }

  /** Reads what others wrote, and returns whether the run waits for this leg to stop. */
  async #isCancelling(): Promise<boolean> {
    const { thread, run } = this.#leg
    await this.away(() => thread.sync()).catch(() => {}) // the server stops: another one writes the end
    return run.status === 'cancelling'
  }

  /** Fails what was not written. If the leg has lost its run, outcomes are offered as evidence. */
  #refuse(batch: readonly Waiting[], stop: unknown): void {
    for (const one of batch) {
      this.#held -= one.pieces.length
      one.pieces = []
    }
    this.#settle(batch)
    for (const one of batch) one.failed(stop)
    const overtaken = isStop(stop, 'lost') || isStop(stop, 'cancelled')
    if (overtaken) this.offer(batch.flatMap(({ drafts }) => drafts))
  }

  /** These are written, or never will be: what waited for them is shown. */
  #settle(batch: readonly Waiting[]): void {
    for (const { news } of batch) if (news) this.#news--
    const closed = closedBy(batch.flatMap(({ drafts }) => drafts))
    for (const one of batch) this.#show(one, closed)
    for (const one of this.#waiting) {
      if (one.news) break
      this.#show(one, closed)
    }
  }

  /** Pieces of messages that are whole by now are shown as such. */
  #show(one: Waiting, closed: ReadonlySet<string>): void {
    this.#held -= one.pieces.length
    for (const piece of one.pieces) {
      const { id, messageId = id } = piece
      if (!closed.has(id) && !closed.has(messageId)) this.#push(piece)
    }
    one.pieces = []
  }

  async #append(drafts: Draft[], expected: readonly Expectation[]): Promise<void> {
    const { thread, lease, runId, legId } = this.#leg
    const expect = [...expected]
    if (drafts.some((one) => one.kind === 'run.started')) expect.push({ fact: 'leg', is: legId })
    else if (drafts.some(starts)) expect.push({ fact: `run:${runId}`, is: 'running' })
    const kept = drafts.flatMap((one) => {
      if (one.kind !== 'effect.done' && one.kind !== 'effect.failed') return []
      const { effectId } = one.body
      const doubted = thread.state.effects.get(effectId)?.state === 'unknown'
      return doubted || this.#kept.has(effectId) ? [effectId] : []
    })
    await thread.commit(drafts, { guard: { fence: lease.fence, expect }, actor: this.#leg.actor })
    // It is only evidence: failing to tidy it away fails nothing.
    for (const effectId of kept) await this.#spool?.remove(effectId).catch(() => {})
  }

  async #keepEvidence(drafts: Draft[]): Promise<void> {
    for (const draft of drafts) {
      if (draft.kind !== 'effect.done' || draft.body.effect !== 'tool') continue
      const { effectId, output = '' } = draft.body
      this.#kept.add(effectId)
      await this.#spool?.save(effectId, { output, at: this.#clock.now() }).catch(() => {})
    }
  }
}

const nothing: readonly Expectation[] = []
const yes = () => true
const no = () => false
