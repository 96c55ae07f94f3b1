import { expect, test } from 'vitest'
import { z } from 'zod'
import { gate } from '../../test/support/gate.ts'
import { warpClock } from '../../test/support/warp-clock.ts'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { call, scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import type { ThreadState } from './state.ts'
import type { Store } from './store.ts'
import { Thread } from './thread.ts'
import { defineTool } from './tool.ts'
import type { Log } from './worker.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent: Log = { info() {}, warn() {}, error() {} }

/** A store that can be taken away, a spool, and a tool that can be held in the middle. */
function world(log = silent) {
  const inner = memoryStore({ clock: systemClock })
  let away = false
  const store: Store = {
    ...inner,
    append: async (...given) => {
      if (away) throw new RuntimeError('store_unavailable')
      return await inner.append(...given)
    },
    probe: async () => {
      if (away) throw new RuntimeError('store_unavailable')
    },
  }
  const spooled = new Map<string, unknown>()
  const spool = {
    save: async (effectId: string, outcome: unknown) => void spooled.set(effectId, outcome),
    find: async (effectId: string) => spooled.get(effectId),
    remove: async (effectId: string) => void spooled.delete(effectId),
  }
  const running = gate()
  let runs = 0
  const tool = defineTool({
    name: 'pay',
    description: 'Pays',
    schema: z.strictObject({}),
    timeout: 5_000,
    async run() {
      runs++
      await running.pass()
      return 'paid'
    },
  })
  const model = scriptedModel((request) =>
    request.messages.some(({ role }) => role === 'tool')
      ? [text('thanks')]
      : [call('1', 'pay', {})],
  )
  const start = (timeout = 5_000) => {
    const runtime = createRuntime({
      ...{ store, spool, bus: localBus(), queue: localQueue(systemClock), log },
      sweepEvery: 20,
      agents: [
        {
          agent: toolLoop({ name: 'assistant' }),
          model,
          tools: [{ ...tool, timeout }],
          policy: [{ decision: 'allow' }],
        },
      ],
    })
    const served = runtime.serve()
    return { runtime, stop: () => runtime.stop(0).then(() => served) }
  }
  const setAway = (is: boolean) => {
    away = is
  }
  return { start, setAway, spooled, running, runs: () => runs }
}

const until = async (check: () => boolean) => {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 5))
}
const statusOf = ({ runs }: ThreadState, runId: string) => runs.get(runId)?.status

test('the outcome of an effect waits in the spool while the store is away, and the run goes on after', async () => {
  const { start, setAway, spooled, running, runs } = world()
  const { runtime, stop } = start()
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'pay')] })
  await running.reached
  setAway(true)
  running.open()
  await until(() => spooled.size === 1)
  const refused = runtime.start(caller, 'd', { messages: [userText('n', 'hi')] })
  await expect(refused).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
  expect(statusOf(thread.state, runId)).toBe('running')
  setAway(false)
  await until(() => statusOf(thread.state, runId) === 'completed')
  expect(spooled.size).toBe(0)
  expect(runs()).toBe(1)
  await stop()
})

test('a write whose answer is late is waited for and not made again', async () => {
  const clock = warpClock()
  const inner = memoryStore({ clock })
  const answer = gate()
  let appends = 0
  const schema = z.strictObject({})
  const look = defineTool({ name: 'look', description: 'Looks', schema, run: async () => 'sea' })
  const store: Store = {
    ...inner,
    async append(threadId, entries, guard) {
      const placed = await inner.append(threadId, entries, guard)
      if (entries.some(({ body }) => body.includes('"effect":"tool"')) && appends++ === 0)
        await answer.pass()
      return placed
    },
  }
  const runtime = createRuntime({
    ...{ store, clock, bus: localBus(), queue: localQueue(clock), log: silent },
    agents: [
      {
        agent: toolLoop({ name: 'assistant' }),
        model: scriptedModel([[call('1', 'look', {})], [text('seen')]]),
        tools: [look],
        policy: [{ decision: 'allow' }],
      },
    ],
  })
  const served = runtime.serve()
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'hi')] })
  await answer.reached
  for (let n = 0; n < 3; n++) {
    clock.advance(5_001) // core gives up waiting, and tries again
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  answer.open()
  await until(() => statusOf(thread.state, runId) === 'completed')
  const kinds = (await inner.read(thread.threadId)).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'effect.intended')).toHaveLength(3) // model, tool, model
  await runtime.stop(0).then(() => served)
})

