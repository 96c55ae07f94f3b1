import { expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { cancel } from './cancel.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import type { Store } from './store.ts'
import type { Thread } from './thread.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent = { info() {}, warn() {}, error() {} }

/** A runtime in which something happens just before what a point stands for, once. */
function interrupted(point: string, happen: (thread: Thread, store: Store) => void) {
  const model = scriptedModel(() => [text('done')])
  const store = memoryStore({ clock: systemClock })
  let left = 1
  let threadId = ''
  const inner: Store = {
    ...store,
    append: (id, entries, guard) => {
      threadId = id
      return store.append(id, entries, guard)
    },
  }
  const threads = new Map<string, Thread>()
  const runtime = createRuntime({
    ...{ store: inner, bus: localBus(), queue: localQueue(systemClock), log: silent },
    agents: [{ agent: toolLoop({ name: 'assistant' }), model }],
    crash: (reached) => {
      if (reached === point && left-- === 1) happen(threads.get(threadId)!, store)
    },
  })
  const start: typeof runtime.start = async (...given) => {
    const started = await runtime.start(...given)
    threads.set(started.thread.threadId, started.thread)
    return started
  }
  return { runtime, start, model, served: runtime.serve() }
}

const settled = async (check: () => boolean) => {
  while (!check()) await new Promise((resolve) => setImmediate(resolve))
}

test('a run that is cancelled as its first leg begins makes no model call, and the next one runs', async () => {
  const thread = () => runtime.open(caller, 'c')
  let cancelling: Promise<unknown> | undefined
  const { runtime, start, model, served } = interrupted('before run.started', (threadNow) => {
    const actor = { type: 'user', id: 'u' } as const
    cancelling = cancel(threadNow, threadNow.state.active!, (prefix) => `${prefix}_x`, actor)
  })
  const first = await start(caller, 'c', { messages: [userText('m', 'go')] })
  const { state } = await thread()
  await settled(() => state.runs.get(first.runId)?.endedAt !== null)
  await cancelling
  expect(state.runs.get(first.runId)?.status).toBe('cancelled')
  expect(model.requests).toEqual([])
  const next = await start(caller, 'c', { messages: [userText('n', 'on')] })
  await settled(() => state.runs.get(next.runId)?.status === 'completed')
  await runtime.stop(0)
  await served
})

test('a driver whose thread was taken writes nothing more and does not try for ever (I6)', async () => {
  let taken: Promise<unknown> | undefined
  const { runtime, start, model, served } = interrupted(
    'before run.started',
    ({ threadId }, store) => {
      taken = store.claim(threadId, 'another server', 60_000, true)
    },
  )
  const { thread, runId } = await start(caller, 'c', { messages: [userText('m', 'go')] })
  await settled(() => taken !== undefined && runtime.legs === 0)
  expect(thread.state.runs.get(runId)?.status).toBe('queued')
  expect(model.requests).toEqual([])
  await runtime.stop(0)
  await served
})

test('a run that another server cancels before its start is recorded begins nothing, also in later transitions (I7)', async () => {
  const store = memoryStore({ clock: systemClock })
  const starting = gate()
  const asked = gate()
  const slow: Store = {
    ...store,
    append: async (id, entries, guard) => {
      if (entries.some(({ kind }) => kind === 'run.started')) await starting.pass()
      return await store.append(id, entries, guard)
    },
  }
  const agent: Agent = {
    name: 'assistant',
    async *run(ctx) {
      await starting.reached
      yield { type: 'event', name: 'noted', value: null }
      const answer = ctx.model({ messages: ctx.messages() })
      asked.open()
      await answer
    },
  }
  const model = scriptedModel(() => [text('done')])
  const serverOn = (store: Store) =>
    createRuntime({
      ...{ store, bus: localBus(), queue: localQueue(systemClock), log: silent },
      agents: [{ agent, model }],
    })
  const [first, second] = [serverOn(slow), serverOn(store)]
  const served = first.serve()
  const { thread, runId } = await first.start(caller, 'c', { messages: [userText('m', 'go')] })
  await asked.pass()
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  const elsewhere = await second.open(caller, 'c')
  const newId: NewId = (prefix) => `${prefix}_x`
  await cancel(elsewhere, runId, newId, { type: 'user', id: 'u' })
  starting.open()
  await settled(() => first.legs === 0)
  const kinds = (await store.read(thread.threadId, { limit: 100 })).map(({ kind }) => kind)
  expect(kinds.slice(kinds.indexOf('run.cancelled'))).toEqual(['run.cancelled'])
  expect(model.requests).toEqual([])
  await first.stop(0)
  await served
})
