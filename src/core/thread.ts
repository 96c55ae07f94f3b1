import type { ByteCache } from '../lib/byte-cache.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { isMany, pauseBefore, pauses } from '../lib/pause.ts'
import { Turns } from '../lib/turn.ts'
import { type AuditKeys, chainFact } from './audit.ts'
import { Chain } from './audit-chain.ts'
import { type Draft, type Entry, type Known, read } from './entries.ts'
import { entriesOf, type Step, serialize, type Writing } from './entries-of.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import { apply } from './fold.ts'
import {
  cacheLarge,
  deduplicated,
  digestsOf,
  filled,
  filledSteps,
  lightened,
  whole,
} from './large-parts.ts'
import type { Message } from './messages.ts'
import { entryBytes, RecentEntries } from './recent-entries.ts'
import { emptyState, type Run, type ThreadState } from './state.ts'
import { type Bus, inboxBell, type Store } from './store.ts'
import { closedBy, type Tail } from './tail.ts'

export type { Writing }

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
  /** Called when a write that took too long has succeeded: whoever asked for it is gone. */
  written?: (thread: Thread) => void
  /** With keys, every entry is linked to the one before it. */
  audit?: AuditKeys
  /** Data of large parts that was read lately; see large-parts.ts. */
  large?: ByteCache
}

/** A store that takes longer than this to write counts as away. */
const writeLimit = 5_000

/** One thread, warm: its folded state, its live tail, and the only way to write to it. */
export class Thread {
  readonly threadId: string
  readonly state: ThreadState
  readonly tail: Tail
  readonly #around: Surroundings
  readonly #recent = new RecentEntries()
  /** Bytes that the thread takes in memory, as far as that can be told. */
  bytes = entryBytes
  readonly #listeners = new Set<(entry: Known) => void>()
  /** Writes that took too long or are not folded, by what they write, unless they are known to have failed. */
  readonly #late = new WeakMap<readonly Draft[], Promise<Entry[]>>()
  /** Drafts of writes that took too long and may still succeed. */
  readonly #unsettled = new Map<readonly Draft[], Promise<void>>()
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