test('what was kept is shown as evidence when the process is gone before the store is back (I4)', async () => {
  const { start, setAway, spooled, running, runs } = world()
  const first = start(50)
  const { runId } = await first.runtime.start(caller, 'c', { messages: [userText('m', 'pay')] })
  await running.reached
  setAway(true)
  running.open()
  await until(() => spooled.size === 1)
  await first.stop()
  setAway(false)
  const second = start(50)
  const { state } = await second.runtime.open(caller, 'c')
  await until(() => statusOf(state, runId) === 'waiting')
  const [record] = state.asks.values()
  expect(record?.ask).toMatchObject({ kind: 'in_doubt', evidence: { output: 'paid' } })
  expect(runs()).toBe(1)
  await second.stop()
})

test('a store that cannot be asked for the lease delays an effect, and fails nothing', async () => {
  const inner = memoryStore({ clock: systemClock })
  let slept = 0
  let refusals = 0
  const store: Store = {
    ...inner,
    append: async (...given) => {
      const stored = await inner.append(...given)
      if (given[1].some(({ kind }) => kind === 'effect.intended')) slept += 20_000
      return stored
    },
    renew: async (...given) => {
      if (slept > 0 && refusals++ < 2) throw new RuntimeError('store_unavailable')
      return await inner.renew(...given)
    },
  }
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + slept }
  const runtime = createRuntime({
    ...{ store, clock, bus: localBus(), queue: localQueue(systemClock), log: silent },
    agents: [{ agent: toolLoop({ name: 'assistant' }), model: scriptedModel([[text('hello')]]) }],
  })
  const served = runtime.serve()
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'hi')] })
  await until(() => !['queued', 'running'].includes(statusOf(thread.state, runId) ?? ''))
  expect(statusOf(thread.state, runId)).toBe('completed')
  expect(refusals).toBeGreaterThanOrEqual(2)
  await runtime.stop(0).then(() => served)
})

test('what is written and cannot be folded yet, because the store went away, is not written again', async () => {
  const inner = memoryStore({ clock: systemClock })
  let away = false
  const store: Store = {
    ...inner,
    read: async (...given) => {
      if (away) throw new RuntimeError('store_unavailable')
      return await inner.read(...given)
    },
  }
  const around = { store, bus: localBus(), clock: systemClock, newId, crash: () => {} }
  const [mine, other] = [new Thread('c', around), new Thread('c', around)]
  const writing = { guard: {}, actor: { type: 'user', id: 'u' } } as const
  const name = { tenant: 't', owner: 'u', clientId: 'c' }
  await mine.commit([draft('thread.created', { ...name, agent: 'a' })], writing)
  await other.sync()
  await other.commit([draft('thread.renamed', { title: 'theirs' })], writing)
  away = true
  const drafts = [draft('thread.renamed', { title: 'mine' })]
  await expect(mine.commit(drafts, writing)).rejects.toMatchObject({ code: 'outcome_unknown' })
  away = false
  await mine.commit(drafts, writing)
  expect(mine.state).toMatchObject({ seq: 3, title: 'mine' })
  expect(await inner.read('c')).toHaveLength(3)
})

test('a sweep that failed is made again soon: after an outage much is left to find', async () => {
  const inner = memoryStore({ clock: systemClock })
  const sweeps: number[] = []
  const store: Store = {
    ...inner,
    work: async (limit) => {
      sweeps.push(Date.now())
      if (sweeps.length <= 2) throw new RuntimeError('store_unavailable')
      return await inner.work(limit)
    },
  }
  const runtime = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log: silent },
    sweepEvery: 60_000,
    agents: [{ agent: toolLoop({ name: 'assistant' }), model: scriptedModel([[text('hello')]]) }],
  })
  const served = runtime.serve()
  await until(() => sweeps.length === 3)
  await runtime.stop(0).then(() => served)
})

