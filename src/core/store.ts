import type { Person } from './audience.ts'
import type { AskKind, AskState, Entry, Envelope } from './entries.ts'
import type { Tail } from './tail.ts'

/**
 * What core asks of a store, a bus and a queue. The store is the only one that may be believed:
 * a bus may forget, a queue may lose, double or delay, and nothing is lost with them.
 */
export interface Store {
  /** Other processes write here too: what is in memory may be old. */
  readonly shared?: boolean

  /**
   * One transition: all entries or none, each given the thread's next seq, with their marks
   * applied in the same atomic step. Resolves when it is durable.
   * Rejects with `journal_conflict` when the fence is not the thread's newest or an expected fact
   * is not so, with `thread_exists` when the entry that creates the thread names a taken client
   * id, with `store_unavailable` when nothing was written, nothing will be, and the caller may try again,
   * and with `outcome_unknown` when that cannot be said.
   */
  append(threadId: string, entries: readonly NewEntry[], guard: Guard): Promise<Entry[]>

  /** Entries with `after < seq`, oldest first, at most `limit` (default 1,000). Unknown: none. */
  read(threadId: string, range?: Range): Promise<Entry[]>
  /** The same with their marks, exactly as they are kept: what an audit looks at. */
  kept(threadId: string, range?: Range): Promise<Kept[]>

  /** The minted key of a client's id, if it is in use. */
  locate(name: ThreadName): Promise<string | undefined>
  thread(threadId: string): Promise<ThreadRow | undefined>
  /** The newest first, by `updatedAt` then `threadId`; `cursor` is the previous page's `next`. */
  threads(query: ThreadQuery): Promise<Page<ThreadRow>>
  /** By deadline, soonest first; those asked for as `settled`, by when they were, the latest first. */
  asks(query: AskQuery): Promise<Page<AskRow>>
  /**
   * What was raised or settled in an inbox after a place, as it is now, in no order. Every change is given
   * at least once to whoever goes on from `next`. No rows at all: that place is not known any more, or
   * there are more than `limit`; read the inbox anew. Without `after` nothing is given, and `next` is now.
   */
  askChanges(query: AskChanges): Promise<{ rows?: AskRow[]; next: string }>

  /**
   * What was said on the owner's threads and has all the words: the newest first, ties by thread and seq.
   * Archived threads are looked at too. What is durable before the call is found, or `cut` is said.
   */
  find(query: FindQuery): Promise<Finding>

  /**
   * Takes the thread's lease if it is free, lapsed, or already the holder's, by the store's own
   * clock; with `force`, from whoever has it. Every claim gives a fence greater than all before it,
   * also across restarts.
   */
  claim(
    threadId: string,
    holder: string,
    ttl: number,
    force?: boolean,
  ): Promise<{ fence: number } | undefined>
  /** Extends every lease of the holder that is still its own; the fences that are. */
  renew(holder: string, ttl: number): Promise<Set<number>>
  /** Gives the lease back; a stale fence does nothing. */
  release(threadId: string, fence: number): Promise<void>

  /** What time it is by the store's own clock, where it has one: the same for all servers. */
  time?(): Promise<number>

  /**
   * Whether a transition would be taken now, found out without one. Rejects with `store_unavailable`. Whoever
   * asks often costs nothing: it is looked at most once a second.
   */
  probe(): Promise<void>

  /**
   * Threads that need a look: a leg to drive and no live lease, or a timer that is due. If there are more than
   * `limit`, both kinds get half of it, or what the other leaves: queued legs cannot starve timers.
   */
  work(limit: number): Promise<{ threadIds: string[]; nextAt?: number }>

  /**
   * Removes the thread and all that was derived from it. The client id is free again. The residue is
   * kept from then on, in the same atomic step.
   */
  erase(threadId: string, guard: Guard, residue?: Residue): Promise<void>

  /** Waits for what was accepted, then lets go of files and connections. */
  close(): Promise<void>
}

/**
 * What is asked of a store to move whole threads from one to another, and to clear out old ones. Core
 * itself needs none of it.
 */
export interface Archive extends Residues {
  /** Every thread of every tenant. */
  everyThread(): AsyncIterable<ThreadRow>
  /** The whole journal with its marks, as it was written; an entry's place is its seq. Unknown: none. */
  dump(threadId: string): Promise<NewEntry[]>
  /**
   * Writes a whole journal to a thread that is not there, all of it or nothing. Fences given later
   * are greater than any in it. Rejects like `append`.
   */
  restore(threadId: string, entries: readonly NewEntry[]): Promise<void>
}

export interface Range {
  after?: number
  limit?: number
  /**
   * Bytes after which a page ends, with fewer entries than `limit`. It has at least one entry, if there
   * is one.
   */
  bytes?: number
}

export interface Kept {
  entry: Entry
  marks?: Marks
}

/** What is left of an erased thread: a text that a store keeps and does not understand. */
export interface Residue {
  id: string
  text: string
}

export interface Residues {
  /** All of them, in the order of their ids. */
  residues(): AsyncIterable<Residue>
  /** One from elsewhere. The same once more changes nothing. */
  keepResidue(residue: Residue): Promise<void>
}

/** A store that is only looked at, also while others write to it: what an audit reads. */
export interface Reader {
  threadIds(): AsyncIterable<string>
  /** In the order in which they are kept; `undefined` stands for what cannot be read. */
  entries(threadId: string): AsyncIterable<Kept | undefined>
  residues(): AsyncIterable<Residue>
  close(): Promise<void>
}

