import pg from 'pg'
import type { AskQuery, NewEntry, Store } from '../src/core/store.ts'
import { systemClock } from '../src/lib/clock.ts'
import { fileStore } from '../src/stores/file/store.ts'
import { postgresStore } from '../src/stores/postgres/store.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { median, ms, quantile, quickest, table, withDirectory } from './support.ts'

const sizes = [1_000, 100_000]
const rounds = 100
/** One approver of all, and an owner of one in a hundred. */
const approver = { user: 'carl', roles: ['user', 'approver'] }
const owner = { user: 'owner7', roles: ['user'] }

/** One page of the inbox (GET /approvals?limit=50), with few and with many questions open. */
export async function inbox(): Promise<void> {
  const files: string[][] = []
  for (const size of sizes)
    await withDirectory(async (directory) => {
      const fs = { sync: async () => {} } // how soon they are written is not the question
      const store = await fileStore({ directory, clock: systemClock, fs })
      await fill(store, size)
      files.push(...(await measure(size, store, () => 0)))
      await store.close()
    }, quickest)
  show('files', files, 'From the index in memory: nothing is read.')
  const queries = counted()
  const rows: string[][] = []
  for (const size of sizes) {
    const server = await startPostgres('fsync = off')
    try {
      const store = await postgresStore({ url: server.url })
      await fillPostgres(server.url, size)
      rows.push(...(await measure(size, store, queries)))
      await store.close()
    } finally {
      await server.stop()
    }
  }
  show('Postgres', rows, 'Server and client on this machine.')
}

const show = (store: string, rows: string[][], note: string) =>
  table(
    `12. The inbox on ${store}: one page of 50, the most urgent first`,
    [['open', 'page', 'p50', 'p99', 'queries per page'], ...rows],
    [`${note} After a change: a question raised before each page.`],
  )

async function measure(size: number, store: Store, queries: () => number) {
  const base = { tenant: 'acme', state: 'pending', limit: 50 } as const
  const deadline = size - 25
  const late = Buffer.from(JSON.stringify(['soonest', deadline, '', ''])).toString('base64url')
  const asked: [string, AskQuery, before?: (n: number) => Promise<unknown>][] = [
    ['first, of an approver', { ...base, decider: approver }],
    ['last, of an approver', { ...base, decider: approver, cursor: late }],
    ['first, of an owner', { ...base, decider: owner }],
    ['first, one tool in fifty', { ...base, decider: approver, tool: 'tool7' }],
    ['first, after a change', { ...base, decider: approver }, (n) => raise(store, size + n)],
  ]
  const rows: string[][] = []
  for (const [name, query, before] of asked) {
    const took: number[] = []
    let made = 0
    for (let n = 0; n < rounds; n++) {
      await before?.(n)
      const since = performance.now()
      const first = queries()
      const page = await store.asks(query)
      took.push(performance.now() - since)
      made += queries() - first
      if (page.rows.length === 0) throw new Error('the page is empty')
    }
    const times = [ms(median(took)), ms(quantile(took, 0.99))]
    rows.push([size.toLocaleString('en'), name, ...times, String(made / rounds)])
  }
  return rows
}

const owners = 100

/** A thread for each owner, with all that they were asked: how many threads there are does not matter here. */
async function fill(store: Store, size: number): Promise<void> {
  for (let of = 0; of < owners; of++) {
    const asks = Array.from({ length: Math.ceil((size - of) / owners) }, (_, n) => of + n * owners)
    const names = { tenant: 'acme', owner: `owner${of}`, clientId: 'c', agent: 'default' }
    const times = { title: null, createdAt: 0, updatedAt: 0 }
    const row = { ...names, threadId: `t${of}`, ...times, archived: false }
    const created: NewEntry = {
      ...entryOf(`t${of}`, `created${of}`),
      marks: { thread: { ...row, status: 'waiting', leg: null } },
    }
    await store.append(`t${of}`, [{ ...created, kind: 'thread.created' }, ...asks.map(raised)], {})
  }
}

const raise = (store: Store, n: number) => store.append(`t${n % owners}`, [raised(n)], {})

function raised(n: number): NewEntry {
  const threadId = `t${n % owners}`
  const names = { tenant: 'acme', owner: `owner${n % owners}`, clientId: 'c', agent: 'default' }
  const open = { state: 'pending', raisedAt: 0, deadline: n, settledAt: null } as const
  const about = { kind: 'approval', title: 'Run it?', tool: `tool${n % 50}`, runId: 'r' } as const
  const audience = ['owner', 'approver']
  const ask = { askId: `a${n}`, threadId, ...names, ...about, audience, ...open, decidedBy: null }
  return { ...entryOf(threadId, `a${n}`), kind: 'ask.raised', marks: { ask } }
}

const entryOf = (threadId: string, id: string): NewEntry => ({
  ...{ v: 1, id, threadId, tx: 'tx', at: 0, fence: 0, digest: '', body: '{}', kind: 'event' },
  actor: { type: 'user', id: 'owner' },
})

async function fillPostgres(url: string, size: number): Promise<void> {
  const client = new pg.Client(`${url}?options=-csearch_path%3Dhandrail`)
  await client.connect()
  await client.query(`INSERT INTO threads SELECT 't' || n, 'acme', 'owner' || n, 'c', 'default',
    NULL, 0, 0, false, 'waiting', NULL, 1, NULL FROM generate_series(0, ${owners - 1}) n`)
  await client.query(`INSERT INTO asks (thread_id, ask_id, tenant, owner, run_id, kind, title, tool, audience,
    state, raised_at, deadline) SELECT 't' || n % ${owners}, 'a' || n, 'acme', 'owner' || n % ${owners}, 'r', 'approval',
    'Run it?', 'tool' || n % 50, '{owner,approver}', 'pending', 0, n FROM generate_series(0, ${size - 1}) n`)
  await client.query('ANALYZE')
  await client.end()
}

/** How many queries this process has sent. */
function counted(): () => number {
  let count = 0
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    count++
    return Reflect.apply(query, this, given)
  } as typeof query
  return () => count
}
