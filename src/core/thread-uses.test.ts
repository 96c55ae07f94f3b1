import { expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { userText } from './messages.ts'
import { type Caller, createRuntime } from './runtime.ts'
import type { Thread } from './thread.ts'
import { ThreadUses } from './thread-uses.ts'

const thread = (bytes: number) => ({ bytes }) as Thread
const loaded = (one: Thread) => async () => one

/** Opens a thread of this size in a request of its own. */
async function open(uses: ThreadUses, owner: string, one: Thread, known?: Thread) {
  const request = uses.request(owner)
  await request.open(known, loaded(one))
  return request
}

test('an owner whose open requests use too much memory gets no other thread until one of them ends', async () => {
  const uses = new ThreadUses(100)
  const big = thread(60)
  const first = await open(uses, 'ann', big)
  await open(uses, 'ann', thread(60))
  await expect(open(uses, 'ann', thread(1))).rejects.toMatchObject({ code: 'overloaded' })
  expect(() => uses.request('ann').admit()).toThrow('Close some of them')
  await open(uses, 'bob', thread(60))

  const again = await open(uses, 'ann', big, big) // it is in memory anyway
  expect(uses.bytes).toBe(180)
  first.end()
  await expect(open(uses, 'ann', thread(1))).rejects.toMatchObject({ code: 'overloaded' })
  again.end()
  again.end()
  expect(uses.bytes).toBe(120)
  await open(uses, 'ann', thread(1))
})

test('many owners together cannot use more than a multiple of the limit, and a new owner is served', async () => {
  const uses = new ThreadUses(100)
  await open(uses, 'most', thread(99))
  const owners = Array.from({ length: 10 }, (_, n) => `owner-${n}`)
  for (let round = 0; round < 20; round++)
    for (const owner of owners) await open(uses, owner, thread(5)).catch(() => {})
  expect(uses.bytes).toBeLessThan(350)
  await open(uses, 'late', thread(5))
})

test('an owner who opens thousands of threads at once gets 503 for those that would wait too long', async () => {
  const uses = new ThreadUses(1_000_000)
  const opened = Array.from({ length: 1_100 }, () => open(uses, 'ann', thread(1)))
  const results = await Promise.allSettled(opened)
  const refused = results.filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(1_100 - 1_000 - 2)
})

test('beyond the limit of all owners, only owners with more than an equal part are refused', async () => {
  const uses = new ThreadUses(100)
  await open(uses, 'ann', thread(80))
  await open(uses, 'bob', thread(70))
  await expect(open(uses, 'ann', thread(1))).rejects.toMatchObject({ code: 'overloaded' })
  await open(uses, 'bob', thread(1))
  await open(uses, 'cat', thread(1))
})

test('a request that uses a thread several times counts once, and after its end it is neither counted nor refused', async () => {
  const uses = new ThreadUses(100)
  const one = thread(60)
  const request = await open(uses, 'ann', one)
  await request.open(one, loaded(one))
  request.add(one)
  expect(uses.bytes).toBe(60)
  request.end()
  expect(uses.bytes).toBe(0)

  await open(uses, 'ann', thread(200))
  await request.open(undefined, loaded(thread(1)))
  request.admit()
  expect(uses.bytes).toBe(200)
})

test('threads that grow while they are used count with their present size', async () => {
  const uses = new ThreadUses(100)
  const growing = thread(1)
  const request = await open(uses, 'ann', growing)
  growing.bytes = 200
  const other = uses.request('ann')
  expect(() => Array.from({ length: 32 }, () => other.admit())).toThrow('too much memory')
  request.end()
  expect(uses.bytes).toBe(0)
})

test('of many threads that one owner opens at once, only a few are read before their sizes count', async () => {
  const uses = new ThreadUses(100)
  let loads = 0
  const opened = Array.from({ length: 20 }, () =>
    uses.request('ann').open(undefined, async () => {
      loads++
      await new Promise((resolve) => setImmediate(resolve))
      return thread(60)
    }),
  )
  const results = await Promise.allSettled(opened)
  const refused = results.filter(({ status }) => status === 'rejected')
  expect(loads).toBeLessThanOrEqual(3)
  expect(refused).toHaveLength(20 - loads)
})

test('a run that an owner may not start for its use of memory is refused before anything is written', async () => {
  const store = memoryStore({ clock: systemClock })
  const agents = [
    { agent: { name: 'a', async *run() {} }, model: scriptedModel(() => [text('ok')]) },
  ]
  const log = { info() {}, warn() {}, error() {} }
  const parts = { store, bus: localBus(), queue: localQueue(systemClock), log, agents }
  const runtime = createRuntime({ ...parts, usedBytes: 1_000 })
  const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
  const stream = { ...caller, uses: runtime.uses('u') }
  const start = (by: Caller, id: string) =>
    runtime.start(by, id, { messages: [userText(`m-${id}`, 'Hello')] })
  await start(stream, 'first')
  const second = { ...caller, uses: runtime.uses('u') }
  await expect(start(second, 'second')).rejects.toMatchObject({ code: 'overloaded', status: 503 })
  expect(await store.locate({ tenant: 't', owner: 'u', clientId: 'second' })).toBeUndefined()
  await start({ ...caller, uses: runtime.uses('u') }, 'first')
  stream.uses.end()
  await expect(start(second, 'second')).rejects.toThrow() // the other request for `first` is open
})
