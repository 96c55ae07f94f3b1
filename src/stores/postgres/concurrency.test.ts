import { expect, test } from 'vitest'
import { askOf, create, entry } from '../../../test/contracts/store.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import type { Marks, Store } from '../../core/store.ts'

const { server, open, judge } = postgresWorkshop()
const times = <T>(n: number, make: (i: number) => T): T[] =>
  Array.from({ length: n }, (_, i) => make(i))
const conflict = { code: 'journal_conflict' }

/** Two servers at one database. */
const pair = async (): Promise<[Store, Store]> => [await open(), await open()]
const won = <T>(results: PromiseSettledResult<T>[]) =>
  results.filter(({ status }) => status === 'fulfilled').length

test('two servers write to one thread: no seq is missing and none is given twice (I5)', async () => {
  const [a, b] = await pair()
  await create(a, 't')
  const write = (store: Store) =>
    Promise.all(times(60, () => store.append('t', [entry('t'), entry('t')], {})))
  const placed = (await Promise.all([write(a), write(b)])).flat(2)
  const seqs = placed.map(({ seq }) => seq).sort((x, y) => x - y)
  expect(seqs).toEqual(times(240, (i) => i + 2))
  const read = await b.read('t')
  expect(read.map(({ seq }) => seq)).toEqual(times(241, (i) => i + 1))
  expect(read.slice(1)).toEqual(placed.sort((x, y) => x.seq - y.seq))
})

test('of many answers over two servers one wins, and the others are told what was decided (I2)', async () => {
  const stores = await pair()
  await create(stores[0], 't', {}, { facts: { 'ask:1': 'pending' } })
  const results = await Promise.allSettled(
    times(40, (i) => {
      const marks = { facts: { 'ask:1': `answer ${i}` } }
      const expected = [{ fact: 'ask:1', is: 'pending' }]
      return stores[i % 2]!.append('t', [entry('t', { marks })], { expect: expected })
    }),
  )
  expect(won(results)).toBe(1)
  const decided = `answer ${results.findIndex(({ status }) => status === 'fulfilled')}`
  for (const result of results)
    if (result.status === 'rejected')
      expect(result.reason).toMatchObject({ ...conflict, data: { fact: 'ask:1', actual: decided } })
  expect(await stores[0].read('t')).toHaveLength(2)
})

test('of many claims over two servers exactly one gets the lease (I6)', async () => {
  const stores = await pair()
  await create(stores[0], 't')
  const claims = await Promise.all(
    times(40, (i) => stores[i % 2]!.claim('t', `holder ${i}`, 60_000)),
  )
  expect(claims.filter(Boolean)).toHaveLength(1)
  const forced = await Promise.all(
    times(20, (i) => stores[i % 2]!.claim('t', `force ${i}`, 60_000, true)),
  )
  const fences = forced.map((one) => one!.fence)
  expect(new Set(fences).size).toBe(20)
  const last = Math.max(...fences)
  for (const fence of fences) {
    const written = stores[fence % 2]!.append('t', [entry('t')], { fence })
    if (fence === last) await written
    else await expect(written).rejects.toMatchObject({ ...conflict, data: { fence: last } })
  }
})

test('no entry of an old driver comes after the claim of a new one (I6)', async () => {
  const [a, b] = await pair()
  await create(a, 't')
  for (let n = 0; n < 15; n++) {
    const old = (await a.claim('t', `old ${n}`, 1, true))!
    const writes = Promise.allSettled(
      times(8, () => a.append('t', [entry('t', { fence: old.fence })], old)),
    )
    const next = (await b.claim('t', `new ${n}`, 60_000, true))!
    const seen = (await b.read('t')).length // what the new driver believes to be all
    await b.append('t', [entry('t', { fence: next.fence })], next)
    await writes
    const later = (await b.read('t', { after: seen })).map(({ fence }) => fence)
    expect(later).toEqual([next.fence])
  }
})

test('of many who create under one name over two servers one makes the thread', async () => {
  const stores = await pair()
  for (let n = 0; n < 5; n++) {
    const results = await Promise.allSettled(
      times(20, (i) => create(stores[i % 2]!, `t${n}-${i}`, { clientId: `name ${n}` })),
    )
    expect(won(results)).toBe(1)
    const made = results.findIndex(({ status }) => status === 'fulfilled')
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason.code).toBe('thread_exists')
    const name = { tenant: 'acme', owner: 'ann', clientId: `name ${n}` }
    expect(await stores[1].locate(name)).toBe(`t${n}-${made}`)
  }
})

test('batches that create each other’s names in opposite order all come to an end', async () => {
  const [a, b] = await pair()
  for (let n = 0; n < 10; n++) {
    const make = (store: Store, side: string, order: number[]) =>
      Promise.allSettled(
        order.map((i) => create(store, `${side}${n}-${i}`, { clientId: `x${n}-${i}` })),
      )
    const order = times(12, (i) => i)
    const [one, two] = await Promise.all([make(a, 'a', order), make(b, 'b', order.toReversed())])
    expect(won([...one, ...two])).toBe(12)
  }
})

test('erasing and writing at once over two servers leaves all or nothing', async () => {
  const [a, b] = await pair()
  const client = await judge()
  for (let n = 0; n < 10; n++) {
    const marks: Marks = { facts: { f: '1' }, timers: { k: 1 }, ask: askOf('a', 't') }
    await create(a, 't', {}, marks)
    await Promise.allSettled([
      ...times(5, () => a.append('t', [entry('t', { marks })], {})),
      b.erase('t', {}),
      ...times(5, () => b.append('t', [entry('t', { marks })], {})),
    ])
    expect(await a.thread('t')).toBeUndefined()
    for (const table of ['entries', 'facts', 'timers', 'asks', 'leases', 'threads'])
      expect((await client.query(`SELECT FROM ${table}`)).rowCount, table).toBe(0)
  }
})

test('leases are by the database’s clock, whatever the servers believe', async () => {
  const [a, b] = await pair()
  await create(a, 't', { leg: 'l' })
  expect(await a.claim('t', 'a', 150)).toBeDefined()
  expect(await b.claim('t', 'b', 150)).toBeUndefined()
  const { threadIds, nextAt } = await b.work(10)
  expect(threadIds).toEqual([])
  expect(nextAt! - Date.now()).toBeLessThanOrEqual(150)
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect((await b.work(10)).threadIds).toEqual(['t'])
  expect(await b.claim('t', 'b', 150)).toBeDefined()
})

test('a pool that is given is used and not ended', async () => {
  const { Pool } = (await import('pg')).default
  const pool = new Pool({ connectionString: server().url, max: 3 })
  const { postgresStore } = await import('./store.ts')
  const store = await postgresStore({ pool, schema: 'of_a_pool' })
  await create(store, 't')
  await store.close()
  expect((await pool.query('SELECT FROM of_a_pool.threads')).rowCount).toBe(1)
  await pool.end()
})

test('keeps very large bodies, and very many entries of one transition', async () => {
  const store = await open({ statementLimit: 15_000 })
  await create(store, 't')
  const body = JSON.stringify({ text: '💥é\u0000"\\'.repeat(300_000) }) // some 5 MB
  await store.append('t', [entry('t', { body })], {})
  const many = await store.append(
    't',
    times(3_000, () => entry('t')),
    {},
  )
  expect(many.at(-1)!.seq).toBe(3_002)
  const [large] = await store.read('t', { after: 1, limit: 1 })
  expect(large!.body === body).toBe(true)
  expect(await store.read('t', { after: 2, limit: 5_000 })).toEqual(many)
})
