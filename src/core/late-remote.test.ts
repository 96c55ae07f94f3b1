import { expect, test, vi } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { warpClock } from '../../test/support/warp-clock.ts'
import {
  type LegEnd,
  type LegRequest,
  type Protocol,
  remoteAgent,
} from '../agents/remote/remote-agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { scriptedModel } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent, AgentEvent } from './agent.ts'
import type { Decision } from './asks.ts'
import { RuntimeError } from './errors.ts'
import type { Guard } from './guard.ts'
import { LegStop } from './leg.ts'
import { type Message, textOf, userText } from './messages.ts'
import { createRuntime, type RuntimeOptions } from './runtime.ts'
import type { ThreadState } from './state.ts'
import type { Store } from './store.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent = { info() {}, warn() {}, error() {} }
const patience = { timeout: 10_000, interval: 5 }
const turn = () => new Promise((resolve) => setImmediate(resolve))
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const message = (id: string, text: string): AgentEvent => {
  const said: Message = { id, role: 'assistant', parts: [{ type: 'text', text }] }
  return { type: 'message', message: { ...said, meta: { remote: { agent: 'far', id } } } }
}
const end = (place: Record<string, unknown> = {}): LegEnd => ({ interrupts: [], place })

/** Yields the events, one after another, and ends the leg. */
async function* all(events: readonly AgentEvent[], ended = end({ threadId: 'there' })) {
  yield* events
  return ended
}

type Work = (request: LegRequest) => AsyncGenerator<AgentEvent, LegEnd, undefined>

interface World extends Pick<Protocol, 'look'> {
  idempotent?: boolean
  /** The run's own agent, if that is not the remote one. */
  chief?: Agent
  /** The remote agent as both servers run it. */
  wrap?: (agent: Agent) => Agent
  /** The store as the first server sees it. */
  storeOf?: (store: Store) => Store
  guard?: Guard
  /** Work of the first request, before and after the first server lost the thread; and of later requests. */
  before?: Work
  work: Work
  later?: Work
}

/**
 * Two parallel servers on one store. The first one starts a remote leg, and its lease lapses while the remote
 * works.
 */
async function lost({
  work,
  before,
  later = work,
  idempotent = false,
  guard,
  look,
  chief,
  wrap = (agent) => agent,
  storeOf = (store) => store,
}: World) {
  const clock = warpClock()
  const store = memoryStore({ clock })
  const running = gate()
  const requests: LegRequest[] = []
  const protocol: Protocol = {
    timeout: 60_000,
    async *work(request) {
      requests.push(request)
      if (requests.length > 1) return yield* later(request)
      if (before) yield* before(request)
      await running.pass()
      return yield* work(request)
    },
    ...(look && { look }),
  }
  const agent = wrap(remoteAgent({ name: 'far', idempotent }, protocol))
  const model = scriptedModel(() => [])
  const agents = [...(chief ? [chief] : []), agent].map((one) => ({ agent: one, model }))
  const spooled = new Map<string, unknown>()
  const spool = {
    save: async (effectId: string, outcome: unknown) => void spooled.set(effectId, outcome),
    find: async (effectId: string) => spooled.get(effectId),
    remove: async (effectId: string) => void spooled.delete(effectId),
  }
  const server = (over: Partial<RuntimeOptions> = {}) => {
    const runtime = createRuntime({
      ...{ store, clock, bus: localBus(), queue: localQueue(clock), log: silent },
      ...{ leaseTtl: 3_000, sweepEvery: 20, agents, spool },
      ...(guard && { guard }),
      ...over,
    })
    const served = runtime.serve()
    return { runtime, stop: () => runtime.stop(0).then(() => served) }
  }
  const frozen: Store = { ...storeOf(store), renew: () => new Promise(() => {}) }
  const first = server({ store: frozen })
  const { runId, thread } = await first.runtime.start(caller, 'c', {
    messages: [userText('m', 'go')],
  })
  await running.reached
  await turn()
  clock.advance(3_001) // the lease of the first server lapses
  /** Starts the second server and waits until its state meets the condition. */
  const takeOver = async (ready: (state: ThreadState) => void) => {
    const { runtime, stop } = server()
    const taken = await runtime.open(caller, 'c')
    const { state } = taken
    const until = (check: (state: ThreadState) => void) =>
      vi.waitFor(async () => {
        await taken.sync()
        check(state)
      }, patience)
    await until(ready)
    return { runtime, state, until, stop: () => Promise.all([first.stop(), stop()]) }
  }
  return {
    clock,
    store,
    running,
    requests,
    first,
    runId,
    threadId: thread.threadId,
    takeOver,
    spooled,
  }
}

