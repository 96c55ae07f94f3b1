import { existsSync } from 'node:fs'
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { say } from '../../../test/contracts/find.contract.ts'
import { create } from '../../../test/contracts/store.contract.ts'
import { workshop } from '../../../test/support/file-workshop.ts'
import type { Store } from '../../core/store.ts'
import { wordsName } from './words.ts'

const { directory, open, corpse } = workshop()

const ann = { tenant: 'acme', owner: 'ann', limit: 50 }
const find = async (store: Store, ...words: string[]) =>
  (await store.find({ ...ann, words })).rows.map(({ excerpt }) => excerpt)
/** Long enough for its words to be written down. */
const long = `${'and so on '.repeat(6_000)}`
const wordsOf = (path: string) => join(path, 'chats', 't', wordsName)

/** A chat whose words are written down, and that goes on afterwards. */
async function story() {
  const path = await directory()
  const store = await open(path)
  await create(store, 't')
  for (const n of [1, 2]) await say(store, 't', `word ${n}. ${long}`, { at: n })
  await store.sync()
  expect(await find(store, 'word')).toHaveLength(2)
  expect(existsSync(wordsOf(path))).toBe(true)
  await say(store, 't', 'word 3', { at: 3 })
  return { path, store }
}

test('finds what the words on disk do not have, however the process ended', async () => {
  const { path, store } = await story()
  const onlyInLog = await corpse(path)
  await store.sync()
  const inJournal = await corpse(path)
  for (const left of [onlyInLog, inJournal]) {
    const again = await open(left)
    expect((await find(again, 'word'))[0]).toBe('word 3')
    expect(await find(again, 'word')).toHaveLength(3)
    expect(await find(again, '3')).toEqual(['word 3'])
  }
})

test.each([
  ['missing', (path: string) => rm(path)],
  ['cut off', (path: string) => truncate(path, 100)],
  ['empty', (path: string) => truncate(path, 0)],
  ['something else', (path: string) => writeFile(path, '["00000000",{}]\n')],
])('makes the words anew when their file is %s', async (_, spoil) => {
  const { path } = await story()
  const left = await corpse(path)
  await spoil(wordsOf(left))
  const again = await open(left)
  expect(await find(again, 'word')).toHaveLength(3)
})

test('relies on the words on disk: a journal that has not grown is not read for them', async () => {
  const { path, store } = await story()
  await store.close()
  const content = await readFile(wordsOf(path), 'utf8')
  const { size } = JSON.parse(content)[1]
  expect(size).toBeGreaterThan(2 * long.length)
  const again = await open(path)
  expect(await find(again, 'absent')).toEqual([])
  expect(await readFile(wordsOf(path), 'utf8')).toBe(content)
})

test('leaves no words of what is erased', async () => {
  const { path, store } = await story()
  await store.erase('t', {})
  const left = await corpse(path)
  const again = await open(left)
  expect(await find(again, 'word')).toEqual([])
  await create(again, 't')
  await say(again, 't', 'another word')
  expect(await find(again, 'word')).toEqual(['another word'])
  await again.sync()
  expect(await find(again, 'word')).toEqual(['another word'])
  expect(await readdir(join(left, 'chats', 't'))).toEqual(['journal.ndjson'])
  await again.close()
  expect(await find(await open(left), 'word')).toEqual(['another word'])
})

test('knows nothing of an erased chat when another has its id', async () => {
  const { store } = await story()
  await store.erase('t', {})
  await create(store, 't')
  await say(store, 't', 'another text')
  await store.sync()
  expect(await find(store, 'another')).toEqual(['another text'])
  expect(await find(store, 'word')).toEqual([])
})

test('says so when it could not look at everything', async () => {
  const { path, store } = await story()
  await create(store, 'u')
  await say(store, 'u', 'word of u')
  await store.close()
  const hurried = await open(path, { patience: -1 })
  expect(await hurried.find({ ...ann, words: ['word'] })).toEqual({ rows: [], cut: true })
  await hurried.close()
  const journal = join(path, 'chats', 't', 'journal.ndjson')
  const content = await readFile(journal, 'utf8')
  await writeFile(journal, content.replace('word 1', 'wort 1'))
  const damaged = await open(path)
  await expect(damaged.read('t')).rejects.toMatchObject({ code: 'thread_damaged' })
  const { rows, cut } = await damaged.find({ ...ann, words: ['word'] })
  expect({ found: rows.map(({ excerpt }) => excerpt), cut }).toEqual({
    found: ['word of u'],
    cut: true,
  })
})
