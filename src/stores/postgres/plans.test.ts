import { expect, test } from 'vitest'
import { askOf, create, entry } from '../../../test/contracts/store.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import type { Database } from './database.ts'
import { lists } from './lists.ts'
import { type Statement, statements } from './statements.ts'

const { open, judge, schema } = postgresWorkshop('fsync = off')

/** 100,000 threads of 100 owners; each has facts, one in ten a lease, one in a hundred a leg and a timer. */
const fill = `
INSERT INTO threads SELECT 't' || n, 'acme', 'owner' || n % 100, 'c' || n, 'agent' || n % 3, 'A title',
  n, n, n % 2 = 0, 'idle', CASE WHEN n % 100 = 0 THEN 'l' END, 3, NULL FROM generate_series(1, 100000) n;
INSERT INTO entries SELECT 't' || n, s, '{"v":1}', NULL, '{"name":"x"}'
  FROM generate_series(1, 100000) n, generate_series(1, 3) s;
INSERT INTO facts SELECT 't' || n, f, 'v' FROM generate_series(1, 100000) n, unnest('{active,leg}'::text[]) f;
INSERT INTO leases SELECT 't' || n, nextval('fences'), 'h' || n % 7, now_ms() + 60000
  FROM generate_series(1, 100000, 10) n;
INSERT INTO timers SELECT 't' || n, 'k', now_ms() + n * 1000 FROM generate_series(1, 100000, 100) n;
INSERT INTO asks SELECT 't' || n, 'a', 'acme', 'owner' || n % 100, 'r', 'approval', 'Run it?', NULL, '{}',
  CASE WHEN n % 50 = 1 THEN 'pending' ELSE 'approved' END, n, n, NULL, NULL FROM generate_series(1, 100000, 5) n;
INSERT INTO looked SELECT thread_id, last_seq, owner_key(tenant, owner) FROM threads;
INSERT INTO said SELECT thread_id, 2, updated_at, ARRAY[updated_at::integer % 500, updated_at::integer % 777]
  FROM threads;
ANALYZE;`

const who = { tenant: 'acme', owner: 'owner7' }
const threads = { ...who, limit: 20 }
const asks = { tenant: 'acme', limit: 20 }
const decider = { user: 'owner7', roles: ['user', 'approver'] }
const inbox = { ...asks, decider, state: 'pending' } as const