  /** Returns the run. Throws `run_not_found`, or `outcome_unknown` while its start may still be written. */
  run(runId: string): Run {
    const run = this.state.runs.get(runId)
    if (run) return run
    const start = [...this.#unsettled.keys()].find((drafts) => writesRun(drafts, runId))
    throw start ? outcomeUnknown(this.state, start) : new RuntimeError('run_not_found')
  }

  /** The run of a start that may still be written and that has the same key or one of these messages. */
  unsettledRun(key: string | undefined, messageIds: readonly string[]): string | undefined {
    for (const drafts of this.#unsettled.keys()) {
      const same = drafts.find(
        (one) =>
          (one.kind === 'key.used' && one.body.key === key) ||
          (one.kind === 'message.added' && messageIds.includes(one.body.message.id)),
      )
      if (same) return same.runId
    }
    return undefined
  }

  /** Resolves when no write of this thread that took too long is under way any more. */
  async settled(): Promise<void> {
    while (this.#unsettled.size > 0) await Promise.all(this.#unsettled.values())
  }

  /**
   * One transition. When it resolves the entries are durable and folded. Rejects with `store_unavailable` when
   * nothing is written and nothing will be, and with `outcome_unknown` when they may be written all the same.
   */
  async commit(drafts: readonly Draft[], writing: Writing): Promise<Known[]> {
    const commit = () => this.#commit(drafts, writing)
    return this.#chain
      ? await this.#turns.take((before) => this.#inTime(before), commit)
      : await commit()
  }

  async #commit(given: readonly Draft[], writing: Writing): Promise<Known[]> {
    const { clock, newId, crash, hooks, bus } = this.#around
    const asked = hooks ? given.map((draft) => wished(draft, hooks)) : given
    const drafts = deduplicated(asked, this.state.large)
    const ids = drafts.map(() => newId('e'))
    const step = { given, drafts, writing, tx: newId('tx'), at: clock.now(), ids }
    for (const { kind } of drafts) crash(`before ${kind}`)
    const { written, stored } = await this.#append(step)
    for (const { kind } of drafts) crash(kind)
    const known = stored.map((entry, i) => ({ ...entry, body: drafts[i]!.body }) as Known)
    for (const entry of known) cacheLarge(entry, this.#place())
    // Written is written: who tries the same again, because it could not be folded, writes nothing.
    this.#late.set(given, written)
    await pauseBefore(known.length)
    await this.#accept(known).catch((error: unknown) => {
      throw isAway(error) ? outcomeUnknown(this.state, drafts, error) : error
    })
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
        const late = () => {
          this.#keep(step, written)
          return outcomeUnknown(this.state, step.drafts)
        }
        return { written, stored: await this.#inTime(written, late) }
      } catch (error) {
        // A store knows entries; the client has to know which run.
        if (isRuntimeError(error, 'outcome_unknown') && !error.data)
          throw outcomeUnknown(this.state, step.drafts, error)
        if (!isOvertaken(error) || attempt >= triesToDecide) throw error
        await this.sync()
        if (this.state.chain?.link === chain?.link) throw error // it will not be otherwise next time
      }
    }
  }

  async #begin(step: Step): Promise<Entry[]> {
    const { store } = this.#around
    const { guard } = step.writing
    if (isMany(step.drafts.length)) await serialize(step.drafts)
    const entries = entriesOf(step, this.state) // after the last wait: it reads the state
    if (!this.#chain) return await store.append(this.threadId, entries, guard)
    await pauseBefore(entries.length)
    const linked = await this.#chain.link(entries, guard, this.state)
    await pauseBefore(entries.length)
    return await store.append(this.threadId, linked.entries, linked.guard)
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

  /**
   * Entries after `seq`, oldest first, at least one if there is one; from memory when they are recent.
   * Without the data of large parts.
   */
  async entries(after: number, limit: number): Promise<Known[]> {
    const recent = this.#recent.after(after, limit)
    if (recent) return recent
    const range = { after, limit, bytes: pageBytes }
    return await parse(await this.#around.store.read(this.threadId, range))
  }

  /** The messages with the data of their large parts, which is read from the store. */
  whole = (messages: readonly Message[]): Promise<Message[]> => whole(messages, this.#place())

  /** Digests of the messages with the data of their large parts. */
  digestsOf = (messages: readonly Message[]): Promise<string[]> =>
    digestsOf(messages, this.#place())

  /** A text with the data in place of the markers of large parts. */
  filled = (text: string): Promise<string> => filled(text, this.#place())

  /** The JSON of a value with the data in place of the markers of large parts, in steps. */
  filledSteps = (value: unknown): AsyncIterable<string> => filledSteps(value, this.#place())

  #place() {
    const { store, large: cache } = this.#around
    return { store, cache, threadId: this.threadId, large: this.state.large }
  }

  /** Reads and folds in steps. Between two steps, the state has all entries of a transition or none. */
  async #readOn(): Promise<void> {
    /** Entries of the transition that was read last: the next page may contain more of them. */
    let open: Known[] = []
    for (let after = this.state.seq; ; ) {
      const range = { after, limit: pageSize, bytes: pageBytes }
      const entries = await this.#around.store.read(this.threadId, range)
      const length = entries.reduce((sum, { body }) => sum + body.length, 0)
      const isLast = entries.length < pageSize && length < pageBytes / 8 // neither limit ended the page
      after = entries.at(-1)?.seq ?? after
      const transitions = byTransition([...open, ...(await parse(entries))])
      open = (isLast ? undefined : transitions.pop()) ?? []
      const pause = pauses()
      for (const transition of transitions) {
        this.#foldAll(transition)
        await pause()
      }
      if (isLast) return
    }
  }

  /** Folds a transition in one turn of the event loop. Skips entries that a commit has folded meanwhile. */
  #foldAll(transition: readonly Known[]): void {
    const folded: Known[] = []
    for (const entry of transition)
      if (entry.seq === this.state.seq + 1) folded.push(this.#fold(entry))
    this.#moved(folded)
  }

  async #accept(known: readonly Known[]): Promise<void> {
    const { bus } = this.#around
    if (known[0]!.seq === this.state.seq + 1) this.#moved(known.map((entry) => this.#fold(entry)))
    else if (known.at(-1)!.seq > this.state.seq) await this.sync() // somebody else wrote in between
    bus.ring(this.threadId, this.state.seq)
  }

  /** Folds an entry, and returns it as it is kept. */
  #fold(given: Known): Known {
    const entry = lightened(given)
    apply(this.state, entry)
    this.bytes += this.#recent.add(entry)
    for (const listener of this.#listeners) listener(entry)
    return entry
  }

  #moved(last: readonly Known[]): void {
    if (last.length === 0) return
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
  #keep({ given, drafts }: Step, written: Promise<Entry[]>): void {
    this.#late.set(given, written)
    const fold = async () => {
      await this.sync().catch(() => {}) // it is written, whether it can be read or not
      this.#around.written?.(this)
    }
    const settled = written
      .then(fold, () => void this.#late.delete(given))
      .finally(() => this.#unsettled.delete(drafts))
    this.#unsettled.set(drafts, settled)
  }

  async #inTime<T>(awaited: Promise<T>, whenLate = notBegun): Promise<T> {
    let stop = () => {}
    const limit = new Promise<never>((_, reject) => {
      stop = this.#around.clock.timer(writeLimit, () => {
        reject(whenLate())
      })
    })
    return await Promise.race([awaited, limit]).finally(stop)
  }
}