const effectOf = (state: ThreadState) => [...state.effects.values()][0]
const askOf = (state: ThreadState) => [...state.asks.values()][0]
const texts = (state: ThreadState) =>
  [...state.messages.values()]
    .filter(({ message: { role } }) => role === 'assistant')
    .map(({ message }) => textOf(message))
const inDoubt = (state: ThreadState) => expect(effectOf(state)?.state).toBe('unknown')
const statusIs = (runId: string, status: string) => (state: ThreadState) =>
  expect(state.runs.get(runId)?.status).toBe(status)

/** Takes the thread over, and lets the time of the remote leg pass until a person is asked. */
async function asked(given: World) {
  const world = await lost(given)
  const second = await world.takeOver(inDoubt)
  await turn()
  world.clock.advance(60_001)
  await second.until(statusIs(world.runId, 'waiting'))
  expect(askOf(second.state)?.ask.kind).toBe('in_doubt')
  const decide = async (decision: Decision) => {
    const named = { input: 'input', value: 'value' }
    const [askId = ''] = second.state.asks.keys()
    await second.runtime.answer(caller, 'c', { decisions: [{ askId, decision, named }] })
  }
  return { ...world, ...second, decide }
}

const entriesOf = async (store: Store, threadId: string, kind: string) =>
  (await store.read(threadId)).filter((entry) => entry.kind === kind)

test('the answer of a remote agent that a fenced-off driver has read settles the open question', async () => {
  const work: Work = () => all([message('m1', 'The report is sent.')])
  const { running, runId, state, until, stop, requests, runtime, store, threadId } = await asked({
    work,
    later: () => all([message('m2', 'Again.')]),
  })
  running.open()
  await until(statusIs(runId, 'completed'))
  expect(askOf(state)?.answer).toMatchObject({ state: 'answered', outcome: 'happened' })
  expect(askOf(state)?.answeredBy).toEqual({ type: 'system', id: 'late_result' })
  expect(effectOf(state)?.state).toBe('done')
  expect(texts(state)).toEqual(['The report is sent.'])
  expect(await entriesOf(store, threadId, 'effect.done')).toHaveLength(1)
  expect(requests).toHaveLength(1)
  // The next run continues where the remote was left.
  const next = await runtime.start(caller, 'c', { messages: [userText('n', 'more')] })
  await until(statusIs(next.runId, 'completed'))
  expect(requests[1]?.place).toEqual({ threadId: 'there' })
  expect(texts(state)).toEqual(['The report is sent.', 'Again.'])
  await stop()
})

test('the state that the remote agent set reaches the thread with its late answer', async () => {
  const state: AgentEvent = { type: 'state', value: { step: 2 } }
  const work: Work = () => all([state, message('m1', 'Done.')])
  const world = await asked({ work })
  world.running.open()
  await world.until(statusIs(world.runId, 'completed'))
  expect(world.state.states.get('far')).toEqual({ step: 2 })
  expect(texts(world.state)).toEqual(['Done.'])
  await world.stop()
})

test('a late answer of a remote agent is read to its end after the first write was rejected', async () => {
  const work: Work = async function* () {
    yield { type: 'state', value: { step: 1 } }
    await pause(50) // the write is rejected, and the leg is told that it has lost the thread
    yield message('m1', 'First.')
    await pause(50)
    yield message('m2', 'Second.')
    return end()
  }
  const { running, runId, state, until, stop } = await asked({ work })
  running.open()
  await until(statusIs(runId, 'completed'))
  expect(texts(state)).toEqual(['First.', 'Second.'])
  await stop()
})

test('a late answer of a remote agent that was not asked about yet is recorded without a question', async () => {
  const world = await lost({ work: () => all([message('m1', 'Done.')]) })
  const { state, until, stop } = await world.takeOver(inDoubt)
  world.running.open()
  await until(statusIs(world.runId, 'completed')) // although the time of the leg has not passed
  expect(texts(state)).toEqual(['Done.'])
  expect(state.asks.size).toBe(0)
  await stop()
})

