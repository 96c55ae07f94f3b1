import { expect, test } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { cursorAt, follow } from './follow.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import type { Store } from './store.ts'

const log = { info() {}, warn() {}, error() {} }
const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }

/** A server that shares the store with others and never hears their bells. */
function serverOn(store: Store) {
  const agent: Agent = { name: 'assistant', async *run() {} }
  const agents = [{ agent, model: scriptedModel(() => [text('done')]) }]
  const parts = { store, bus: localBus(), queue: localQueue(systemClock), log }
  return createRuntime({ ...parts, agents, plainIds: true })
}

test('a stream of a thread that another server erased ends when a request finds the thread erased', async () => {
  const store = { ...memoryStore({ clock: systemClock }), shared: true }
  const [one, two] = [serverOn(store), serverOn(store)]
  await one.create(caller, 'c', {})
  const thread = await two.open(caller, 'c')
  const left = new AbortController()
  const steps: string[] = []
  const read = (async () => {
    for await (const { type } of follow(thread, cursorAt(0), left.signal)) steps.push(type)
  })()
  await expect.poll(() => steps.at(-1)).toBe('idle')
  await one.erase(caller, 'c')
  const { thread: anew } = await two.start(caller, 'c', { messages: [userText('m', 'Hello')] })
  expect(anew).not.toBe(thread)
  const ended = read.then(() => 'ended')
  expect(await Promise.race([ended, systemClock.sleep(2_000).then(() => 'still open')])).toBe(
    'ended',
  )
  left.abort()
})
