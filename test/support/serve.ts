import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import { compose } from '../../src/compose.ts'
import { readConfig } from '../../src/config.ts'
import type { Log } from '../../src/core/worker.ts'
import { sha256 } from '../../src/lib/canonical.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { auditIfAny } from '../../src/open-audit.ts'
import type { Settings } from '../../src/settings.ts'
import { chatsClient } from './chats.ts'
import { checkChain, checkJournal, journalOf } from './journal.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { temporaryDirectory } from './server.ts'

export interface Served extends ReturnType<typeof chatsClient> {
  url: string
  data: string
  server: Awaited<ReturnType<typeof compose>>
  /** The journal of a chat, of a server without auth. */
  journal(chatId: string): ReturnType<typeof journalOf>
  /** Waits until the journal holds such an entry. */
  recorded(chatId: string, kind: string): Promise<void>
  /** Everything that is on disk, and in the database if there is one, as text. Call it after `close`. */
  stored(): Promise<string>
  close(): Promise<void>
}

export interface ServeOptions {
  env?: Record<string, string>
  clock?: Clock
  /** A directory that outlives this server. */
  data?: string
  log?: Log
}

/** The whole server in this process on a port of its own, closed and checked when the test ends. */
export async function serve(settings: Settings = {}, options: ServeOptions = {}): Promise<Served> {
  const directory = options.data === undefined ? await temporaryDirectory() : undefined
  const data = options.data ?? directory!.path
  const config = readConfig({
    PORT: '0',
    LOG_LEVEL: 'silent',
    HANDRAIL_DATA: data,
    HANDRAIL_SPOOL: `${data}/spool`,
    HANDRAIL_DRAIN_MS: '0',
    HANDRAIL_DEMO_DELAY_MS: '0',
    ...(await databaseFor(data)),
    ...options.env,
  })
  const server = await compose(config, settings, options.clock, options.log)
  const port = await server.listen()
  const url = `http://127.0.0.1:${port}`
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= (async () => {
      const keys = await auditIfAny(config)
      for (const { threadId } of await everyThread(server.store)) {
        checkJournal(await journalOf(server.store, threadId))
        if (keys) await checkChain(server.store, keys, threadId)
      }
      await server.close()
    })()
    return closed
  }
  onTestFinished(async () => {
    await close()
    await directory?.remove()
  })
  return {
    url,
    data,
    server,
    ...chatsClient(url),
    journal: (chatId) => journalOf(server.store, chatId),
    async recorded(chatId, kind) {
      const thread = await server.runtime.thread(chatId)
      await new Promise<void>((resolve, reject) => {
        const unlisten = thread.listen((entry) => {
          if (entry.kind !== kind) return
          unlisten()
          resolve()
        })
        journalOf(server.store, chatId).then((entries) => {
          if (!entries.some((entry) => entry.kind === kind)) return
          unlisten()
          resolve()
        }, reject)
      })
    },
    async stored() {
      const files = await readdir(data, { recursive: true, withFileTypes: true })
      const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
      const texts = await Promise.all(paths.map((path) => readFile(path, 'latin1')))
      const { url, schema } = config.database ?? {}
      if (url !== undefined) texts.push(await everyRow(url, schema ?? ''))
      return texts.join('\n')
    },
    close,
  }
}

async function everyRow(url: string, schema: string): Promise<string> {
  const client = new Client(url)
  await client.connect()
  try {
    const tables = await client.query(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1',
      [schema],
    )
    let all = ''
    for (const { name } of tables.rows) {
      const { rows } = await client.query(`SELECT t::text AS row FROM "${schema}"."${name}" t`)
      all += rows.map(({ row }) => row).join('\n')
    }
    return all
  } finally {
    await client.end()
  }
}

let postgres: Promise<Postgres> | undefined

/** With HANDRAIL_TEST_STORE=postgres the same stories are told there: a schema for each directory. */
async function databaseFor(data: string): Promise<Record<string, string>> {
  if (process.env.HANDRAIL_TEST_STORE !== 'postgres') return {}
  postgres ??= startPostgres() // it goes with this process
  const { url } = await postgres
  const HANDRAIL_DATABASE_SCHEMA = `s_${sha256(data).slice(0, 20)}`
  return { DATABASE_URL: url, HANDRAIL_DATABASE_SCHEMA, HANDRAIL_DATABASE_CONNECTIONS: '4' }
}

type Store = Awaited<ReturnType<typeof compose>>['store']

/** Over all owners: the store answers for one, so the work is done by what is on disk. */
async function everyThread(store: Store): Promise<{ threadId: string }[]> {
  const found: { threadId: string }[] = []
  for (const owner of ['local', 'ann', 'bob']) {
    const { rows } = await store.threads({ tenant: 'default', owner, limit: 1_000 })
    found.push(...rows)
  }
  return found
}