test('with 100,000 threads nothing of the contract reads a whole table', async () => {
  const once = await open()
  const client = await judge()
  await client.query(fill)
  await once.close()
  const scans = async () => {
    const text = `SELECT relname, seq_scan FROM pg_stat_user_tables
      WHERE schemaname = $1 AND relname NOT IN ('given_up', 'migrations') ORDER BY 1`
    const { rows } = await client.query(text, [schema()])
    return Object.fromEntries(rows.map(({ relname, seq_scan }) => [relname, Number(seq_scan)]))
  }
  await new Promise((resolve) => setTimeout(resolve, 1_500)) // what was done is counted by now
  const scanned = await scans()

  const store = await open({ connections: 2, lanes: 1 })
  // Often enough for Postgres to settle on the plans that it keeps.
  for (let n = 0; n < 12; n++) {
    const id = `t${1000 + n * 10 + 1}`
    const page = await store.threads(threads)
    await store.threads({ ...threads, archived: false, cursor: page.next! })
    await store.threads({ ...threads, active: true })
    const first = await store.asks(asks)
    await store.asks({ ...asks, cursor: first.next! })
    const own = await store.asks(inbox)
    await store.asks({ ...inbox, cursor: own.next! })
    await store.asks({ ...inbox, state: 'settled', kind: 'approval' })
    await store.asks({ ...inbox, askId: 'a' })
    const { next } = await store.askChanges({ tenant: 'acme', decider, limit: 10 })
    await store.askChanges({ tenant: 'acme', decider, limit: 10, after: next })
    await store.asks({ ...asks, owner: 'owner7' })
    await store.asks({ ...asks, state: 'pending' })
    await store.asks({ ...asks, state: 'pending', owner: 'owner7' })
    await store.asks({ ...asks, state: 'approved', owner: 'owner7' })
    await store.find({ ...who, words: ['some', 'words'], limit: 20 })
    await store.read(id)
    await store.locate({ ...who, clientId: 'c7' })
    await store.thread(id)
    const claimed = (await store.claim(id, `plan${n}`, 1000, true))!
    const marks = { facts: { a: '1', b: null }, ask: askOf('a', id), timers: { k: 5, l: null } }
    const guard = { ...claimed, expect: [{ fact: 'active', is: 'v' }] }
    await store.append(id, [entry(id, { marks }), entry(id)], guard)
    await store.renew(`plan${n}`, 1000)
    await store.release(id, claimed.fence)
    await store.work(100)
    await create(store, `new${n}`)
    await store.erase(`new${n}`, { expect: [{ fact: 'active', is: null }] })
  }
  await store.close()
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(await scans()).toEqual(scanned)

  let plan = async ({ text }: Statement, values: unknown[]) => {
    const { rows } = await client.query(`EXPLAIN ${text}`, values)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  const sql = statements(schema())
  const plans: string[] = []
  const database = {
    async query(statement: Statement, values: unknown[]) {
      plans.push(await plan(statement, values))
      return []
    },
  } as unknown as Database
  const listed = lists(database, sql)
  await listed.threads(threads)
  await listed.asks({ ...asks, state: 'pending' })
  await listed.asks({ ...asks, owner: 'owner7' })
  plans.push(await plan(sql.read, ['t7', 0, 1000]), await plan(sql.work, [100, null]))
  plans.push(await plan(sql.nextAt, [null]), await plan(sql.renew, ['h1', 1000, null]))
  const said = [...Object.values(who), [7, 8], 't7', null, null, null, 20]
  plans.push(await plan(sql.said, said), await plan(sql.sweep, ['t7']))
  plans.push(await plan(sql.behindOf, Object.values(who)))
  for (const each of plans) expect(each).not.toMatch(/Seq Scan on (?!given_up)/)
  const [newest, pending, own, read, work, , , byKey] = plans
  expect(byKey).toMatch(/Bitmap Index Scan on said_by_key/)
  const before = plans.length
  await listed.asks(inbox)
  await listed.asks({ ...inbox, cursor: cursorOf(['soonest', 500, 'a', 't1']) })
  await listed.asks({ ...inbox, state: 'settled' })
  await listed.asks({ ...asks, decider, askId: 'another' })
  const pages = plans.slice(before)
  expect(pages).toHaveLength(4) // one query for each page
  for (const [n, each] of pages.slice(0, 3).entries()) {
    const index = n < 2 ? 'inbox_soonest' : 'inbox_latest'
    expect(each).toMatch(new RegExp(`Index (Only )?Scan (Backward )?using ${index}`))
    expect(each).not.toMatch(/Seq Scan/)
  }
  expect(pages[3]).toMatch(/asks_by_id/)
  // Of each tray no more is read than a page, and one row more.
  plan = async ({ text }, values) => {
    const { rows } = await client.query(`EXPLAIN ANALYZE ${text}`, values)
    return rows.map((one) => one['QUERY PLAN']).join('\n')
  }
  await listed.asks(inbox)
  await listed.asks({ ...inbox, kind: 'approval' })
  for (const each of plans.slice(before + 4)) {
    const [, scan = ''] = /Scan using inbox_soonest(.*)/.exec(each) ?? []
    const [, read] = /actual .* rows=(\d+)/.exec(scan) ?? []
    expect(Number(read)).toBeGreaterThan(0)
    expect(Number(read)).toBeLessThanOrEqual(21)
    expect(each).not.toMatch(/Hash Join|Merge Join/)
  }
  expect(newest).toMatch(/Index Scan using threads_newest/)
  expect(newest).not.toMatch(/Sort/)
  expect(pending).toMatch(/Index Scan using asks_pending_of_tenant/)
  expect(own).toMatch(/Index Scan using asks_of_owner/)
  expect(read?.match(/entries_\d_pkey/g)).toHaveLength(1) // one partition
  expect(work).toMatch(/threads_with_leg/)
  expect(work).toMatch(/timers_soonest/)
}, 60_000)

const cursorOf = (key: unknown[]) => Buffer.from(JSON.stringify(key)).toString('base64url')
