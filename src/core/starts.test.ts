import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { gate } from '../../test/support/gate.ts'
import { warpClock } from '../../test/support/warp-clock.ts'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { call, scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { RuntimeError } from './errors.ts'
import { LegStop } from './leg.ts'
import { userText } from './messages.ts'
import type { Looked } from './remote.ts'
import { createRuntime, type RuntimeOptions } from './runtime.ts'
import type { ThreadState } from './state.ts'
import type { Store } from './store.ts'
import type { Tool } from './tool.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent = { info() {}, warn() {}, error() {} }
const patience = { timeout: 10_000, interval: 5 }
const model = () => scriptedModel(() => [text('done')])

function server(options: Partial<RuntimeOptions> & { agents: RuntimeOptions['agents'] }) {
  const { clock = systemClock } = options
  const store = options.store ?? memoryStore({ clock })
  const runtime = createRuntime({
    ...{ clock, store, bus: localBus(), queue: localQueue(clock), log: silent },
    ...options,
  })
  const served = runtime.serve()
  return { runtime, store, stop: () => runtime.stop(0).then(() => served) }
}

const statusIs = (state: ThreadState, runId: string, status: string) =>
  vi.waitFor(() => expect(state.runs.get(runId)?.status).toBe(status), patience)

/** A store on which one kind of request takes 20 s by the monotonic clock, once. */
function slowStore(slow: 'claim' | 'read after claim') {
  const inner = memoryStore({ clock: systemClock })
  let slept = 0
  let claims = 0
  let renewals = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + slept }
  const store: Store = {
    ...inner,
    claim: async (...given) => {
      const claimed = await inner.claim(...given)
      if (++claims === 1 && slow === 'claim') slept += 20_000
      return claimed
    },
    read: async (...given) => {
      const entries = await inner.read(...given)
      if (claims === 1 && slow === 'read after claim') slept = 20_000
      return entries
    },
    renew: async (...given) => {
      renewals++
      return await inner.renew(...given)
    },
  }
  return { clock, store, renewals: () => renewals }
}

test.each(['claim', 'read after claim'] as const)(
  'an agent starts only inside the margin of a lease, measured from before the claim was sent (slow %s)',
  async (slow) => {
    const { clock, store, renewals } = slowStore(slow)
    const renewed: number[] = []
    const agent: Agent = {
      name: 'agent',
      async *run() {
        renewed.push(renewals())
        yield { type: 'event', name: 'ran', value: null }
      },
    }
    const { runtime, stop } = server({
      ...{ clock, store, queue: localQueue(systemClock), leaseTtl: 30_000 },
      agents: [{ agent, model: model() }],
    })
    const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
    await statusIs(thread.state, runId, 'completed')
    expect(renewed).toEqual([1])
    await stop()
  },
)

/** Runs an agent on a server that freezes, and again on a second one that takes the thread over. */
async function takenOver(agents: RuntimeOptions['agents'], inside: Promise<void>, back = 0) {
  const clock = warpClock()
  const store = memoryStore({ clock })
  const shared = { agents, leaseTtl: 3_000, sweepEvery: 20 }
  const frozen: Store = { ...store, renew: () => new Promise(() => {}) }
  const first = server({ ...shared, clock, store: frozen })
  const { runId } = await first.runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  await inside
  clock.advance(3_001)
  const later = { ...clock, now: () => clock.now() - back }
  const second = server({ ...shared, clock: later, store })
  const { state } = await second.runtime.open(caller, 'c')
  await vi.waitFor(async () => {
    await second.runtime.open(caller, 'c')
    expect(state.runs.get(runId)?.leg).toBeGreaterThan(1)
  }, patience)
  const stop = async () => {
    await first.stop()
    await second.stop()
  }
  return { clock, runtime: second.runtime, state, runId, stop }
}

/** An agent with one leg at a remote, which hangs when it is first started. */
function remoteAgent(look: () => Looked, rejoined: () => void = () => {}) {
  const inside = gate()
  const started: string[] = []
  const agent: Agent = {
    name: 'agent',
    async *run(ctx) {
      const line = ctx.remote('far')
      if (line.last()) return
      yield* line.leg({
        ...{ title: 'far works', input: null, timeout: 600_000 },
        look: async () => look(),
        async *work({ rejoin, signal }) {
          started.push(rejoin ? 'rejoin' : 'run')
          if (started.length === 1) await inside.pass(signal)
          if (rejoin) rejoined()
          yield { type: 'event', name: 'worked', value: null }
          return '{}'
        },
      })
    },
  }
  return { agents: [{ agent, model: model() }], inside: inside.reached, started }
}

