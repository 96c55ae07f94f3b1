import { sha256 } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { Turns } from '../lib/turn.ts'
import { type AuditKeys, chainFact } from './audit.ts'
import { Chain } from './audit-chain.ts'
import { type Actor, type Draft, type Entry, type Known, read, textOfBody } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import { apply } from './fold.ts'
import { marksOf } from './marks.ts'
import { emptyState, type ThreadState } from './state.ts'
import { type Bus, type Guard, inboxBell, type NewEntry, type Store } from './store.ts'
import { closedBy, type Tail } from './tail.ts'

/** What core is given from outside: it does no I/O of its own. */
export interface Surroundings {
  store: Store
  bus: Bus
  clock: Clock
  newId: NewId
  /** Kills the process here when a test armed the point; otherwise nothing. */
  crash: (point: string) => void
  /** What of asks is told outside: the wish is part of the transition that raises one. */
  hooks?: 'raised' | 'both'
  /** With keys, every entry is linked to the one before it. */
  audit?: AuditKeys
}

/** A store that takes longer than this to write counts as away. */
const writeLimit = 5_000
/** Entries kept for readers that follow closely; older ones are read from the store. */
const recentLimit = 256

export interface Writing {
  guard: Guard
  actor: Actor
  cause?: string
}

/** One thread, warm: its folded state, its live tail, and the only way to write to it. */
export class Thread {
  readonly threadId: string
  readonly state: ThreadState
  readonly tail: Tail
  readonly #around: Surroundings
  readonly #recent: Known[] = []
  readonly #listeners = new Set<(entry: Known) => void>()
  /** Writes that took too long or are not folded, by what they write, unless they are known to have failed. */
  readonly #late = new WeakMap<readonly Draft[], Promise<Entry[]>>()
  readonly #chain: Chain | undefined
  /** Links are made one after the other: who comes meanwhile would only be refused. */
  readonly #turns = new Turns()
  #syncing: Promise<void> | undefined
  /** The thread is no more; readers leave. */
  erased = false

  constructor(threadId: string, around: Surroundings) {
    this.threadId = threadId
    this.state = emptyState(threadId)
    this.#around = around
    this.tail = around.bus.tail(threadId)
    if (around.audit) this.#chain = new Chain(threadId, around.audit, around.store)
  }

  /** Called with every entry, in order, once it is durable and folded. */
  listen(listener: (entry: Known) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** One transition. When it resolves the entries are durable and folded. */
  async commit(drafts: readonly Draft[], writing: Writing): Promise<Known[]> {
    const commit = () => this.#commit(drafts, writing)
    return this.#chain
      ? await this.#turns.take((before) => this.#inTime(before), commit)
      : await commit()
  }

  async #commit(given: readonly Draft[], writing: Writing): Promise<Known[]> {
    const { clock, newId, crash, hooks, bus } = this.#around
    const drafts = hooks ? given.map((draft) => wished(draft, hooks)) : given
    const ids = drafts.map(() => newId('e'))
    const step = { given, drafts, writing, tx: newId('tx'), at: clock.now(), ids }
    for (const { kind } of drafts) crash(`before ${kind}`)
    const { written, stored } = await this.#append(step)
    for (const { kind } of drafts) crash(kind)
    const known = stored.map((entry, i) => ({ ...entry, body: drafts[i]!.body }) as Known)
    // Written is written: who tries the same again, because it could not be folded, writes nothing.
    this.#late.set(given, written)
    await this.#accept(known)
    this.#late.delete(given)
    if (known.some(({ kind }) => kind.startsWith('ask.')))
      bus.ring(inboxBell(this.state.tenant), this.state.seq)
    return known
  }

  /** Until it is written. Only the chain has a second try: whatever else was relied on is the caller's. */
  async #append(step: Step) {
    const { given } = step
    for (let attempt = 1; ; attempt++) {
      const { chain } = this.state
      const written = this.#late.get(given) ?? this.#begin(step)
      try {
        return { written, stored: await this.#inTime(written, () => this.#keep(given, written)) }
      } catch (error) {
        if (!isOvertaken(error) || attempt >= triesToDecide) throw error
        await this.sync()
        if (this.state.chain?.link === chain?.link) throw error // it will not be otherwise next time
      }
    }
  }

  async #begin(step: Step): Promise<Entry[]> {
    const { store } = this.#around
    const { guard } = step.writing
    const entries = this.#entries(step)
    if (!this.#chain) return await store.append(this.threadId, entries, guard)
    const linked = await this.#chain.link(entries, guard, this.state)
    return await store.append(this.threadId, linked.entries, linked.guard)
  }

