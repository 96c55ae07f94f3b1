import { expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { draft } from './entries.ts'
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
