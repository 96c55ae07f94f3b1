import { mkdir, realpath } from 'node:fs/promises'
import { isRuntimeError, RuntimeError } from '../../core/errors.ts'
import type { Archive, Guard, Range, Store } from '../../core/store.ts'
import type { Clock } from '../../lib/clock.ts'
import { interleave } from '../../lib/interleave.ts'
import { privateDirectory } from '../../lib/private.ts'
import type { Describe } from './describe.ts'
import { type Engine, type FileStoreOptions, openEngine } from './engine.ts'
import { prepare } from './entry-line.ts'
import { find } from './find.ts'
import type { Journal } from './journal.ts'
import { type Lock, lockDirectory } from './lock.ts'
import { epochRecord } from './log.ts'
import { unavailable } from './writer.ts'

export type { FileStoreOptions } from './engine.ts'

export type FileStore = Store & Archive & FileStoreExtras

export interface FileStoreExtras {
  /** Writes the journals now. */
  sync(): Promise<void>
  onDescribe(describe: Describe): void
  /** Why the store accepts nothing more, if a sync has failed or the directory is not ours any more. */
  readonly failed: Error | undefined
}

/** Everything in one directory, no server needed. One process at a time has it. */
export async function fileStore(options: FileStoreOptions): Promise<FileStore> {
  await mkdir(options.directory, { recursive: true, mode: privateDirectory })
  const directory = await realpath(options.directory)
  const lock = await lockDirectory(directory)
  try {
    return storeOf(await openEngine({ ...options, directory }, lock), options.clock, lock)
  } catch (error) {
    await lock.release()
    throw error
  }
}

function storeOf(engine: Engine, clock: Clock, lock: Lock): FileStore {
  const { tables, chats, leases, writer, keeper, describer, moved, health, probe } = engine
  let closing: Promise<void> | undefined

  const store: FileStore = {
    async append(threadId, given, guard) {
      if (given.some((entry) => entry.threadId !== threadId))
        throw new RuntimeError('internal', 'An entry names another thread than it is written to.')
      const kind = given[0]?.kind
      const entries = given.map(prepare)
      const believed = copyOf(guard)
      const bytes = entries.reduce((sum, entry) => sum + entry.body.length, 0)
      return withJournal(engine, threadId, () =>
        writer.submit((stage) => stage.append(threadId, kind, entries, believed), {
          threadId,
          bytes,
        }),
      )
    },

    read: async (threadId, range) =>
      (await readJournal(engine, threadId, range)).map(({ entry }) => entry),
    kept: (threadId, range) => readJournal(engine, threadId, range),

    locate: async (name) => tables.locate(name),
    thread: async (threadId) => {
      const row = tables.rows.get(threadId)
      return row && { ...row }
    },
    threads: async (query) => tables.threads(query),
    asks: async (query) => tables.asks(query),
    askChanges: async (query) => tables.askChanges(query),
    find: (query) =>
      find(engine, query).catch((error) => {
        throw isRuntimeError(error) ? error : unavailable(error)
      }),

    async claim(threadId, holder, ttl, force) {
      if (leases.spent) await nextEpoch(engine)
      // In line with the appends: whoever gets a fence sees all that earlier fences have written.
      return writer.after(threadId, () => {
        if (leases.spent) throw new RuntimeError('overloaded', undefined, { retryAfter: 1 })
        return leases.claim(threadId, holder, ttl, force)
      })
    },
    renew: async (holder, ttl) => leases.renew(holder, ttl),
    release: async (threadId, fence) => leases.release(threadId, fence),
    async probe() {
      if (health.failed) throw unavailable(health.failed)
      if (health.full) await probe().catch((error) => Promise.reject(unavailable(error)))
    },
    work: async (limit) => workOf(engine, clock.now(), limit),

    async erase(threadId, guard, residue) {
      const believed = copyOf(guard)
      const kept = residue && { ...residue }
      const erase = () =>
        writer.submit((stage) => stage.erase(threadId, believed, kept), { threadId })
      // What is damaged has no facts to be checked any more, but it can still be removed.
      return chats.damaged.has(threadId) && !guard.expect?.length
        ? erase()
        : withJournal(engine, threadId, erase)
    },

    close() {
      closing ??= close(engine, lock)
      return closing
    },

    async *everyThread() {
      for (const row of [...tables.rows.values()]) yield { ...row }
    },
    dump: (threadId) =>
      withJournal(engine, threadId, async (journal) => {
        const kept = (await journal?.dump(0, Number.POSITIVE_INFINITY)) ?? []
        return kept.map(({ entry: { seq, ...entry }, marks }) => ({
          ...entry,
          ...(marks && { marks }),
        }))
      }),
    async restore(threadId, entries) {
      await nextEpoch(
        engine,
        entries.reduce((most, { fence }) => Math.max(most, fence), 0),
      )
      await store.append(threadId, entries, {})
    },

    residues: () => chats.residues.all(),
    async keepResidue({ id, text }) {
      chats.residues.add({ id, text })
      await keeper.flush()
    },

    sync: () => keeper.flush(),
    onDescribe(describe) {
      describer.begin(describe, moved)
    },
    get failed() {
      return health.failed
    },
  }
  return store
}

