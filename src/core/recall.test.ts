import { expect, test } from 'vitest'
import { say } from '../../test/contracts/find.contract.ts'
import { create } from '../../test/contracts/store.contract.ts'
import { systemClock } from '../lib/clock.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { recall } from './recall.ts'
import type { Store } from './store.ts'

const here = { threadId: 'here', tenant: 'acme', owner: 'ann' }
const { signal } = new AbortController()
const look = (store: Store, words: string[], limit = 10) =>
  recall(store, here, { words, limit }, signal)

async function told() {
  const store = memoryStore({ clock: systemClock })
  const tell = async (id: string, at: number, text: string, owner = 'ann') => {
    await create(store, id, { owner, clientId: `chat ${id}` })
    await say(store, id, text, { at })
  }
  await tell('old', 1, 'ACC-001 wants a discount')
  await tell('named', 2, 'Harbour Foods, that is ACC-001')
  for (let n = 0; n < 80; n++) await tell(`t${n}`, 100 + n, `Nothing of it, ACC-${n}`)
  await tell('bob', 3, 'ACC-001 of Bob', 'bob')
  await tell('here', 500, 'What of ACC-001?')
  return store
}

test('finds what was said however long ago, by any of the words, each text once', async () => {
  const store = await told()
  const { found, cut } = await look(store, ['acc-001', 'HARBOUR FOODS'])
  expect(found).toEqual([
    { clientId: 'chat named', at: 2, role: 'user', excerpt: 'Harbour Foods, that is ACC-001' },
    { clientId: 'chat old', at: 1, role: 'user', excerpt: 'ACC-001 wants a discount' },
  ])
  expect(cut).toBeUndefined()
  expect((await look(store, ['Foods'])).found).toHaveLength(1)
  expect((await look(store, ['Foods Harbour'])).found).toEqual([])
})

test('gives the newest, no more than asked for, and fifty at most', async () => {
  const store = await told()
  expect((await look(store, ['nothing'], 2)).found.map(({ at }) => at)).toEqual([179, 178])
  expect((await look(store, ['nothing'], 1_000)).found).toHaveLength(50)
})

test('says so when not everything was looked at', async () => {
  const store = await told()
  expect((await look(store, Array(9).fill('acc'))).cut).toBe(true)
  const cutting: Store = {
    ...store,
    find: async (query) => ({ ...(await store.find(query)), cut: true }),
  }
  expect((await look(cutting, ['acc-001'])).cut).toBe(true)
  const leaving = AbortSignal.abort('gone')
  await expect(recall(store, here, { words: ['a'], limit: 1 }, leaving)).rejects.toBe('gone')
})
