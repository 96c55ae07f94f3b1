import { writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Verifier, verifyThread } from '../../src/core/audit-verify.ts'
import { postgresReader } from '../../src/stores/postgres/reader.ts'
import { defaultSchema, postgresStore } from '../../src/stores/postgres/store.ts'
import { readThreads, type Thread } from '../crash/checker.ts'
import type { Random } from '../crash/random.ts'
import { keys } from '../support/chained.ts'
import { chatsClient, type Send } from '../support/chats.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { type OutsideRecord, startRecord } from '../support/record.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { temporaryDirectory } from '../support/server.ts'
import { type Register, Seat } from './seat.ts'

/** What is acknowledged survives a crash of Postgres; that of the machine is not played here. */
const settings = 'fsync = off\nfull_page_writes = off'

export const leaseMs = 2_000

export interface World {
  postgres: Postgres
  redis: RedisServer
  seats: Seat[]
  register: Register
  /** Logs, spools, and the outside's record. */
  directory: string
  outside: string
  /** The provider and the remote agent, and what they got. */
  record: OutsideRecord
  /** All processes end; the files go when nothing was wrong. */
  close(keep: boolean): Promise<void>
}

/** Real processes: one Postgres, one Redis, and servers that share nothing else. */
export async function createWorld(count: number, env: Record<string, string>): Promise<World> {
  const directory = await temporaryDirectory()
  await mkdir(directory.path, { recursive: true })
  const [postgres, redis] = await Promise.all([startPostgres(settings), startRedis()])
  const outside = `${directory.path}/outside`
  const record = await startRecord(`${outside}.received`)
  const register: Register = {
    ...{ lives: new Map(), legs: new Map() },
    ...{ problems: [], died: new Map() },
  }
  const shared = {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    HANDRAIL_LEASE_MS: String(leaseMs),
    HANDRAIL_AUDIT_KEY: keys[0].secret,
    CRASH_OUTSIDE: outside,
    CRASH_RECORD: record.url,
    ...env,
  }
  const seats = Array.from(
    { length: count },
    (_, n) => new Seat('abcdefgh'[n]!, directory.path, shared, register),
  )
  await Promise.all(seats.map((seat) => seat.begin()))
  return {
    ...{ postgres, redis, seats, register, outside, record },
    directory: directory.path,
    async close(keep) {
      await Promise.all(seats.map((seat) => seat.close()))
      await Promise.all([postgres.stop(), redis.stop(), record.close()])
      if (!keep) await directory.remove()
    },
  }
}

/** Every thread, read without any server. */
export async function journalOf({ postgres }: World): Promise<Thread[]> {
  const store = await postgresStore({ url: postgres.url })
  const reader = await postgresReader(postgres.url, defaultSchema)
  try {
    const threads = await readThreads(store)
    for (const thread of threads) {
      const { threadId } = thread
      const verifier = new Verifier(keys, threadId)
      thread.verdict = await verifyThread(reader.entries(threadId), verifier)
    }
    return threads
  } finally {
    await reader.close()
    await store.close()
  }
}

/** For whoever looks into it. */
export function writeDown({ directory }: World, threads: Thread[], problems: string[]): void {
  const lines = threads.flatMap(({ entries }) => entries.map((entry) => JSON.stringify(entry)))
  writeFileSync(`${directory}/journal.ndjson`, `${lines.join('\n')}\n`)
  writeFileSync(`${directory}/problems`, `${problems.join('\n')}\n`)
}

/** The server says: not now. */
export class Away extends Error {
  override name = 'Away'
}

/** Milliseconds until a server that says nothing counts as away. */
const patience = 6_000

/** A client whose every request goes to any of the servers. */
export function anyOf({ seats, register }: World, random: Random) {
  const send: Send = async (path, init) => {
    const url = random.pick(seats).url
    if (url === undefined) throw new Away('nobody is there')
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new Away('it does not answer')), patience)
    const signal = init.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal
    const response = await fetch(url + path, { ...init, signal }).finally(() => clearTimeout(timer))
    if (response.status < 500) return response
    const text = await response.text()
    const refused = response.status === 503 && response.headers.has('retry-after')
    const unknown = response.status === 504 && text.includes('"outcome_unknown"')
    if (!(refused || unknown) || !/"code":"/.test(text))
      register.problems.push(`${init.method} ${path}: ${response.status} ${text}`)
    throw new Away(text)
  }
  return chatsClient(send)
}