/** What was believed when it was said. */
const copyOf = ({ expect, ...rest }: Guard): Guard => ({
  ...rest,
  ...(expect && { expect: expect.map((one) => ({ ...one })) }),
})

function readJournal(engine: Engine, threadId: string, range: Range = {}) {
  const { after = 0, limit = 1000, bytes = Number.POSITIVE_INFINITY } = range
  const { chats } = engine
  return withJournal(engine, threadId, async (journal) => {
    try {
      return journal ? await journal.dump(after, limit, bytes) : []
    } catch (error) {
      if (chats.peek(threadId) !== journal) return [] // erased meanwhile
      if (!isRuntimeError(error)) throw unavailable(error)
      chats.close(threadId, error)
      throw error
    }
  })
}

/** Keeps the thread's journal in memory while something is done with it. */
async function withJournal<T>(
  { tables, chats }: Engine,
  threadId: string,
  use: (journal?: Journal) => Promise<T>,
): Promise<T> {
  if (!tables.rows.has(threadId) && !chats.damaged.has(threadId)) return use()
  const journal = await chats.get(threadId)
  journal.pins++
  try {
    return await use(journal)
  } finally {
    journal.pins--
  }
}

/** Makes the fences to come greater than one that was given, here or elsewhere. */
function nextEpoch({ leases, writer }: Engine, beyond = 0): Promise<void> {
  return writer.submit(() => {
    const epoch = leases.epochAfter(beyond)
    if (epoch === leases.epoch) return { apply() {} } // someone else was first
    return { record: epochRecord(epoch), apply: () => leases.enter(epoch) }
  })
}

function workOf({ tables, leases, chats }: Engine, now: number, limit: number) {
  const legs = new Set<string>()
  const due = new Set<string>()
  let nextAt = Number.POSITIVE_INFINITY
  for (const threadId of tables.legs) {
    const remaining = leases.remaining(threadId)
    if (remaining > 0) nextAt = Math.min(nextAt, now + remaining)
    else legs.add(threadId)
  }
  for (const [threadId, timers] of tables.timers)
    for (const at of timers.values()) {
      if (at <= now) due.add(threadId)
      else nextAt = Math.min(nextAt, at)
    }
  for (const threadId of chats.damaged.keys()) for (const ids of [legs, due]) ids.delete(threadId) // nobody can
  const threadIds = interleave(limit, due, legs)
  return Number.isFinite(nextAt) ? { threadIds, nextAt } : { threadIds }
}

async function close({ writer, upkeep, describer, commitLog }: Engine, lock: Lock) {
  writer.stop(new RuntimeError('stopping'))
  try {
    await writer.drained()
    await upkeep.close()
    await describer.drained(5_000)
    await commitLog.close()
  } finally {
    await lock.release()
  }
}
