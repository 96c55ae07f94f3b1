import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { draft, type Known } from './entries.ts'
import { userText } from './messages.ts'
import { decide, Thread } from './thread.ts'

const actor = { type: 'user', id: 'u' } as const

function stage() {
  const store = memoryStore({ clock: systemClock })
  const around = { store, bus: localBus(), clock: systemClock, newId, crash() {} }
  return { store, thread: new Thread('t', around), other: new Thread('t', around) }
}

const created = draft('thread.created', { tenant: 'x', owner: 'u', clientId: 'c', agent: 'a' })
const messages = Array.from({ length: 400 }, (_, i) =>
  draft('message.added', { message: userText(`m${i}`, 'x'.repeat(20_000)), for: 'both' }),
)

test('other work runs while a long transition is written, and its entries stay together', async () => {
  const { store, thread } = stage()
  await thread.commit([created], { guard: {}, actor })
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  const seen: number[] = []
  thread.listen(() => void queueMicrotask(() => seen.push(thread.state.messages.size)))
  const long = thread.commit(messages, { guard: {}, actor })
  const short = thread.commit([draft('thread.renamed', { title: 'Name' })], { guard: {}, actor })
  await Promise.all([long, short])
  clearInterval(timer)
  expect(turns).toBeGreaterThan(0)
  expect(new Set(seen)).toEqual(new Set([0, 400]))
  const entries = await store.read('t', { after: 0, limit: 1_000 })
  const transitions = entries.map(({ tx }) => tx)
  expect(transitions.filter((tx, i) => tx !== transitions[i - 1])).toHaveLength(3)
})

test('a long transition that relied on a fact which changed meanwhile is decided again', async () => {
  const { thread, other } = stage()
  await thread.commit([created], { guard: {}, actor })
  await other.sync()
  const heads: (string | null)[] = []
  const long = decide(thread, () => {
    const { head } = thread.state
    heads.push(head)
    const guard = { expect: [{ fact: 'head', is: head }] }
    return { drafts: messages, writing: { guard, actor }, result: head }
  })
  await other.commit([draft('thread.head', { runId: 'run' })], { guard: {}, actor })
  expect(await long).toBe('run')
  expect(heads).toEqual([null, 'run'])
  expect(thread.state.messages.size).toBe(400)
})

/** A thread of 6 MB as another server wrote it, with a transition of 600 entries in the middle. */
async function longThread() {
  const { store, thread, other } = stage()
  const said = (name: string, count: number) =>
    Array.from({ length: count }, (_, i) =>
      draft('message.added', {
        message: userText(`${name}-${i}`, 'x'.repeat(5_000)),
        for: 'both',
      }),
    )
  await other.commit([created], { guard: {}, actor })
  for (let n = 0; n < 3; n++) await other.commit(said(`before ${n}`, 100), { guard: {}, actor })
  await other.commit(said('long', 600), { guard: {}, actor })
  for (let n = 0; n < 3; n++) await other.commit(said(`after ${n}`, 100), { guard: {}, actor })
  const { read } = store
  store.read = async (...query) => {
    await setImmediate() // as a store on disk
    return await read(...query)
  }
  return { store, thread, other }
}

test('a long thread is read in pages of 1 MB, and other work runs between the transitions that are folded', async () => {
  const { store, thread, other } = await longThread()
  const pages: number[] = []
  const { read } = store
  store.read = async (threadId, range) => {
    const page = await read(threadId, range)
    pages.push(page.reduce((sum, { body }) => sum + body.length, 0))
    return page
  }
  let turn = 0
  let isCounting = true
  const counting = (async () => {
    for (; isCounting; turn++) await setImmediate()
  })()
  const turns = new Set<number>()
  let tx = ''
  thread.listen((entry: Known) => {
    if (entry.tx === tx) return
    tx = entry.tx
    turns.add(turn)
    // Each transition takes longer than a step may take.
    for (const until = performance.now() + 6; performance.now() < until; );
  })
  await thread.sync()
  isCounting = false
  await counting
  expect(thread.state).toEqual(other.state)
  expect(Math.max(...pages)).toBeLessThan(1_200_000)
  expect(turns.size).toBe(8) // transitions
})

test('no other work sees a part of a transition that spans several pages', async () => {
  const { thread, other } = await longThread()
  const sizes = new Set<number>()
  let isLooking = true
  const looking = (async () => {
    for (; isLooking; await setImmediate()) sizes.add(thread.state.messages.size)
  })()
  await thread.sync()
  isLooking = false
  await looking
  expect(thread.state).toEqual(other.state)
  for (const size of sizes) expect([0, 100, 200, 300, 900, 1_000, 1_100, 1_200]).toContain(size)
})

test('a commit while a long thread is read is folded once, after all entries before it', async () => {
  const { thread, other } = await longThread()
  const seqs: number[] = []
  thread.listen(({ seq }: Known) => void seqs.push(seq))
  const reading = thread.sync()
  await setImmediate()
  const commit = thread.commit([draft('thread.renamed', { title: 'Name' })], { guard: {}, actor })
  const theirs = other.commit([draft('thread.renamed', { title: 'Theirs' })], { guard: {}, actor })
  await Promise.all([reading, commit, theirs])
  await Promise.all([thread.sync(), other.sync()])
  expect(thread.state).toEqual(other.state)
  expect(seqs).toEqual(Array.from({ length: thread.state.seq }, (_, i) => i + 1))
})
