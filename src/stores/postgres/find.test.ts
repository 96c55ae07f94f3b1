import { expect, test } from 'vitest'
import { say, saying } from '../../../test/contracts/find.contract.ts'
import { askOf, create } from '../../../test/contracts/store.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import type { Store } from '../../core/store.ts'
import { catchUp, sweep } from './catch-up.ts'
import { type Query, statements } from './statements.ts'

const { open, judge, schema } = postgresWorkshop()

const ann = { tenant: 'acme', owner: 'ann', limit: 50 }
const find = async (store: Store, ...words: string[]) =>
  (await store.find({ ...ann, words })).rows.map(({ excerpt }) => excerpt)

/** As the store asks, by somebody else. */
async function outside() {
  const client = await judge()
  const query: Query = async ({ text }, values) => {
    const { rows } = await client.query(text, values)
    return rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          /seq|after/.test(name) ? Number(value) : value,
        ]),
      ),
    ) as never
  }
  const count = async (table: string) =>
    Number((await client.query(`SELECT count(*) AS n FROM ${table}`)).rows[0].n)
  return { client, query, count, sql: statements(schema()) }
}

test('appends leave the index alone, and a search finds what it does not have', async () => {
  const store = await open()
  const { client, count } = await outside()
  await create(store, 't')
  await say(store, 't', 'first word')
  expect(await count('said')).toBe(0)
  expect(await find(store, 'word')).toEqual(['first word'])
  await say(store, 't', 'second word')
  expect(await count('said')).toBe(1)
  expect(await find(store, 'word')).toEqual(['second word', 'first word'])
  // All of it can be made again, and half of it is finished.
  await client.query('TRUNCATE said, looked')
  expect(await find(store, 'word')).toHaveLength(2)
  await client.query('DELETE FROM said WHERE seq > 2; UPDATE looked SET seq = 2')
  expect(await find(store, 'word')).toHaveLength(2)
  expect(await count('said')).toBe(2)
})

test('a sweep finds what there was before, in steps, and does nothing the second time', async () => {
  const store = await open()
  for (const id of ['p', 'q']) {
    await create(store, id)
    for (let n = 0; n < 3; n++)
      await store.append(
        id,
        Array.from({ length: 300 }, () => saying(id, `word ${id}${n}`)),
        {},
      )
  }
  const { query, sql, count } = await outside()
  expect(await sweep(query, sql)).toBe(4)
  expect(await count('said')).toBe(1_800)
  expect(await sweep(query, sql)).toBe(0)
  expect(await find(store, 'p2')).toHaveLength(50)
  await store.erase('p', {})
  expect(await count('said')).toBe(900)
  expect(await count('looked')).toBe(1)
})

test('what several find at once is there once; what is erased meanwhile is not', async () => {
  const store = await open()
  const { query, sql, count } = await outside()
  await create(store, 't')
  await store.append(
    't',
    Array.from({ length: 40 }, (_, n) => saying('t', `word ${n}`)),
    {},
  )
  const another = await open()
  await Promise.all([
    ...Array.from({ length: 4 }, () => find(store, 'word')),
    ...Array.from({ length: 4 }, () => find(another, 'word')),
    catchUp(query, sql, { thread_id: 't', after: 0 }),
    say(store, 't', 'word at last', { at: 2_000 }),
  ])
  expect((await find(store, 'word'))[0]).toBe('word at last')
  expect(await count('said')).toBe(41)
  // Somebody has read the entries and comes back with their words too late.
  const late: Query = async (statement, values) => {
    if (statement === sql.catchUp) await store.erase('t', {})
    return query(statement, values)
  }
  await say(store, 't', 'word after that')
  await catchUp(late, sql, { thread_id: 't', after: 42 })
  expect(await count('said')).toBe(0)
  expect(await count('looked')).toBe(0)
})

test('says so when there is too much to catch up with, and goes on the next time', async () => {
  const store = await open()
  await Promise.all(
    Array.from({ length: 60 }, async (_, n) => {
      await create(store, `t${n}`)
      await say(store, `t${n}`, `word ${n}`)
    }),
  )
  const first = await store.find({ ...ann, words: ['word'], limit: 100 })
  expect(first.cut).toBe(true)
  expect(first.rows.length).toBeGreaterThanOrEqual(50)
  const second = await store.find({ ...ann, words: ['word'], limit: 100 })
  expect(second.cut).toBeUndefined()
  expect(second.rows).toHaveLength(60)
})

test('words that are in many texts, and one after the other in few, are found page by page', async () => {
  const store = await open()
  await create(store, 't')
  await say(store, 't', 'blue moon', { at: 1 })
  for (let n = 0; n < 6; n++)
    await store.append(
      't',
      Array.from({ length: 400 }, () => saying('t', 'moon blue')),
      {},
    )
  let page = await store.find({ ...ann, words: ['blue moon'], limit: 5 })
  expect(page).toEqual({ rows: [], next: expect.any(String) })
  page = await store.find({ ...ann, words: ['blue moon'], limit: 5, cursor: page.next! })
  expect(page).toMatchObject({ rows: [{ excerpt: 'blue moon' }] })
  expect(page.next).toBeUndefined()
})

test('no table keeps the title, an ask or a word of an erased thread', async () => {
  const store = await open()
  const { client } = await outside()
  await create(store, 't', { title: 'secret title' }, { ask: askOf('a', 't', { title: 'secret' }) })
  await say(store, 't', 'a secret word')
  expect(await find(store, 'secret')).toEqual(['a secret word'])
  const tables = async (text: string) => {
    const { rows } = await client.query(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1',
      [schema()],
    )
    const found: string[] = []
    for (const { name } of rows) {
      const { rowCount } = await client.query(
        `SELECT 1 FROM "${schema()}"."${name}" AS one WHERE one::text LIKE $1 LIMIT 1`,
        [`%${text}%`],
      )
      if (rowCount) found.push(name)
    }
    return found
  }
  expect((await tables('secret')).length).toBeGreaterThan(1)
  await store.erase('t', {})
  expect(await tables('secret')).toEqual([])
})
