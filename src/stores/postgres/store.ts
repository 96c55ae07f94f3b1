import type { Entry } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { Archive, Store } from '../../core/store.ts'
import type { Clock } from '../../lib/clock.ts'
import { interleave } from '../../lib/interleave.ts'
import { archive } from './archive.ts'
import { keepSweeping } from './catch-up.ts'
import { Database, type DatabaseOptions, statementLimit } from './database.ts'
import { find } from './find.ts'
import { lists } from './lists.ts'
import { migrate, migrateOn } from './migrate.ts'
import { problemOf } from './problems.ts'
import { type Found, type KeptRow, keptOf, threadOf } from './rows.ts'
import { type Statement, statements } from './statements.ts'
import { isShortened, keyOf, unpack } from './text.ts'
import { erasureOf, transitionOf } from './transition.ts'
import { writable } from './writable.ts'
import { type Verdict, Writer } from './writer.ts'

export interface PostgresStoreOptions extends DatabaseOptions {
  schema?: string
  /** For tests. Without one the database's own clock decides, the same for all servers. */
  clock?: Clock
  /** Connections that write at the same time. */
  lanes?: number
}

export const defaultSchema = 'handrail'

/** The truth of many servers: one transaction per transition, guards and leases in the database. */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store & Archive> {
  const { schema = defaultSchema, clock, url, connections = 10 } = options
  const { lanes = Math.max(1, Math.min(4, connections - 2)) } = options
  const database = new Database(options)
  if (url !== undefined) await migrate(url, schema)
  else await database.borrow((client) => migrateOn(client, schema))
  const sql = statements(schema)
  const writer = new Writer(database, sql, lanes, options.statementLimit ?? statementLimit)
  const { probe, watch } = writable(database, sql, options.log)
  const now = () => (clock ? Math.floor(clock.now()) : null)
  let closing: Promise<void> | undefined

  async function query<T extends Record<string, unknown>>(statement: Statement, values: unknown[]) {
    if (closing) throw new RuntimeError('stopping')
    try {
      return await database.query<T>(statement, values)
    } catch (error) {
      throw problemOf(error)
    }
  }
  await query(sql.forgetGivenUp, [])
  const ended = new AbortController()
  void keepSweeping(query, sql, ended.signal)
  const { threads, asks, askChanges } = lists({ query } as Database, sql)

  const store: Store = {
    shared: true,

    async append(threadId, given, guard) {
      if (given.some((entry) => entry.threadId !== threadId))
        throw new RuntimeError('internal', 'An entry names another thread than it is written to.')
      const transition = transitionOf(threadId, given, guard)
      const facts = guard.expect?.map(({ fact }) => fact)
      const { thread, creates, columns, entries } = transition
      const { tenant, owner, client_id: id } = (columns ?? {}) as Record<string, unknown>
      const keys = creates ? [thread, JSON.stringify([tenant, owner, id])] : [thread]
      const json = JSON.stringify(transition)
      const verdict = await watch(writer.submit({ append: transition, json }, keys))
      if (verdict.refused) throw refusal(verdict, facts)
      const first = verdict.first_seq ?? 0
      return entries.map(({ envelope, body }, n): Entry => {
        return { ...JSON.parse(envelope), seq: first + n, body: unpack(body) }
      })
    },

    async read(threadId, { after = 0, limit = 1000, bytes } = {}) {
      const range = [Math.max(0, after), Math.max(0, limit), ...(bytes ? [bytes] : [])]
      const statement = bytes ? sql.readSome : sql.read
      const found = await query<StoredEntry>(statement, [keyOf(threadId), ...range])
      return found.map(({ seq, envelope, body }): Entry => {
        return { ...envelope, seq, body: unpack(body) }
      })
    },

    async kept(threadId, { after = 0, limit = 1000, bytes } = {}) {
      const range = [Math.max(0, after), Math.max(0, limit), ...(bytes ? [bytes] : [])]
      const statement = bytes ? sql.keptSome : sql.kept
      return (await query<KeptRow>(statement, [keyOf(threadId), ...range])).map(keptOf)
    },

    async locate({ tenant, owner, clientId }) {
      const [found] = await query<Found>(sql.locate, [tenant, owner, clientId].map(keyOf))
      return found && idOf(found)
    },

    async thread(threadId) {
      const [found] = await query<Found>(sql.thread, [keyOf(threadId)])
      return found && threadOf(found)
    },

    threads,
    asks,
    askChanges,
    find: (asked) => find(query, sql, asked),

    async claim(threadId, holder, ttl, force = false) {
      const values = [keyOf(threadId), keyOf(holder), Math.ceil(ttl), force, now()]
      const [claimed] = await query<{ fence: number | null }>(sql.claim, values)
      return claimed?.fence ? { fence: claimed.fence } : undefined
    },

    async renew(holder, ttl) {
      const values = [keyOf(holder), Math.ceil(ttl), now()]
      const held = await query<{ fence: number }>(sql.renew, values)
      return new Set(held.map(({ fence }) => fence))
    },

    async release(threadId, fence) {
      await query(sql.release, [keyOf(threadId), fence])
    },

    ...(!clock && {
      async time() {
        const [found] = await query<{ now: number }>(sql.time, [])
        return found!.now
      },
    }),

    async probe() {
      if (closing) throw new RuntimeError('stopping')
      await probe()
    },

    async work(limit) {
      const [found, next] = await Promise.all([
        query<Found & { due: boolean }>(sql.work, [Math.max(0, limit), now()]),
        query<{ next_at: number | null }>(sql.nextAt, [now()]),
      ])
      const timers = found.filter(({ due }) => due).map(idOf)
      const legs = found.filter(({ due }) => !due).map(idOf)
      const threadIds = interleave(limit, timers, legs)
      const nextAt = next[0]?.next_at ?? null
      return nextAt === null ? { threadIds } : { threadIds, nextAt }
    },

    async erase(threadId, guard, residue) {
      const facts = guard.expect?.map(({ fact }) => fact)
      const erase = erasureOf(threadId, guard, residue)
      const verdict = await watch(writer.submit({ erase }, [erase.thread]))
      if (verdict.refused) throw refusal(verdict, facts)
    },

    close() {
      ended.abort()
      closing ??= writer.stop(5_000).then(() => database.close())
      return closing
    },
  }
  return { ...store, ...archive(query, sql, store.append) }
}

interface StoredEntry extends Record<string, unknown> {
  seq: number
  envelope: Omit<Entry, 'seq' | 'body'>
  body: string
}

const idOf = ({ thread_id, names }: Found): string =>
  unpack(isShortened(thread_id as string) ? names!.threadId! : (thread_id as string))

function refusal({ refused, place, actual }: Verdict, facts: string[] = []): RuntimeError {
  if (refused === 'fence')
    return new RuntimeError('journal_conflict', 'Another driver has taken this thread.', {
      data: { fence: Number(actual) },
    })
  if (refused === 'thread_not_found' || refused === 'thread_exists')
    return new RuntimeError(refused)
  const fact = facts[place! - 1]
  return new RuntimeError('journal_conflict', `The fact ${fact} has changed.`, {
    data: { fact, actual: actual === null ? null : unpack(actual) },
  })
}