test('remote work that is absent after a crash is not started again before the earlier request has had its time', async () => {
  let looks = 0
  const { agents, inside, started } = remoteAgent(() => {
    looks++
    return 'absent'
  })
  const { clock, state, runId, stop } = await takenOver(agents, inside)
  await vi.waitFor(() => expect(looks).toBeGreaterThan(0), patience)
  clock.advance(20_000)
  await vi.waitFor(() => expect(looks).toBeGreaterThan(1), patience)
  expect(started).toEqual(['run'])
  clock.advance(10_000)
  await statusIs(state, runId, 'completed')
  expect(started).toEqual(['run', 'run'])
  await stop()
})

test('remote work that appears a while after a crash is rejoined and not started again', async () => {
  let looks = 0
  const { agents, inside, started } = remoteAgent(() => (++looks > 1 ? 'there' : 'absent'))
  const { clock, state, runId, stop } = await takenOver(agents, inside)
  await vi.waitFor(() => expect(looks).toBeGreaterThan(0), patience)
  clock.advance(1_001)
  await statusIs(state, runId, 'completed')
  expect(started).toEqual(['run', 'rejoin'])
  await stop()
})

const away = () => {
  throw new RuntimeError('remote_unavailable')
}

test('remote work that a failing lookup hides after a crash is rejoined when the lookup succeeds (I4)', async () => {
  let looks = 0
  const { agents, inside, started } = remoteAgent(() => (++looks > 2 ? 'there' : away()))
  const { clock, state, runId, stop } = await takenOver(agents, inside)
  for (const look of [1, 2]) {
    await vi.waitFor(() => expect(looks).toBe(look), patience)
    await new Promise((resolve) => setTimeout(resolve, 20))
    clock.advance(look * 1_000 + 1)
  }
  await statusIs(state, runId, 'completed')
  expect(started).toEqual(['run', 'rejoin'])
  await stop()
})

test('a lookup that fails is not taken for the absence of remote work: a person is asked (I4)', async () => {
  let looks = 0
  const { agents, inside, started } = remoteAgent(() => {
    looks++
    return away()
  })
  const { clock, state, runId, stop } = await takenOver(agents, inside)
  await vi.waitFor(() => expect(looks).toBe(1), patience)
  await new Promise((resolve) => setTimeout(resolve, 20))
  clock.advance(60_000) // longer than a request may take to become known
  await vi.waitFor(() => expect(looks).toBe(2), patience)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(state.asks.size).toBe(0)
  clock.advance(540_000) // the work cannot be going on any more
  await statusIs(state, runId, 'waiting')
  expect([...state.asks.values()].map(({ ask }) => ask)).toMatchObject([
    { kind: 'in_doubt', evidence: expect.stringContaining('remote_unavailable') },
  ])
  expect(started).toEqual(['run'])
  await stop()
})

test('a last lookup that fails after lookups that found nothing does not start remote work again (I4)', async () => {
  let looks = 0
  const { agents, inside, started } = remoteAgent(() => (++looks === 1 ? 'absent' : away()))
  const { clock, state, runId, stop } = await takenOver(agents, inside)
  await vi.waitFor(() => expect(looks).toBe(1), patience)
  await new Promise((resolve) => setTimeout(resolve, 20))
  clock.advance(30_000)
  await vi.waitFor(() => expect(looks).toBe(2), patience)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(started).toEqual(['run'])
  clock.advance(600_000)
  await statusIs(state, runId, 'waiting')
  expect(started).toEqual(['run'])
  await stop()
})

test('the decision of a person about remote work counts more than a later lookup that finds nothing', async () => {
  let found: () => Looked = away
  const { agents, inside, started } = remoteAgent(() => found())
  const { clock, runtime, state, runId, stop } = await takenOver(agents, inside)
  await new Promise((resolve) => setTimeout(resolve, 50))
  clock.advance(600_001)
  await statusIs(state, runId, 'waiting')
  found = () => 'absent'
  const [askId] = [...state.asks.keys()] as [string]
  const decision = { outcome: 'happened' as const, value: 'It was done.' }
  await runtime.answer(caller, 'c', {
    decisions: [{ askId, decision, named: { input: 'i', value: 'v' } }],
  })
  await statusIs(state, runId, 'completed')
  expect(started).toEqual(['run'])
  await stop()
})

