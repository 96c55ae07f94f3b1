import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askOf, create, entry } from '../../../test/contracts/store.contract.ts'
import { story } from '../../../test/support/chained.ts'
import { unsynced, workshop } from '../../../test/support/file-workshop.ts'
import type { Store } from '../../core/store.ts'

const { directory, open, corpse } = workshop()
const damaged = { code: 'thread_damaged' }
const query = { tenant: 'acme', owner: 'ann', limit: 99 }
const seqs = async (store: Store, id: string) => (await store.read(id)).map(({ seq }) => seq)
const listed = async (store: Store) =>
  (await store.threads(query)).rows.map((row) => row.threadId).sort()

async function three(store: Store, id: string) {
  await create(store, id, {}, { facts: { a: '1' } })
  await store.append(id, [entry(id, { body: '"two"' })], {})
  await store.append(id, [entry(id, { body: '"three"' })], {})
}

async function change(path: string, edit: (text: string) => string) {
  const text = await readFile(path, 'utf8')
  expect(edit(text)).not.toBe(text)
  await writeFile(path, edit(text))
}

const lastLine = (text: string) => text.lastIndexOf('\n', text.length - 2) + 1
const segmentOf = async (path: string) =>
  join(
    path,
    'log',
    (await readdir(join(path, 'log'))).sort((a, b) => parseInt(a, 10) - parseInt(b, 10)).at(-1)!,
  )

test('cuts the torn last line of the log, wherever it was torn', async () => {
  const path = await directory()
  await three(await open(path), 't')
  const text = await readFile(await segmentOf(path), 'utf8')
  const dead = await corpse(path)
  for (let size = lastLine(text); size < text.length; size++) {
    const copy = await corpse(dead)
    await truncate(await segmentOf(copy), size)
    const store = await open(copy, { fs: unsynced })
    expect(await seqs(store, 't')).toEqual([1, 2])
    await store.append('t', [entry('t')], { expect: [{ fact: 'a', is: '1' }] })
    await store.close()
  }
}, 30_000)

test('completes a journal from the log, wherever it was torn', async () => {
  const path = await directory()
  const store = await open(path)
  await three(store, 't')
  await store.sync()
  const journal = (at: string) => join(at, 'chats', 't', 'journal.ndjson')
  const text = await readFile(journal(path), 'utf8')
  const dead = await corpse(path)
  for (let size = lastLine(text); size < text.length; size += 3) {
    const copy = await corpse(dead)
    await truncate(journal(copy), size)
    const again = await open(copy, { fs: unsynced })
    expect((await again.read('t')).map(({ body }) => body)).toEqual([
      '{"name":"x"}',
      '"two"',
      '"three"',
    ])
    await again.close()
    expect(await readFile(journal(copy), 'utf8')).toBe(text)
  }
}, 30_000)

test('closes a chat whose journal lost its end, unless the log has it', async () => {
  const path = await directory()
  const store = await open(path)
  await three(store, 't')
  await three(store, 'other')
  await store.close()
  const journal = join(path, 'chats', 't', 'journal.ndjson')
  const text = await readFile(journal, 'utf8')
  await truncate(journal, text.length - 1) // a line end says nothing
  const intact = await open(path)
  expect(await seqs(intact, 't')).toEqual([1, 2, 3])
  await intact.close()
  // It was in the log before it was here, so somebody has been told of it.
  for (const size of [text.length - 5, lastLine(text) + 1, 0]) {
    await truncate(journal, size)
    const again = await open(path)
    await expect(again.append('t', [entry('t')], {})).rejects.toMatchObject(damaged)
    await expect(again.read('t')).rejects.toMatchObject(damaged)
    expect(await seqs(again, 'other')).toEqual([1, 2, 3])
    await again.close()
    expect((await readFile(journal)).length).toBe(size) // for whoever repairs it
    await writeFile(journal, text)
  }
  expect(await seqs(await open(path), 't')).toEqual([1, 2, 3])
})

/** The entries of `story`, whose links let the last of a transition say that it is: 6 to 8 are one. */
const last = 8

test.each(['kept', 'missing'])(
  'closes a chat that ends inside a transition, with its index %s',
  async (index) => {
    const path = await directory()
    const store = await open(path)
    await story(store, 't', 1)
    await store.append('t', [entry('t', { marks: { thread: { leg: 'leg' } } })], {})
    await store.close()
    await change(
      join(path, 'chats', 't', 'journal.ndjson'),
      (text) =>
        `${text
          .split('\n')
          .slice(0, last - 1)
          .join('\n')}\n`,
    )
    if (index === 'missing') await rm(join(path, 'index'), { recursive: true })
    const errors: string[] = []
    const log = { info() {}, warn() {}, error: (_: object, text: string) => errors.push(text) }
    const again = await open(path, { log })
    await expect(again.append('t', [entry('t')], {})).rejects.toMatchObject(damaged)
    await expect(again.dump('t')).rejects.toMatchObject(damaged)
    expect(errors).toEqual(['the journal ends inside a transition'])
    expect((await again.work(9)).threadIds).toEqual([])
    await again.erase('t', {})
    await three(again, 't')
  },
)