test('a late answer without a new message, recorded while the next leg prepares its request, is not requested again (I4)', async () => {
  const preparing = gate()
  let legs = 0
  const world = await lost({
    before: async function* () {
      yield message('m1', 'Done.')
      return end()
    },
    work: () => all([]),
    later: () => all([message('m2', 'Again.')]),
    wrap: (agent) => ({
      ...agent,
      run: (ctx) => {
        const isSecond = ++legs === 2
        const whole: typeof ctx.whole = async (messages) => {
          if (isSecond) await preparing.pass()
          return await ctx.whole(messages)
        }
        return agent.run({ ...ctx, whole })
      },
    }),
  })
  const { state, until, stop } = await world.takeOver(inDoubt)
  await preparing.reached
  world.running.open()
  await until(() => expect(effectOf(state)?.state).toBe('done'))
  preparing.open()
  await until(statusIs(world.runId, 'completed'))
  expect(world.requests).toHaveLength(1)
  expect(texts(state)).toEqual(['Done.'])
  await stop()
})

test('a late answer of a remote agent waits until another driver has marked the effect as unknown', async () => {
  const world = await lost({ work: () => all([message('m1', 'Done.')]) })
  const claimed = await world.store.claim(world.threadId, 'third', 600_000)
  world.running.open()
  await pause(300) // meanwhile, the offer finds the effect still `intended`
  const before = await entriesOf(world.store, world.threadId, 'effect.done')
  expect(before).toEqual([])
  await world.store.release(world.threadId, claimed!.fence)
  const { state, until, stop } = await world.takeOver(() => {})
  await until(statusIs(world.runId, 'completed'))
  expect(texts(state)).toEqual(['Done.'])
  expect(world.requests).toHaveLength(1)
  expect(state.asks.size).toBe(0)
  await stop()
})

test.each<[string, Decision, string, string[]]>([
  ['happened', { outcome: 'happened', value: 'I saw it.' }, 'completed', ['I saw it.']],
  ['did not happen', { outcome: 'did_not' }, 'completed', ['Again.']],
  ['is skipped', { outcome: 'skip' }, 'failed', []],
])(
  'a late answer of a remote agent changes nothing after a person said that it %s',
  async (_, decision, status, said) => {
    const { running, runId, state, until, stop, decide, store, threadId } = await asked({
      work: () => all([message('m1', 'Late.')]),
      later: () => all([message('m2', 'Again.')]),
    })
    await decide(decision)
    await until(statusIs(runId, status))
    const { length } = await store.read(threadId)
    running.open()
    await pause(300)
    expect(await store.read(threadId)).toHaveLength(length)
    expect(texts(state)).toEqual(said)
    await stop()
  },
)

test('one outcome is shown when the decision of a person and a late answer of a remote agent race', async () => {
  for (let round = 0; round < 8; round++) {
    const { running, runId, state, until, stop, decide } = await asked({
      work: () => all([message('m1', 'Late.')]),
      later: () => all([message('m2', 'Again.')]),
    })
    const happened: Decision = { outcome: 'happened', value: 'Mine.' }
    const decided = decide(round % 2 ? { outcome: 'did_not' } : happened)
    for (let n = 0; n < round; n++) await turn()
    running.open()
    await decided.catch(() => {})
    await until(statusIs(runId, 'completed'))
    await pause(20)
    expect(texts(state)).toHaveLength(1)
    await stop()
  }
})

test('a message that was recorded before the fence was lost is not repeated by the late answer', async () => {
  const { running, runId, state, until, stop } = await asked({
    before: () => all([message('m1', 'First.')]),
    work: () => all([message('m2', 'Second.')]),
  })
  expect(texts(state)).toEqual(['First.'])
  running.open()
  await until(statusIs(runId, 'completed'))
  expect(texts(state)).toEqual(['First.', 'Second.'])
  await stop()
})

test('a late answer for a cancelled run settles the effect and shows no message (I7)', async () => {
  const { running, runId, state, until, stop, runtime, store, threadId, requests } = await asked({
    work: () => all([message('m1', 'Late.')]),
    later: () => all([message('m2', 'Next.')]),
  })
  await runtime.cancel(caller, 'c', runId)
  running.open()
  await until(() => expect(effectOf(state)?.state).toBe('done'))
  await pause(100)
  statusIs(runId, 'cancelled')(state)
  expect(texts(state)).toEqual([])
  const journal = await store.read(threadId)
  expect(journal.map(({ body }) => body).join()).not.toContain('Late.')
  // The next run does not continue from the output of the cancelled run.
  const next = await runtime.start(caller, 'c', { messages: [userText('n', 'more')] })
  await until(statusIs(next.runId, 'completed'))
  expect(requests[1]?.place).toBeUndefined()
  expect(texts(state)).toEqual(['Next.'])
  await stop()
})