/** Error of a write that only waited for its turn: nothing was written, and nothing will be. */
const notBegun = () => new RuntimeError('store_unavailable', undefined, { retryAfter: 1 })

/** Names the chat and the run, so that the client can check whether the transition took effect. */
function outcomeUnknown(state: ThreadState, drafts: readonly Draft[], cause?: unknown) {
  const created = drafts.find((one) => one.kind === 'thread.created')
  const threadId = created ? created.body.clientId : state.clientId
  const runId = drafts.find((one) => one.runId !== undefined)?.runId
  const data = { thread_id: threadId, ...(runId !== undefined && { run_id: runId }) }
  return new RuntimeError('outcome_unknown', undefined, { cause, data })
}

const writesRun = (drafts: readonly Draft[], runId: string): boolean =>
  drafts.some((one) => one.kind === 'run.queued' && one.runId === runId)

/** The store did not take a write, or did not confirm it: whoever still wants it tries the same again. */
export const isAway = (error: unknown): boolean =>
  isRuntimeError(error, 'store_unavailable') || isRuntimeError(error, 'outcome_unknown')

/** A client's own call is nobody else's business. */
function wished(one: Draft, hook: 'raised' | 'both'): Draft {
  if (one.kind !== 'ask.raised' || one.body.ask.kind === 'client_tool') return one
  return { ...one, body: { ...one.body, hook } }
}

/** Somebody else went on from the same link. */
const isOvertaken = (error: unknown): boolean =>
  isRuntimeError(error, 'journal_conflict') && error.data?.fact === chainFact

/**
 * Limits of one page: entries, and bytes. A store decodes a page in one step. Up to 1 KB of an entry is not its body, so
 * a page that reached the byte limit has at least `pageBytes / 8` characters of bodies.
 */
const pageSize = 250
const pageBytes = 1_000_000

/** Reads the bodies of stored entries, without the data of large parts, in steps. */
async function parse(entries: readonly Entry[]): Promise<Known[]> {
  const pause = pauses()
  const known: Known[] = []
  for (const entry of entries) {
    known.push(lightened(read(entry)))
    await pause()
  }
  return known
}

/** Splits entries into transitions. */
function byTransition(entries: readonly Known[]): Known[][] {
  const transitions: Known[][] = []
  for (const entry of entries) {
    const last = transitions.at(-1)
    if (last && last[0]?.tx === entry.tx) last.push(entry)
    else transitions.push([entry])
  }
  return transitions
}

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
