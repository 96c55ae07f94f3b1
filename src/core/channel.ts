import type { Clock } from '../lib/clock.ts'
import type { Piece } from './agent.ts'
import type { Draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { type Leg, LegStop } from './leg.ts'
import type { Expectation } from './store.ts'

/** Keeps outcomes of effects while the store is away, as evidence for later. */
export interface Spool {
  save(effectId: string, outcome: { output?: string; error?: string; at: number }): Promise<void>
  find(effectId: string): Promise<unknown>
  remove(effectId: string): Promise<void>
}

interface Waiting {
  drafts: Draft[]
  done: () => void
  failed: (error: unknown) => void
}

/** Refused by the store once the run is being cancelled (I7). */
const starts = (draft: Draft) => draft.kind === 'effect.intended' || draft.kind === 'ask.raised'

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
  #flushing: Promise<void> | undefined
  #scheduled = false
  /** The leg is over: what an agent that did not stop still says is not heard. */
  #closed = false

  constructor(leg: Leg, clock: Clock, spool?: Spool) {
    this.#leg = leg
    this.#clock = clock
    this.#spool = spool
  }

  /** Shown at once, kept by nobody. */
  piece(piece: Piece): void {
    const { tail } = this.#leg.thread
    // A driver that lost the thread and does not know it yet: others write there now.
    if (!this.#closed && tail.fence === this.#leg.lease.fence) tail.push(piece)
  }

  /** How much is written and not under way yet. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Goes out with the next transition, at the latest after this turn of the event loop. */
  write(...drafts: Draft[]): void {
    if (this.#closed) return
    this.#waiting.push({ drafts: this.#place(drafts), done: () => {}, failed: () => {} })
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#flush().catch(() => {}) // whoever commits next is told
    })
  }

  /** Resolves when all that was written, and this, is durable. */
  async commit(...drafts: Draft[]): Promise<void> {
    if (this.#closed) throw new LegStop('lost')
    const written = new Promise<void>((done, failed) => {
      this.#waiting.push({ drafts: this.#place(drafts), done, failed })
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
    return rest.flatMap((one) => one.drafts)
  }

  #place(drafts: Draft[]): Draft[] {
    const { runId, legId } = this.#leg
    return drafts.map((draft) => ({ runId, legId, ...draft }))
  }

  async #flush(): Promise<void> {
    this.#flushing ??= (async () => {
      await null // all that is committed in the same turn goes out together
      while (this.#waiting.length > 0) {
        const batch = this.#waiting
        this.#waiting = []
        await this.#send(batch)
      }
    })().finally(() => {
      this.#flushing = undefined
    })
    await this.#flushing
  }

  /** Tries until the store is back. Nothing is begun meanwhile: whoever wants to waits for this. */
  async away<T>(write: () => Promise<T>, each?: () => Promise<void>): Promise<T> {
    for (let wait = 250; ; wait = Math.min(wait * 2, 5_000)) {
      try {
        return await write()
      } catch (error) {
        if (!isRuntimeError(error, 'store_unavailable')) throw error
        await each?.()
        const slept = this.#clock.sleep(wait, this.#leg.closing)
        if (!(await slept.then(yes, no))) throw new LegStop('handover')
      }
    }
  }

  async #send(batch: Waiting[]): Promise<void> {
    const drafts = batch.flatMap((one) => one.drafts)
    try {
      if (drafts.length > 0) {
        await this.away(
          () => this.#append(drafts),
          () => this.#keepEvidence(drafts),
        )
      }
      for (const one of batch) one.done()
    } catch (error) {
      const conflict = isRuntimeError(error, 'journal_conflict') ? error.data : undefined
      // Cancelled: what was begun is still told. Any other conflict: the leg is somebody else's.
      const cancelled = conflict?.fact === `run:${this.#leg.runId}`
      const kept = cancelled ? batch.filter((one) => !one.drafts.some(starts)) : []
      const stop = conflict ? new LegStop(cancelled ? 'cancelled' : 'lost') : error
      for (const one of batch) if (!kept.includes(one)) one.failed(stop)
      if (cancelled) await this.#leg.thread.sync()
      this.#leg.abort.abort(stop)
      if (kept.length > 0) await this.#send(kept)
    }
  }

  async #append(drafts: Draft[]): Promise<void> {
    const { thread, lease, runId, legId } = this.#leg
    const expect: Expectation[] = []
    if (drafts.some(starts)) expect.push({ fact: `run:${runId}`, not: 'cancelling' })
    if (drafts.some((one) => one.kind === 'run.started')) expect.push({ fact: 'leg', is: legId })
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

const yes = () => true
const no = () => false