test('completes a journal that ends inside a transition from the log', async () => {
  const path = await directory()
  const store = await open(path)
  await story(store, 't', 1)
  await store.sync()
  const journal = (at: string) => join(at, 'chats', 't', 'journal.ndjson')
  const text = await readFile(journal(path), 'utf8')
  const dead = await corpse(path)
  for (const keep of [0, 1, 6, 7])
    for (const index of ['kept', 'missing']) {
      const copy = await corpse(dead)
      const whole = text.split('\n').slice(0, keep).join('\n')
      await truncate(journal(copy), keep > 0 ? whole.length + 1 : 0)
      if (index === 'missing') await rm(join(copy, 'index'), { recursive: true })
      const again = await open(copy, { fs: unsynced })
      expect(await seqs(again, 't')).toHaveLength(last)
      await again.close()
      expect(await readFile(journal(copy), 'utf8')).toBe(text)
    }
})

test('closes the one thread whose journal is damaged before good lines', async () => {
  const path = await directory()
  const store = await open(path)
  await three(store, 't')
  await three(store, 'other')
  await store.close()
  await change(join(path, 'chats', 't', 'journal.ndjson'), (text) => text.replace('"two"', '"TWO"'))
  const again = await open(path)
  await expect(again.read('t')).rejects.toMatchObject(damaged)
  await expect(again.append('t', [entry('t')], {})).rejects.toMatchObject(damaged)
  await expect(again.read('t')).rejects.toMatchObject(damaged)
  await again.append('other', [entry('other')], {})
  expect(await listed(again)).toEqual(['other', 't'])
  await again.erase('t', {})
  await three(again, 't')
})

test('closes the thread that a damaged line of the log names, for good', async () => {
  const path = await directory()
  const store = await open(path)
  await three(store, 't')
  await three(store, 'other')
  const dead = await corpse(path)
  await change(await segmentOf(dead), (text) => text.replace('"two"', '"TWO"'))
  for (let start = 0; start < 3; start++) {
    const again = await open(dead)
    await expect(again.read('t')).rejects.toMatchObject({ code: 'thread_damaged' })
    expect((await seqs(again, 'other')).length).toBe(3 + start)
    await again.append('other', [entry('other')], {})
    await again.close()
  }
  const kept = await readFile(join(dead, 'chats', 't', 'damaged.ndjson'), 'utf8')
  expect(kept).toContain('TWO')
  expect(kept).toContain('three')
})

test('stops when a damaged line of the log names nobody', async () => {
  const path = await directory()
  const store = await open(path)
  await three(store, 't')
  await three(store, 'other')
  const dead = await corpse(path)
  await change(await segmentOf(dead), (text) => text.replace('"thread":"t"', '"thread":"u"'))
  await expect(open(dead)).rejects.toThrow(/line 2 of .*1\.ndjson/)
})

test('takes good lines behind a torn one for the same unfinished batch', async () => {
  const path = await directory()
  const store = await open(path)
  await create(store, 't')
  await Promise.all(['1', '22', '3'].map((body) => store.append('t', [entry('t', { body })], {})))
  const dead = await corpse(path)
  await change(await segmentOf(dead), (text) => text.replace('"body":22', '"body":00'))
  const again = await open(dead)
  expect(await seqs(again, 't')).toEqual([1, 2])
})

test.each(['missing', 'empty', 'damaged', 'shortened'])('makes a %s index anew', async (how) => {
  const path = await directory()
  const store = await open(path)
  for (const id of ['a', 'b', '../c', 'x'.repeat(500)]) await three(store, id)
  await store.append('a', [entry('a', { marks: { ask: askOf('q', 'a'), timers: { k: 1 } } })], {})
  await store.close()
  const file = join(path, 'index', 'threads.ndjson')
  if (how === 'missing') await rm(join(path, 'index'), { recursive: true })
  if (how === 'empty') await truncate(file, 0)
  if (how === 'damaged') await change(file, (text) => text.replace('"acme"', '"emca"'))
  if (how === 'shortened') await change(file, (text) => text.slice(0, lastLine(text)))
  const again = await open(path)
  expect(await listed(again)).toEqual(['a', 'b', '../c', 'x'.repeat(500)].sort())
  expect((await again.asks(query)).rows).toEqual([askOf('q', 'a')])
  expect((await again.work(9)).threadIds).toEqual(['a'])
  await again.append('a', [entry('a')], { expect: [{ fact: 'a', is: '1' }] })
  await again.close()
  expect(await listed(await open(path))).toHaveLength(4)
})