  #entries({ drafts, writing, tx, at, ids }: Step): NewEntry[] {
    return drafts.map((draft, n): NewEntry => {
      const body = textOfBody(draft)
      const id = ids[n]!
      const entry: NewEntry = {
        v: 1,
        id,
        threadId: this.threadId,
        tx,
        at,
        fence: writing.guard.fence ?? 0,
        kind: draft.kind,
        actor: writing.actor,
        digest: sha256(body),
        body,
        marks: marksOf({ ...draft, at, id, actor: writing.actor }, this.state),
      }
      if (draft.runId !== undefined) entry.runId = draft.runId
      if (draft.legId !== undefined) entry.legId = draft.legId
      if (writing.cause !== undefined) entry.cause = writing.cause
      return entry
    })
  }

  close(): void {
    this.erased = true
    this.tail.wake()
  }

  /** Folds what others wrote. */
  async sync(): Promise<void> {
    if (this.#syncing) await this.#syncing // it may have read before what we must not miss
    this.#syncing ??= this.#readOn().finally(() => {
      this.#syncing = undefined
    })
    await this.#syncing
  }

  /** Entries after `seq`, oldest first; from memory when they are recent. */
  async entries(after: number, limit: number): Promise<Known[]> {
    const first = this.#recent[0]
    if (first && first.seq <= after + 1) {
      const from = after + 1 - first.seq
      return this.#recent.slice(from, from + limit)
    }
    const entries = await this.#around.store.read(this.threadId, { after, limit })
    return entries.map(read)
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const range = { after: this.state.seq, limit: pageSize }
      const entries = await this.#around.store.read(this.threadId, range)
      if (entries.length === 0) return
      for (const entry of entries.map(read)) if (entry.seq === this.state.seq + 1) this.#fold(entry)
      this.#moved(entries)
      if (entries.length < pageSize) return
    }
  }

  async #accept(known: Known[]): Promise<void> {
    const { bus } = this.#around
    if (known[0]!.seq === this.state.seq + 1) {
      for (const entry of known) this.#fold(entry)
      this.#moved(known)
    } else if (known.at(-1)!.seq > this.state.seq) await this.sync() // somebody else wrote in between
    bus.ring(this.threadId, this.state.seq)
  }

  #fold(entry: Known): void {
    apply(this.state, entry)
    this.#recent.push(entry)
    if (this.#recent.length > recentLimit * 2) this.#recent.splice(0, recentLimit)
    for (const listener of this.#listeners) listener(entry)
  }

  #moved(entries: readonly (Known | Entry)[]): void {
    const last = this.#recent.slice(-entries.length)
    const closed = closedBy(last)
    // A run that ends while it waits in line leaves the tail of the one that speaks alone.
    const ends = last.some((entry) => endsLeg(entry) && entry.runId === this.tail.runId)
    const fence = Math.max(0, ...last.map((entry) => entry.fence))
    this.tail.commit(this.state.seq, ends ? undefined : closed, fence)
  }

  /**
   * It may still get there; then it is folded like anybody else's. Whoever tries the same drafts again
   * waits for it: only a write that is known to have failed may be made anew.
   */
  #keep(drafts: readonly Draft[], written: Promise<Entry[]>): void {
    this.#late.set(drafts, written)
    written.then(() => this.sync()).catch(() => this.#late.delete(drafts))
  }

  async #inTime<T>(awaited: Promise<T>, whenLate = () => {}): Promise<T> {
    let stop = () => {}
    const limit = new Promise<never>((_, reject) => {
      stop = this.#around.clock.timer(writeLimit, () => {
        whenLate()
        reject(new RuntimeError('store_unavailable', undefined, { retryAfter: 1 }))
      })
    })
    return await Promise.race([awaited, limit]).finally(stop)
  }
}

/** A client's own call is nobody else's business. */
function wished(one: Draft, hook: 'raised' | 'both'): Draft {
  if (one.kind !== 'ask.raised' || one.body.ask.kind === 'client_tool') return one
  return { ...one, body: { ...one.body, hook } }
}

/** A transition, as it is first tried; what it has been given it keeps. */
interface Step {
  given: readonly Draft[]
  drafts: readonly Draft[]
  writing: Writing
  tx: string
  at: number
  ids: readonly string[]
}

/** Somebody else went on from the same link. */
const isOvertaken = (error: unknown): boolean =>
  isRuntimeError(error, 'journal_conflict') && error.data?.fact === chainFact

/** Entries that are read at once. */
const pageSize = 1_000

const endsLeg = ({ kind }: Known) =>
  kind === 'run.waiting' ||
  kind === 'run.completed' ||
  kind === 'run.failed' ||
  kind === 'run.cancelled'

/** How often a decision is made anew before its maker is told that something is always in between. */
export const triesToDecide = 50

/** The fence was not the newest, or the thread is no more: trying again is no use. */
export const isLost = (error: unknown): boolean =>
  isRuntimeError(error, 'thread_not_found') ||
  (isRuntimeError(error, 'journal_conflict') && error.data?.fence !== undefined)

/**
 * Decides and writes until both agree: `decide` looks at the state and gives what to write and
 * what it relied on; if that changed before the write, it is asked again.
 */
export async function decide<T>(
  thread: Thread,
  decision: () => { drafts: Draft[]; writing: Writing; result: T } | { result: T },
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const next = decision()
    if (!('drafts' in next)) return next.result
    try {
      await thread.commit(next.drafts, next.writing)
      return next.result
    } catch (error) {
      if (!isRuntimeError(error, 'journal_conflict') || isLost(error)) throw error
      if (attempt >= triesToDecide) throw error
      await thread.sync()
    }
  }
}