test('a late answer changes nothing while another driver repeats an idempotent remote leg', async () => {
  const again = gate()
  const world = await lost({
    idempotent: true,
    work: () => all([message('m1', 'First.')]),
    async *later() {
      await again.pass()
      return yield* all([message('m2', 'Second.')])
    },
  })
  const { state, until, stop } = await world.takeOver(() => expect(world.requests).toHaveLength(2))
  world.running.open()
  await pause(300)
  expect(texts(state)).toEqual([])
  again.open()
  await until(statusIs(world.runId, 'completed'))
  expect(texts(state)).toEqual(['Second.'])
  await stop()
})

test('a late answer changes nothing after another driver has rejoined the work at the remote', async () => {
  const again = gate()
  const world = await lost({
    look: async () => 'there',
    work: () => all([message('m1', 'First.')]),
    async *later() {
      await again.pass()
      return yield* all([message('m2', 'The same.')])
    },
  })
  const { state, until, stop } = await world.takeOver(() => expect(world.requests).toHaveLength(2))
  expect(world.requests[1]?.rejoin).toBe(true)
  world.running.open()
  await pause(300)
  expect(effectOf(state)?.state).toBe('unknown')
  again.open()
  await until(statusIs(world.runId, 'completed'))
  expect(texts(state)).toEqual(['The same.'])
  await stop()
})

test('a remote agent with a look() that finds evidence only gets its late answer recorded once a person is asked', async () => {
  const world = await lost({
    look: async () => ({ evidence: 'seen' }),
    work: () => all([message('m1', 'Done.')]),
  })
  const { state, until, stop } = await world.takeOver(inDoubt)
  world.running.open()
  await pause(200)
  inDoubt(state)
  world.clock.advance(60_001)
  await until(statusIs(world.runId, 'completed'))
  expect(texts(state)).toEqual(['Done.'])
  expect(askOf(state)?.answer).toMatchObject({ state: 'answered', outcome: 'happened' })
  await stop()
})

test('an error that the remote agent itself reported is late evidence that it failed', async () => {
  const work: Work = async function* () {
    yield message('m1', 'Half.')
    throw new RuntimeError('remote_failed', 'The remote agent failed: no ink.')
  }
  const { running, runId, state, until, stop } = await asked({ work })
  running.open()
  await until(statusIs(runId, 'failed'))
  expect(state.runs.get(runId)?.error).toMatchObject({
    code: 'remote_failed',
    message: 'The remote agent failed: no ink.',
  })
  expect(effectOf(state)?.state).toBe('failed')
  expect(askOf(state)?.answer).toMatchObject({ state: 'answered' })
  await stop()
})

test.each([
  ['was cut off', new RuntimeError('remote_cut')],
  ['was stopped', new LegStop('lost')],
])('an answer that %s is no late evidence', async (_, error) => {
  const work: Work = async function* () {
    yield message('m1', 'Half.')
    throw error
  }
  const { running, runId, state, stop, store, threadId } = await asked({ work })
  const { length } = await store.read(threadId)
  running.open()
  await pause(300)
  expect(await store.read(threadId)).toHaveLength(length)
  statusIs(runId, 'waiting')(state)
  await stop()
})

test('an answer that ends quietly after the leg was told to stop is no late evidence', async () => {
  let stopped = false
  const work: Work = async function* ({ signal }) {
    yield { type: 'state', value: {} }
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    stopped = true
    yield message('m1', 'Half.')
    return end()
  }
  const { running, runId, state, stop, clock } = await asked({ work })
  running.open()
  await pause(100)
  clock.advance(2_001) // the first server stops reading
  await pause(200)
  expect(stopped).toBe(true)
  statusIs(runId, 'waiting')(state)
  inDoubt(state)
  await stop()
})

