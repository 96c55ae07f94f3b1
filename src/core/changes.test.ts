import { expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { bellsOf, changes } from './changes.ts'
import { RuntimeError } from './errors.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import { gone } from './store.ts'

const log = { info() {}, warn() {}, error() {} }
const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }

/** A thread that another server writes to, and its changes on a server that keeps no thread in memory. */
async function stage() {
  const store = memoryStore({ clock: systemClock })
  const other = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log, plainIds: true },
    agents: [{ agent: { name: 'a', async *run() {} }, model: scriptedModel(() => [text('ok')]) }],
  })
  const { thread } = await other.start(caller, 'c', { messages: [userText('m', 'Hello')] })
  const bus = localBus()
  const loads: number[] = []
  const setup = {
    ...{ store, bus, clock: { ...systemClock, sleep: async () => {} }, listen: bellsOf(bus) },
    warm: async () => {
      loads.push(thread.state.seq)
      return thread
    },
    peek: () => undefined,
  }
  const leave = new AbortController()
  const reader = changes(setup, 'c', ({ title }) => title, leave.signal)
  /** The next change, or `over` after the last one. */
  const next = async () => {
    const result = await reader.next()
    return result.done ? 'over' : result.value
  }
  return { store, other, bus, loads, setup, next, leave, thread }
}

const poll = Number.MAX_SAFE_INTEGER

test('a poll reads a thread that is not in memory only if it has new entries', async () => {
  const { other, bus, loads, next } = await stage()
  expect(await next()).toBe('Hello')
  expect(loads).toHaveLength(1)
  const change = next()
  bus.ring('c', poll)
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(loads).toHaveLength(1)
  await other.rename(caller, 'c', 'New')
  bus.ring('c', poll)
  expect(await change).toBe('New')
  expect(loads).toHaveLength(2)
})

test('a change that could not be read because the store was away is read again', async () => {
  const { other, bus, setup, next } = await stage()
  expect(await next()).toBe('Hello')
  const { warm } = setup
  let failures = 2
  setup.warm = async () => {
    if (failures-- > 0) throw new RuntimeError('store_unavailable')
    return await warm()
  }
  const change = next()
  await other.rename(caller, 'c', 'New')
  bus.ring('c', 1)
  expect(await change).toBe('New')
})

test('changes end when the thread is erased here, or was erased on another server', async () => {
  const first = await stage()
  await first.next()
  const end = first.next()
  first.bus.ring('c', gone)
  expect(await end).toBe('over')

  const second = await stage()
  await second.next()
  const later = second.next()
  await second.store.erase('c', {})
  second.bus.ring('c', poll)
  expect(await later).toBe('over')
})

test('changes end with their signal and leave nothing registered', async () => {
  const { bus, next, leave } = await stage()
  await next()
  const end = next()
  expect(bus.tail('c').readers).toBe(1)
  leave.abort()
  expect(await end).toBe('over')
  expect(bus.tail('c').readers).toBe(0)
})
