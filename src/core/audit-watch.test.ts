import { expect, test } from 'vitest'
import { command, keys, story } from '../../test/support/chained.ts'
import { systemClock } from '../lib/clock.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { auditor } from './audit-watch.ts'
import { draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { userText } from './messages.ts'
import type { Kept } from './store.ts'

/** A store whose entries can be changed behind the server's back, and that counts what is read of them. */
function openStore() {
  const store = memoryStore({ clock: systemClock })
  const { kept } = store
  const watched = {
    pages: [] as Kept[][],
    change: (entry: Kept): Kept => entry,
    keep: (_: Kept): boolean => true,
  }
  store.kept = async (...all) => {
    const page = (await kept(...all)).map((one) => watched.change(one)).filter(watched.keep)
    watched.pages.push(page)
    return page
  }
  return { store, watched }
}

const changed =
  (seq: number) =>
  ({ entry, ...rest }: Kept): Kept => ({
    ...rest,
    entry: entry.seq === seq ? { ...entry, body: entry.body.replace('Hello', 'Bello') } : entry,
  })

test('an entry that is changed after the thread was verified is found by the next verification', async () => {
  const { store, watched } = openStore()
  const thread = await story(store, 't', 3)
  const verify = auditor(store, keys, systemClock)
  expect(await verify(thread)).toMatchObject({ verdict: 'ok', problems: [] })
  watched.change = changed(3)
  const problems = [{ seq: 3, to: 3, fault: 'body' }]
  expect(await verify(thread)).toMatchObject({ verdict: 'broken', problems })
  watched.change = (one) => one
  expect(await verify(thread)).toMatchObject({ verdict: 'ok', problems: [] })
})

test('entries that are removed from the end after the server has read them are missing in the next verdict', async () => {
  const { store, watched } = openStore()
  const thread = await story(store, 't', 3)
  const verify = auditor(store, keys, systemClock)
  const { seq } = await verify(thread)
  watched.keep = ({ entry }) => entry.seq <= seq - 3
  const problems = [{ seq: seq - 2, to: seq, fault: 'truncated' }]
  expect(await verify(thread)).toMatchObject({ verdict: 'broken', problems })
})

test('a thread whose entries cannot be read is broken', async () => {
  const { store } = openStore()
  const thread = await story(store, 't', 3)
  store.kept = async () => {
    throw new RuntimeError('thread_damaged')
  }
  const problems = [{ seq: 1, to: thread.state.seq, fault: 'unreadable' }]
  const verdict = await auditor(store, keys, systemClock)(thread)
  expect(verdict).toMatchObject({ verdict: 'broken', problems })
})

test('a verification does not share the result of one that began before it', async () => {
  const { store, watched } = openStore()
  const thread = await story(store, 't', 3)
  const verify = auditor(store, keys, systemClock)
  const early = verify(thread)
  await new Promise((resolve) => setImmediate(resolve))
  watched.change = changed(3)
  const late = verify(thread)
  await early
  expect(await late).toMatchObject({ verdict: 'broken' })
})

test('many verifications of a thread at once read its journal twice at most', async () => {
  const { store, watched } = openStore()
  const thread = await story(store, 't', 3)
  const verify = auditor(store, keys, systemClock)
  await verify(thread)
  const once = watched.pages.length
  watched.pages.length = 0
  const verdicts = await Promise.all(Array.from({ length: 100 }, () => verify(thread)))
  expect(new Set(verdicts.map(({ verdict }) => verdict))).toEqual(new Set(['ok']))
  expect(watched.pages.length).toBeLessThanOrEqual(2 * once)
})

test('a verification reads pages of a limited size, and one thread of an owner at a time', async () => {
  const { store, watched } = openStore()
  const threads = await Promise.all(['a', 'b', 'c'].map((threadId) => story(store, threadId, 1)))
  const message = userText('m', 'x'.repeat(300_000))
  for (const thread of threads)
    for (let n = 0; n < 10; n++)
      await thread.commit([draft('message.added', { message, for: 'both' })], command)
  const verify = auditor(store, keys, systemClock)
  await Promise.all(threads.map((thread) => verify(thread)))
  const sizes = watched.pages.map((page) =>
    page.reduce((sum, { entry }) => sum + entry.body.length, 0),
  )
  expect(Math.max(...sizes)).toBeLessThan(1_500_000)
  const order = watched.pages.flatMap(([first]) => first?.entry.threadId ?? [])
  expect(order.filter((threadId, i) => threadId !== order[i - 1])).toHaveLength(3)
})
