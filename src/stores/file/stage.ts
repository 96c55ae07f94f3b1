import type { Entry } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { Guard, NewEntry, Residue, ThreadName, ThreadRow } from '../../core/store.ts'
import type { Chats } from './chats.ts'
import { encodeEntry, type Prepared } from './entry-line.ts'
import type { Journal } from './journal.ts'
import type { Leases } from './leases.ts'
import { eraseRecord, transitionRecord } from './log.ts'
import type { Tables } from './tables.ts'

/** Something accepted: what the log must hold first, and what is so once it does. */
export interface Step<T> {
  record?: Buffer
  apply(): T
}

interface Staged {
  exists: boolean
  lastSeq: number
  row: ThreadRow | undefined
  /** What changed since the journal's own facts; those count only if the journal is given. */
  facts: Map<string, string | null>
  journal: Journal | undefined
}

/**
 * The state as it will be when everything before in the same batch is durable. It is thrown away
 * with the batch: nobody reads it but the guards of those who come next.
 */
export class Stage {
  readonly #tables: Tables
  readonly #chats: Chats
  readonly #leases: Leases
  readonly #threads = new Map<string, Staged>()
  readonly #names = new Map<string, string | undefined>()

  constructor(tables: Tables, chats: Chats, leases: Leases) {
    this.#tables = tables
    this.#chats = chats
    this.#leases = leases
  }

  append(
    threadId: string,
    kind: NewEntry['kind'] | undefined,
    entries: readonly Prepared[],
    guard: Guard,
  ): Step<Entry[]> {
    const thread = this.#thread(threadId)
    const creates = kind === 'thread.created'
    if (!thread.exists && !(creates && isWhole(entries[0]?.marks?.thread)))
      throw new RuntimeError('thread_not_found')
    if (thread.exists && creates) throw new RuntimeError('thread_exists')
    this.#check(threadId, thread, guard)
    this.#rename(threadId, thread, entries)

    const first = thread.lastSeq + 1
    const lines = entries.map((entry, n) => encodeEntry(entry, first + n))
    thread.exists = true
    thread.lastSeq += entries.length
    for (const { marks } of entries)
      for (const [fact, value] of Object.entries(marks?.facts ?? {})) thread.facts.set(fact, value)
    if (lines.length === 0) return { apply: () => [] }
    return {
      record: transitionRecord(threadId, lines),
      apply: () => this.#place(threadId, entries, lines, first),
    }
  }

  erase(threadId: string, guard: Guard, residue?: Residue): Step<void> {
    const row = this.#tables.rows.get(threadId)
    const damaged = this.#chats.damaged.has(threadId)
    const thread = damaged ? { ...nothing, exists: true, row } : this.#thread(threadId)
    if (!thread.exists) throw new RuntimeError('thread_not_found')
    this.#check(threadId, thread, guard)
    if (thread.row) this.#names.set(keyOf(thread.row), undefined)
    this.#threads.set(threadId, { ...nothing, facts: new Map() })
    return {
      record: eraseRecord(threadId, residue),
      apply: () => {
        if (residue) this.#chats.residues.add(residue)
        this.#tables.remove(threadId)
        this.#chats.forget(threadId)
        this.#chats.erased.add(threadId)
        this.#leases.forget(threadId)
      },
    }
  }

  #place(threadId: string, entries: readonly Prepared[], lines: Buffer[], first: number): Entry[] {
    const journal = this.#chats.peek(threadId) ?? this.#chats.create(threadId)
    this.#chats.waiting.add(journal)
    return entries.map(({ envelope, marks, body }, n) => {
      const entry = { ...envelope, seq: first + n, body } as Entry
      journal.push(lines[n]!, marks, entry.runId)
      if (marks) this.#tables.apply(threadId, marks)
      return entry
    })
  }

  #thread(threadId: string): Staged {
    const known = this.#threads.get(threadId)
    if (known) return known
    const row = this.#tables.rows.get(threadId)
    const journal = row && this.#chats.peek(threadId)
    // It was made while the caller waited in line, and has left memory since: a very full moment.
    if (row && !journal) throw new RuntimeError('journal_conflict')
    const lastSeq = journal?.lastSeq ?? 0
    const staged: Staged = { exists: row !== undefined, lastSeq, row, facts: new Map(), journal }
    this.#threads.set(threadId, staged)
    return staged
  }

  #check(threadId: string, thread: Staged, guard: Guard) {
    const fence = this.#leases.newest(threadId)
    if (guard.fence !== undefined && guard.fence !== fence)
      throw new RuntimeError('journal_conflict', 'Another driver has taken this thread.', {
        data: { fence: fence ?? 0 },
      })
    for (const expected of guard.expect ?? []) {
      const staged = thread.facts.get(expected.fact)
      const actual = staged === undefined ? thread.journal?.facts.get(expected.fact) : staged
      const met =
        'is' in expected ? (actual ?? null) === expected.is : (actual ?? null) !== expected.not
      if (!met)
        throw new RuntimeError('journal_conflict', `The fact ${expected.fact} has changed.`, {
          data: { fact: expected.fact, actual: actual ?? null },
        })
    }
  }

  /** The thread's name as the entries leave it, which nobody else may have. */
  #rename(threadId: string, thread: Staged, entries: readonly Prepared[]) {
    if (!entries.some(({ marks }) => marks?.thread)) return
    const row = Object.assign({}, thread.row, ...entries.map(({ marks }) => marks?.thread))
    const key = keyOf(row)
    const taken = this.#names.has(key) ? this.#names.get(key) : this.#tables.locate(row)
    if (taken !== undefined && taken !== threadId) throw new RuntimeError('thread_exists')
    if (thread.row && keyOf(thread.row) !== key) this.#names.set(keyOf(thread.row), undefined)
    this.#names.set(key, threadId)
    thread.row = row
  }
}

const nothing: Staged = {
  exists: false,
  lastSeq: 0,
  row: undefined,
  facts: new Map(),
  journal: undefined,
}

const columns = [
  ...(['tenant', 'owner', 'clientId', 'agent', 'title', 'createdAt', 'updatedAt'] as const),
  ...(['archived', 'status', 'leg'] as const),
]

function isWhole(row: Partial<ThreadRow> | undefined): boolean {
  return row !== undefined && columns.every((column) => row[column] !== undefined)
}

const keyOf = ({ tenant, owner, clientId }: ThreadName) => JSON.stringify([tenant, owner, clientId])