test('a server that stops while the store is away leaves its leg to others, and that is no error', async () => {
  const errors: string[] = []
  const error = (_: object, message: string) => void errors.push(message)
  const { start, setAway, spooled, running } = world({ ...silent, error })
  const { runtime, stop } = start()
  await runtime.start(caller, 'c', { messages: [userText('m', 'pay')] })
  await running.reached
  setAway(true)
  running.open()
  await until(() => spooled.size === 1)
  await stop()
  expect(errors).toEqual([])
})

test('is ready only while the store takes writes', async () => {
  const { start, setAway } = world()
  const { runtime, stop } = start()
  expect(await runtime.problem()).toBeUndefined()
  setAway(true)
  await expect.poll(() => runtime.problem()).toBe('Storage takes no writes.')
  setAway(false)
  await expect.poll(() => runtime.problem()).toBeUndefined()
  await stop()
})

test('a write that is durable but cannot be folded is an unknown outcome and no refusal', async () => {
  const inner = memoryStore({ clock: systemClock })
  let armed = false
  const store: Store = {
    ...inner,
    async append(threadId, entries, guard) {
      if (!armed) return await inner.append(threadId, entries, guard)
      // Another server writes in between, and what it wrote cannot be read.
      const between = { id: 'e', kind: 'thread.renamed' as const, body: '{"title":"T"}' }
      await inner.append(threadId, [{ ...entries[0]!, ...between, marks: {} }], {})
      return await inner.append(threadId, entries, guard)
    },
    async read(threadId, range) {
      if (armed) throw new RuntimeError('store_unavailable')
      return await inner.read(threadId, range)
    },
  }
  const runtime = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log: silent },
    agents: [{ agent: toolLoop({ name: 'assistant' }), model: scriptedModel([]) }],
  })
  const { thread } = await runtime.create(caller, 'c', {})
  armed = true
  const started = runtime.start(caller, 'c', { messages: [userText('m', 'hi')] })
  const error = await started.catch((thrown: RuntimeError) => thrown)
  armed = false
  const queued = (await inner.read(thread.threadId)).find(({ kind }) => kind === 'run.queued')
  expect(error).toMatchObject({
    code: 'outcome_unknown',
    data: { thread_id: 'c', run_id: queued!.runId },
  })
  await runtime.stop(0)
})

test('a late write that cannot be read back is not made again', async () => {
  const clock = warpClock()
  const inner = memoryStore({ clock })
  const answer = gate()
  let reads = true
  const store: Store = {
    ...inner,
    async append(threadId, entries, guard) {
      const placed = await inner.append(threadId, entries, guard)
      if (entries.some(({ kind }) => kind === 'thread.renamed')) await answer.pass()
      return placed
    },
    async read(threadId, range) {
      if (!reads) throw new RuntimeError('store_unavailable')
      return await inner.read(threadId, range)
    },
  }
  const around = { store, bus: localBus(), clock, newId, crash: () => {} }
  const thread = new Thread('t', around)
  const name = { tenant: 't', owner: 'u', clientId: 'c' }
  const actor = { type: 'user', id: 'u' } as const
  await thread.commit([draft('thread.created', { ...name, agent: 'a' })], { guard: {}, actor })
  const drafts = [draft('thread.renamed', { title: 'T' })]
  const first = thread.commit(drafts, { guard: {}, actor })
  await answer.reached
  clock.advance(5_001)
  await expect(first).rejects.toMatchObject({ code: 'outcome_unknown' })
  reads = false
  answer.open()
  await thread.settled()
  reads = true
  await thread.commit(drafts, { guard: {}, actor })
  const kinds = (await inner.read('t')).map(({ kind }) => kind)
  expect(kinds).toEqual(['thread.created', 'thread.renamed'])
})