test('a question that a remote agent ended with is asked after its late answer', async () => {
  const interrupts = [{ id: 'i1', kind: 'approval' as const, title: 'Send it?' }]
  const { running, state, until, stop, runtime, runId, requests } = await asked({
    work: () => all([message('m1', 'Ready.')], { interrupts, place: { threadId: 'there' } }),
    later: () => all([message('m2', 'Sent.')]),
  })
  running.open()
  await until(() => expect(state.asks.size).toBe(2))
  await until(statusIs(runId, 'waiting'))
  const [, { ask } = {}] = [...state.asks.values()]
  expect(ask).toMatchObject({ kind: 'approval', title: 'Send it?' })
  const named = { input: 'input', value: 'value' }
  const decision = { approved: true }
  await runtime.answer(caller, 'c', { decisions: [{ askId: ask!.askId, decision, named }] })
  await until(statusIs(runId, 'completed'))
  expect(requests[1]?.answers).toMatchObject([{ answer: { state: 'approved' } }])
  expect(requests[1]?.place).toEqual({ threadId: 'there' })
  expect(texts(state)).toEqual(['Ready.', 'Sent.'])
  await stop()
})

test('a late answer that the output rules forbid is not offered', async () => {
  const guard: Guard = {
    input: async () => undefined,
    output: () => ({
      take(event) {
        if (event.type === 'text' && event.text.includes('forbidden'))
          throw new RuntimeError('guardrail', 'Not allowed.')
        return [event]
      },
      end: () => [],
    }),
  }
  const { running, runId, state, stop, store, threadId } = await asked({
    guard,
    work: () => all([message('m1', 'This is forbidden.')]),
  })
  running.open()
  await pause(300)
  statusIs(runId, 'waiting')(state)
  const journal = await store.read(threadId)
  expect(journal.map(({ body }) => body).join()).not.toContain('forbidden')
  await stop()
})

test('a late answer for a run that failed meanwhile is recorded, and the run continues with it when it is retried', async () => {
  const heard: string[] = []
  let legs = 0
  const chief: Agent = {
    name: 'chief',
    async *run(ctx) {
      legs++
      if (legs === 2) throw new Error('broken')
      const { messages } = await ctx.delegate({ path: 'work', agent: 'far', input: 'go' })
      heard.push(...messages.map(textOf))
      yield { type: 'event', name: 'worked', value: messages.length }
    },
  }
  const world = await lost({ chief, work: () => all([message('m1', 'Done.')]) })
  const { state, until, stop, runtime } = await world.takeOver(statusIs(world.runId, 'failed'))
  world.running.open()
  await until(() => expect(effectOf(state)?.state).toBe('done'))
  await runtime.retry(caller, 'c', world.runId)
  await until(statusIs(world.runId, 'completed'))
  expect(heard).toEqual(['Done.'])
  expect(world.requests).toHaveLength(1)
  await stop()
})

test('a late answer of a remote agent that works as a sub-agent reaches the agent that delegated to it', async () => {
  const heard: string[] = []
  const chief: Agent = {
    name: 'chief',
    async *run(ctx) {
      const { messages } = await ctx.delegate({ path: 'work', agent: 'far', input: 'go' })
      heard.push(...messages.map(textOf))
      yield { type: 'event', name: 'worked', value: messages.length }
    },
  }
  const { running, runId, until, stop } = await asked({
    chief,
    work: () => all([message('m1', 'Done.')]),
  })
  running.open()
  await until(statusIs(runId, 'completed'))
  expect(heard).toEqual(['Done.'])
  await stop()
})

test('an answer that a stopping server cannot record is evidence for the person who is asked', async () => {
  let isAway = false
  const storeOf = (store: Store): Store => ({
    ...store,
    append: async (...given) => {
      if (isAway) throw new RuntimeError('store_unavailable')
      return await store.append(...given)
    },
  })
  const world = await lost({ storeOf, work: () => all([message('m1', 'The report is sent.')]) })
  isAway = true
  world.running.open()
  await pause(50)
  const stopped = world.first.stop()
  await vi.waitFor(() => expect(world.spooled.size).toBe(1), patience)
  await stopped
  const { state, until, stop } = await world.takeOver(inDoubt)
  await turn()
  world.clock.advance(60_001)
  await until(statusIs(world.runId, 'waiting'))
  expect(askOf(state)?.ask).toMatchObject({
    kind: 'in_doubt',
    evidence: { output: 'The report is sent.' },
  })
  await stop()
})
