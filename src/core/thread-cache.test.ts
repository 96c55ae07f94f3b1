import { expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'

const log = { info() {}, warn() {}, error() {} }
const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }

function stage(more: { plainIds?: boolean } = {}) {
  const store = memoryStore({ clock: systemClock })
  const agent: Agent = { name: 'assistant', async *run() {} }
  const agents = [{ agent, model: scriptedModel(() => [text('done')]) }]
  const parts = { store, bus: localBus(), queue: localQueue(systemClock), log }
  return { store, runtime: createRuntime({ ...parts, agents, ...more }) }
}

test.each([{ plainIds: true }, { plainIds: false }])(
  'a reader that opens a new thread before its first write returns gets the same Thread: %o',
  async (ids) => {
    const { store, runtime } = stage(ids)
    const { append } = store
    const committed = gate()
    store.append = async (...all) => {
      const entries = await append(...all)
      await committed.pass()
      return entries
    }
    const started = runtime.start(caller, 'c', { messages: [userText('m', 'Hello')] })
    await committed.reached
    const reader = await runtime.open(caller, 'c')
    expect([...reader.state.messages.keys()]).toEqual(['m'])

    committed.open()
    const { thread, runId } = await started
    expect(reader).toBe(thread)
    expect(reader.state.runs.get(runId)?.messageIds).toEqual(['m'])
    expect(await runtime.open(caller, 'c')).toBe(thread)
  },
)

test('a thread that could not be read completely is read again from its start', async () => {
  const { store, runtime } = stage({ plainIds: true })
  await runtime.start(caller, 'c', { messages: [userText('m', 'Hello')] })
  const later = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log, plainIds: true },
    agents: [{ agent: { name: 'assistant', async *run() {} }, model: scriptedModel(() => []) }],
  })
  const { read } = store
  store.read = async () => {
    throw new Error('away')
  }
  await expect(later.open(caller, 'c')).rejects.toThrow('away')
  store.read = read
  expect((await later.open(caller, 'c')).state.messages.size).toBe(1)
})

test('a client id that equals the key of another owner behaves like an unused id', async () => {
  const { store, runtime } = stage()
  const bob = { ...caller, user: 'bob' }
  const { thread: started } = await runtime.start(bob, 'c', { messages: [userText('m', 'Mine')] })
  const { thread: created } = await runtime.create(bob, 'd', {})
  const keyless = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log, plainIds: true },
    agents: [{ agent: { name: 'assistant', async *run() {} }, model: scriptedModel(() => []) }],
  })
  const threadIds = [started.threadId, created.threadId]
  const before = await Promise.all(threadIds.map((threadId) => store.read(threadId)))
  for (const clientId of threadIds) {
    const { thread, fresh } =
      clientId === started.threadId
        ? await keyless.start(caller, clientId, { messages: [userText('m2', 'Hello')] })
        : await keyless.create(caller, clientId, {})
    expect(fresh).toBe(true)
    expect(thread.threadId).not.toBe(clientId)
    expect(thread.state).toMatchObject({ owner: 'u', clientId })
    expect(await keyless.open(caller, clientId)).toBe(thread)
  }
  expect(await Promise.all(threadIds.map((threadId) => store.read(threadId)))).toEqual(before)
})