test('opens many chats without reading their journals', async () => {
  const path = await directory()
  const store = await open(path, { fs: unsynced })
  await Promise.all(Array.from({ length: 300 }, (_, n) => create(store, `t${n}`)))
  await store.close()
  for (let n = 0; n < 300; n++) await writeFile(join(path, 'chats', `t${n}`, 'journal.ndjson'), '')
  const again = await open(path)
  expect((await again.threads({ ...query, limit: 999 })).rows).toHaveLength(300)
})

test.each([['erased'], ['erased and made again']])(
  'the title of a thread that was %s leaves the index file, however many threads there are',
  async (how) => {
    const path = await directory()
    let store = await open(path, { syncEvery: 20 })
    const others = Array.from({ length: 5_100 }, (_, i) => `other ${i}`)
    for (let from = 0; from < others.length; from += 300)
      await Promise.all(others.slice(from, from + 300).map((id) => create(store, id)))
    await create(store, 't', { title: 'a secret title' })
    await store.close()
    const index = () => readFile(join(path, 'index/threads.ndjson'), 'utf8')
    expect(await index()).toContain('secret')
    store = await open(path, { syncEvery: 20 })
    await store.erase('t', {})
    if (how !== 'erased') await create(store, 't', { title: 'another' })
    await expect.poll(index, { timeout: 20_000 }).not.toContain('secret')
    await store.close()
    expect(await index()).not.toContain('secret')
  },
)

test('forgets an erased thread on disk too, and keeps the one that took its id', async () => {
  const path = await directory()
  const store = await open(path, { syncEvery: 300 })
  await create(store, 't', { title: 'a secret title' })
  await store.append('t', [entry('t', { body: '"secret"' })], {})
  await store.sync()
  await store.erase('t', {})
  await create(store, 't', { title: 'another' })
  const dead = await corpse(path)
  const grep = async (at: string) => {
    const names = await readdir(at, { recursive: true, withFileTypes: true })
    const files = names.filter((name) => name.isFile())
    const texts = files.map((file) => readFile(join(file.parentPath, file.name), 'utf8'))
    return (await Promise.all(texts)).join().includes('secret')
  }
  await expect.poll(() => grep(path), { timeout: 5_000 }).toBe(false)
  const again = await open(dead)
  expect(await seqs(again, 't')).toEqual([1])
  expect(await again.thread('t')).toMatchObject({ title: 'another' })
  await again.close()
  expect(await grep(dead)).toBe(false)
  expect(await seqs(await open(dead), 't')).toEqual([1])
})

test('refuses a directory of a newer format', async () => {
  const path = await directory()
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'format.json'), '{"format":2}')
  await expect(open(path)).rejects.toThrow(/format 2/)
})

test('starts after a segment that was never begun', async () => {
  const path = await directory()
  await three(await open(path), 't')
  const dead = await corpse(path)
  await change(await segmentOf(dead), (text) => text.slice(0, -3))
  await writeFile(join(dead, 'log', '2.ndjson'), '["0000')
  const again = await open(dead)
  expect(await seqs(again, 't')).toEqual([1, 2])
})

test('keeps what it has of a thread whose journal was damaged while it was in use', async () => {
  const path = await directory()
  const store = await open(path)
  await three(store, 't')
  await store.sync()
  await store.append('t', [entry('t', { body: '"four"' })], {})
  const journal = join(path, 'chats', 't', 'journal.ndjson')
  await change(journal, (text) => text.replace('"two"', '"TWO"'))
  await expect(store.read('t')).rejects.toMatchObject({ code: 'thread_damaged' })
  await store.close()
  expect(await readFile(journal, 'utf8')).toContain('"four"')
})

test('can be killed again and again while it repairs', async () => {
  const path = await directory()
  const store = await open(path)
  for (const id of ['a', 'b']) await three(store, id)
  await store.sync()
  await store.append('a', [entry('a')], {})
  await store.erase('b', {})
  await three(store, 'b')
  let dead = await corpse(path)
  for (let n = 0; n < 3; n++) {
    const again = await open(dead)
    dead = await corpse(dead) // opened, nothing moved yet
    expect(await seqs(again, 'a')).toEqual([1, 2, 3, 4])
    await again.sync()
    dead = await corpse(dead)
    expect(await seqs(again, 'b')).toEqual([1, 2, 3])
  }
  const last = await open(dead)
  expect(await listed(last)).toEqual(['a', 'b'])
  expect(await seqs(last, 'a')).toEqual([1, 2, 3, 4])
})

test('does not stumble over a chat that lost its id, or over a file among the chats', async () => {
  const path = await directory()
  const store = await open(path)
  const long = 'long'.repeat(100)
  await create(store, long)
  await three(store, 't')
  await store.append(long, [entry(long)], {})
  await store.close()
  await rm(join(path, 'index'), { recursive: true })
  await writeFile(join(path, 'chats', 'stray'), '')
  const folder = (await readdir(join(path, 'chats'))).find((name) => name.includes('~'))!
  await change(join(path, 'chats', folder, 'journal.ndjson'), (text) =>
    text.replace('acme', 'emca'),
  )
  expect(await listed(await open(path))).toEqual(['t'])
})