test('a rejoined remote leg never fails with a code that means that it did not start (I4)', async () => {
  const { agents, inside, started } = remoteAgent(() => 'there', away)
  const { state, runId, stop } = await takenOver(agents, inside)
  await statusIs(state, runId, 'failed')
  expect([...state.effects.values()]).toMatchObject([
    { state: 'failed', error: { code: 'remote_cut', retryable: false } },
  ])
  expect(started).toEqual(['run', 'rejoin'])
  await stop()
})

test('a rejoined remote leg whose server hands the thread over is rejoined again and not started (I4)', async () => {
  let handovers = 0
  const handOver = () => {
    if (++handovers === 1) throw new LegStop('handover')
  }
  const { agents, inside, started } = remoteAgent(() => 'there', handOver)
  const { state, runId, stop } = await takenOver(agents, inside)
  await statusIs(state, runId, 'completed')
  expect(started).toEqual(['run', 'rejoin', 'rejoin'])
  await stop()
})

test('a clock that was set back by a day does not delay the question about a call in doubt', async () => {
  const inside = gate()
  const pay: Tool = {
    ...{ name: 'pay', description: 'Pays', schema: z.strictObject({}), timeout: 10_000 },
    run: async () => {
      await inside.pass()
    },
  }
  const agents: RuntimeOptions['agents'] = [
    {
      ...{ agent: toolLoop({ name: 'assistant' }), tools: [pay], policy: [{ decision: 'allow' }] },
      model: scriptedModel(() => [call('1', 'pay', {})]),
    },
  ]
  const { clock, state, runId, stop } = await takenOver(agents, inside.reached, 86_400_000)
  await new Promise((resolve) => setTimeout(resolve, 50))
  clock.advance(10_001)
  await statusIs(state, runId, 'waiting')
  expect([...state.asks.values()].map(({ ask }) => ask.kind)).toEqual(['in_doubt'])
  await stop()
})

/** An agent that asks a question while another branch of it never ends and does not listen. */
const branching = (): RuntimeOptions['agents'] => {
  const deaf: Agent = {
    name: 'deaf',
    async *run() {
      yield { type: 'event', name: 'began', value: null }
      await new Promise(() => {})
    },
  }
  const agent: Agent = {
    name: 'agent',
    async *run(ctx) {
      if (ctx.messages().some(({ id }) => id === 'second')) return
      const branch = ctx.delegate({ path: 'deaf', agent: 'deaf', input: '' })
      branch.catch(() => {})
      await ctx.ask({ key: 'q', kind: 'input', title: 'Which?', timeout: 86_400_000 })
      yield { type: 'event', name: 'answered', value: null }
    },
  }
  return [
    { agent, model: model() },
    { agent: deaf, model: model() },
  ]
}

test('a branch that never ends does not keep its driver after a cancel', async () => {
  const clock = warpClock()
  const { runtime, stop } = server({ clock, agents: branching(), sweepEvery: 20 })
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  const { state } = thread
  await vi.waitFor(() => expect(state.asks.size).toBe(1), patience)
  await runtime.cancel(caller, 'c', runId)
  await new Promise((resolve) => setTimeout(resolve, 50))
  clock.advance(5_001)
  await statusIs(state, runId, 'cancelled')
  await vi.waitFor(() => expect(runtime.legs).toBe(0), patience)
  const next = await runtime.start(caller, 'c', { messages: [userText('second', 'go')] })
  await statusIs(state, next.runId, 'completed')
  await stop()
})

test('a branch that never ends keeps its driver for a limited time', async () => {
  const clock = warpClock()
  const { runtime, stop } = server({ clock, agents: branching(), sweepEvery: 20 })
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  await vi.waitFor(() => expect(thread.state.asks.size).toBe(1), patience)
  await new Promise((resolve) => setTimeout(resolve, 50))
  clock.advance(15 * 60_000 + 1)
  await new Promise((resolve) => setTimeout(resolve, 50))
  clock.advance(4_001)
  await statusIs(thread.state, runId, 'waiting')
  await vi.waitFor(() => expect(runtime.legs).toBe(0), patience)
  await stop()
})