/** An entry before the store has placed it. */
export interface NewEntry extends Omit<Envelope, 'seq'> {
  body: string
  marks?: Marks
}

/** What an entry changes in the indexes: stated by core, kept beside the entry, applied blindly. */
export interface Marks {
  /** Facts of the thread that guards can name; `null` removes one. */
  facts?: Record<string, string | null>
  /** Columns of the thread's row. The first entry of a thread brings all of them. */
  thread?: Partial<ThreadRow>
  /** A row of the inbox: whole when raised, the changed columns afterwards. */
  ask?: Partial<AskRow> & { askId: string }
  /** Times at which someone must look at the thread, by key; `null` stops one. */
  timers?: Record<string, number | null>
}

/** The driver's guard is its fence; everyone else's is what they believe to be so. Both may be given. */
export interface Guard {
  fence?: number
  expect?: readonly Expectation[]
}

/** `is: null` means that the fact must be absent. */
export type Expectation = { fact: string; is: string | null } | { fact: string; not: string }

export interface ThreadName {
  tenant: string
  owner: string
  clientId: string
}

export interface ThreadRow extends ThreadName {
  threadId: string
  agent: string
  title: string | null
  createdAt: number
  updatedAt: number
  archived: boolean
  status: 'idle' | 'running' | 'waiting'
  /** The leg that is queued or being driven. */
  leg: string | null
}

export interface AskRow {
  askId: string
  threadId: string
  tenant: string
  owner: string
  /** Its thread, as the owner calls it. */
  clientId: string
  runId: string
  agent: string
  kind: AskKind
  title: string
  tool: string | null
  audience: string[]
  state: AskState
  raisedAt: number
  deadline: number
  settledAt: number | null
  /** The person who did. */
  decidedBy: string | null
  /** The person changed the arguments: the title is of those that ran. */
  edited?: boolean
}

export interface ThreadQuery {
  tenant: string
  owner: string
  archived?: boolean
  agent?: string
  /** Only threads with a run that has not ended. */
  active?: boolean
  limit: number
  cursor?: string
}

export interface AskQuery {
  tenant: string
  /** Absent: every owner of the tenant. */
  owner?: string
  /** Only what this person may decide, or has decided: the inbox. Clients' own calls are not in it. */
  decider?: Person
  state?: AskState | 'settled'
  kind?: AskKind
  tool?: string
  agent?: string
  /** Of the owner's thread of this name. */
  clientId?: string
  askId?: string
  limit: number
  cursor?: string
}

export interface FindQuery {
  tenant: string
  owner: string
  /** Case and accents do not matter. Several words in one must stand one after the other. */
  words: readonly string[]
  /** A thread that is not looked at. */
  except?: string
  limit: number
  cursor?: string
}

/** Something that was said; see said.ts. */
export interface Hit {
  threadId: string
  /** Its thread, as the owner calls it. */
  clientId: string
  seq: number
  at: number
  role: string
  /** The text, or what is around the words in it. */
  excerpt: string
}

export interface Finding extends Page<Hit> {
  /** Not everything could be looked at: there may be more, also newer ones. */
  cut?: boolean
}

export interface AskChanges {
  tenant: string
  decider: Person
  after?: string
  limit: number
}

export interface Page<Row> {
  rows: Row[]
  next?: string
}

/** Carries the live tails and the news that a thread has new entries. */
export interface Bus {
  /** The thread's live tail, shared by its driver and its readers on this server. */
  tail(threadId: string): Tail
  /** Tells every server that the thread has entries up to `seq`, or is `gone`. */
  ring(threadId: string, seq: number): void
  /** Called for rings of other servers too. The listener must not throw. */
  listen(listener: (threadId: string, seq: number) => void): () => void
  close(): Promise<void>
}

/** Rung for a thread that is no more. */
export const gone = -1

/** Rung, with any number, when an inbox of the tenant has changed; no thread is called so. */
export const inboxBell = (tenant: string): string => `\0inbox:${tenant}`

/** Rings doorbells: a job only says *look at thread T*. */
export interface Queue {
  /** `near`: this server would rather look itself; another does if it cannot. */
  ring(threadId: string, near?: boolean): void
  /** Rings at a time; a later call for the same thread may bring it forward. */
  ringAt(threadId: string, at: number): void
  /** Calls the worker for each thread rung, one call per thread at a time, until aborted. */
  serve(worker: (threadId: string) => Promise<void>, signal: AbortSignal): Promise<void>
}

/**
 * Room for legs: how many are driven at once by all servers together, and for one tenant. A limit on
 * load, not a promise: nothing is wrong when there are more for a moment.
 */
export interface Slots {
  /** A place for a leg on this server, to be given back; undefined when there is none now. The
   *  same leg has the same place. Does not throw. */
  take(tenant: string, legId: string): Promise<(() => void) | undefined>
}

/**
 * Keeps values for a while, under the thread's key. It may forget at any time, and nothing is lost
 * with it: what is kept here is made again from the journal. Nothing of it throws.
 */
export interface Cache {
  /** What was set, as JSON keeps it; undefined when it is not there, or not any more. */
  get(key: string): Promise<unknown>
  /** `ttl` in milliseconds, counted anew. */
  set(key: string, value: unknown, ttl: number): Promise<void>
  delete(key: string): Promise<void>
  close(): Promise<void>
}
