import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { gate } from '../../test/support/gate.ts'
import { warpClock } from '../../test/support/warp-clock.ts'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { call, scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { textOf, userText } from './messages.ts'
import { createRuntime, type RuntimeOptions } from './runtime.ts'
import type { ThreadState } from './state.ts'
import type { Store } from './store.ts'
import { EffectDidNotHappen, OutcomeUnknown, type Tool, type ToolUse } from './tool.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent = { info() {}, warn() {}, error() {} }
const patience = { timeout: 10_000, interval: 5 }

/** A tool named `pay` with a timeout of 10 s. */
const payTool = (tool: Partial<Tool>): Tool => ({
  name: 'pay',
  description: 'Pays',
  schema: z.strictObject({}),
  timeout: 10_000,
  run: async () => 'paid',
  ...tool,
})

const untilAborted = ({ signal }: ToolUse) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('socket closed')), { once: true })
  })

/** A `check()` that says whether the bank has booked, and counts how often it is called. */
function bankCheck() {
  let booked = false
  let count = 0
  return {
    check: async () => {
      count++
      if (booked) return { happened: true as const, output: 'paid, says the bank' }
      return { happened: false as const }
    },
    book: () => {
      booked = true
    },
    count: () => count,
    times: (n: number) => vi.waitFor(() => expect(count).toBe(n), patience),
  }
}

/** Two parallel server processes on one store, with one clock that tests move. */
function world(tool: Tool, more: Partial<RuntimeOptions> = {}) {
  const clock = warpClock()
  const store = memoryStore({ clock })
  const spooled = new Map<string, unknown>()
  const spool = {
    save: async (effectId: string, outcome: unknown) => void spooled.set(effectId, outcome),
    find: async (effectId: string) => spooled.get(effectId),
    remove: async (effectId: string) => void spooled.delete(effectId),
  }
  const model = scriptedModel((request) =>
    request.messages.some(({ role }) => role === 'tool') ? [text('ok')] : [call('1', 'pay', {})],
  )
  const server = (over: Partial<RuntimeOptions> = {}) => {
    const runtime = createRuntime({
      ...{ store, clock, spool, bus: localBus(), queue: localQueue(clock), log: silent },
      agents: [
        {
          agent: toolLoop({ name: 'assistant' }),
          model,
          tools: [tool],
          policy: [{ decision: 'allow' }],
        },
      ],
      ...more,
      ...over,
    })
    const served = runtime.serve()
    return { runtime, stop: () => runtime.stop(0).then(() => served) }
  }
  return { clock, store, server, spooled, model }
}

const statusIs = (state: ThreadState, runId: string, status: string) =>
  vi.waitFor(() => expect(state.runs.get(runId)?.status).toBe(status), patience)

const effectOf = (state: ThreadState) =>
  [...state.effects.values()].find(({ intent }) => intent.effect === 'tool')

const resultOf = (state: ThreadState) => {
  const said = [...state.messages.values()].find(({ message }) => message.role === 'tool')
  return said && textOf(said.message)
}

/** Starts a run, waits until the tool runs, and lets its timeout pass. */
async function timedOut(tool: Partial<Tool>) {
  const running = gate()
  const run = tool.run ?? (async () => 'paid')
  const set = world(
    payTool({
      ...tool,
      run: async (input: unknown, use: ToolUse) => {
        void running.pass()
        return await run(input, use)
      },
    }),
  )
  const { runtime, stop } = set.server()
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  await running.reached
  running.open()
  await new Promise((resolve) => setImmediate(resolve))
  set.clock.advance(10_001)
  await new Promise((resolve) => setImmediate(resolve))
  set.clock.advance(2_001) // for tools that do not listen
  return { ...set, runtime, stop, thread, state: thread.state, runId }
}

test.each([
  ['throws an error after its signal fired', (_: unknown, use: ToolUse) => untilAborted(use)],
  ['never returns', () => new Promise<never>(() => {})],
  [
    'throws OutcomeUnknown after its signal fired',
    (_: unknown, use: ToolUse) =>
      untilAborted(use).catch(() => Promise.reject(new OutcomeUnknown('cut', true))),
  ],
])('a tool with effects that exceeds its timeout and %s is in doubt', async (_, run) => {
  const { state, runId, stop } = await timedOut({ run })
  await statusIs(state, runId, 'waiting')
  expect(effectOf(state)?.state).toBe('unknown')
  const [record] = state.asks.values()
  expect(record?.ask).toMatchObject({ kind: 'in_doubt', tool: 'pay' })
  expect(record?.ask.evidence).toMatchObject({
    error: expect.stringMatching(/^The call did not finish within 10 s\. (It|The tool) /),
  })
  await stop()
})

test.each([{ idempotent: true }, { access: 'read' as const }])(
  'a timeout of a tool that can be repeated (%j) is a failure that the model is told',
  async (kind) => {
    const { state, runId, stop } = await timedOut({ ...kind, run: (_, use) => untilAborted(use) })
    await statusIs(state, runId, 'completed')
    expect(effectOf(state)).toMatchObject({ state: 'failed', error: { code: 'tool_timeout' } })
    expect(resultOf(state)).toBe('Error executing tool: The call did not finish within 10 s.')
    await stop()
  },
)

test('a tool that says that its effect did not happen has failed, also after its timeout', async () => {
  const run = (_: unknown, use: ToolUse) =>
    untilAborted(use).catch(() => Promise.reject(new EffectDidNotHappen('Rolled back.')))
  const { state, runId, stop } = await timedOut({ run })
  await statusIs(state, runId, 'completed')
  expect(effectOf(state)?.state).toBe('failed')
  expect(resultOf(state)).toBe('Error executing tool: Rolled back.')
  await stop()
})

test('check() finds out after a timeout that the call happened', async () => {
  const check = async () => ({ happened: true as const, output: 'paid, says the bank' })
  const { state, runId, stop } = await timedOut({ run: (_, use) => untilAborted(use), check })
  await statusIs(state, runId, 'completed')
  expect(resultOf(state)).toBe('paid, says the bank')
  expect(state.asks.size).toBe(0)
  await stop()
})

test('a call that check() says did not happen before its timeout is not run again by itself', async () => {
  let runs = 0
  const run = (_: unknown, use: ToolUse) => {
    runs++
    return untilAborted(use)
  }
  const checked = bankCheck()
  const { state, runId, stop, clock } = await timedOut({ run, check: checked.check })
  await checked.times(1)
  clock.advance(30_001)
  await statusIs(state, runId, 'completed')
  expect(resultOf(state)).toMatch(/did not finish within 10 s\..* It did not happen\.$/)
  expect(runs).toBe(1)
  expect(checked.count()).toBe(2)
  await stop()
})

test('a call whose request is still under way after its timeout is checked again before a "no" is believed', async () => {
  const checked = bankCheck()
  const { state, runId, stop, clock } = await timedOut({
    ...{ run: (_, use) => untilAborted(use), check: checked.check },
  })
  await checked.times(1)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(resultOf(state)).toBeUndefined()
  checked.book()
  clock.advance(30_001)
  await statusIs(state, runId, 'completed')
  expect(resultOf(state)).toBe('paid, says the bank')
  expect(effectOf(state)).toMatchObject({ state: 'done', intent: { attempt: 1 } })
  expect(state.asks.size).toBe(0)
  await stop()
})

test('a "no" of check() is believed at once if the tool says that its call is over', async () => {
  const run = (_: unknown, use: ToolUse) =>
    untilAborted(use).catch(() => Promise.reject(new OutcomeUnknown('The program ended.', true)))
  const checked = bankCheck()
  const { state, runId, stop } = await timedOut({ run, check: checked.check })
  await statusIs(state, runId, 'completed')
  expect(resultOf(state)).toMatch(/It ended with: The program ended\. It did not happen\.$/)
  expect(checked.count()).toBe(1)
  await stop()
})

test('a call that exceeded its timeout is not run again after a restart when check() says no', async () => {
  let runs = 0
  const run = (_: unknown, use: ToolUse) => {
    runs++
    return untilAborted(use)
  }
  const checked = bankCheck()
  const { runId, stop, clock, server } = await timedOut({ run, check: checked.check })
  await checked.times(1)
  await stop()
  const next = server()
  const { state } = await next.runtime.open(caller, 'c')
  await checked.times(2)
  clock.advance(30_001)
  await statusIs(state, runId, 'completed')
  expect(resultOf(state)).toMatch(/did not finish within 10 s\..* It did not happen\.$/)
  expect(runs).toBe(1)
  await next.stop()
})

test('a call that is still running after its timeout is asked about, whatever check() says', async () => {
  const check = async () => ({ happened: false as const })
  const { state, runId, stop } = await timedOut({ run: () => new Promise(() => {}), check })
  await statusIs(state, runId, 'waiting')
  expect([...state.asks.values()].map(({ ask }) => ask.kind)).toEqual(['in_doubt'])
  await stop()
})

test('a late result settles the open question, and the run continues with it', async () => {
  const late = gate()
  let runs = 0
  const run = async () => {
    runs++
    await late.pass()
    return 'paid late'
  }
  const { state, runId, stop, model, spooled } = await timedOut({ run })
  await statusIs(state, runId, 'waiting')
  late.open()
  await statusIs(state, runId, 'completed')
  const [record] = state.asks.values()
  expect(record?.answer).toMatchObject({ state: 'answered', outcome: 'happened' })
  expect(record?.answeredBy).toEqual({ type: 'system', id: 'late_result' })
  expect(effectOf(state)).toMatchObject({ state: 'done', output: 'paid late' })
  expect(resultOf(state)).toBe('paid late')
  expect(runs).toBe(1)
  expect(model.requests).toHaveLength(2)
  expect(spooled.size).toBe(0)
  await stop()
})

test('a late result that loses against a decision changes nothing', async () => {
  const late = gate()
  const run = async () => {
    await late.pass()
    return 'paid late'
  }
  const { state, runId, stop, runtime } = await timedOut({ run })
  await statusIs(state, runId, 'waiting')
  const [askId = ''] = state.asks.keys()
  const named = { input: 'input', value: 'value' }
  const decision = { outcome: 'skip' as const }
  await runtime.answer(caller, 'c', { decisions: [{ askId, decision, named }] })
  await statusIs(state, runId, 'completed')
  late.open()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(effectOf(state)?.state).toBe('failed')
  expect(resultOf(state)).toBe(
    'The call was interrupted. Whether it happened is not known; it was skipped.',
  )
  await stop()
})

test('exactly one outcome wins when a decision and a late result race', async () => {
  for (let round = 0; round < 10; round++) {
    const late = gate()
    let runs = 0
    const run = async () => {
      if (++runs > 1) return 'paid again'
      await late.pass()
      return 'paid late'
    }
    const { state, runId, stop, runtime, thread, store } = await timedOut({ run })
    await statusIs(state, runId, 'waiting')
    const [askId = ''] = state.asks.keys()
    const named = { input: 'input', value: 'value' }
    const decision = { outcome: 'did_not' as const }
    const decided = runtime.answer(caller, 'c', { decisions: [{ askId, decision, named }] })
    for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve))
    late.open()
    await decided.catch(() => {})
    await statusIs(state, runId, 'completed')
    const entries = await store.read(thread.threadId)
    const isOutcome = ({ kind, body }: { kind: string; body: string }) =>
      (kind === 'effect.done' || kind === 'effect.failed') && body.includes('"effect":"tool"')
    expect(entries.filter(isOutcome)).toHaveLength(1)
    expect(resultOf(state)).toBe(runs === 1 ? 'paid late' : 'paid again')
    expect(effectOf(state)?.output).toBe(resultOf(state))
    await stop()
  }
})

test('a call of a sub-agent that exceeds its timeout is in doubt, and its late result settles it', async () => {
  const running = gate()
  const run = async () => {
    await running.pass()
    return 'paid late'
  }
  const tool = payTool({ run })
  const { clock, server, model } = world(tool)
  const worker = toolLoop({ name: 'worker' })
  const chief: Agent = {
    name: 'chief',
    async *run(ctx) {
      const { messages } = await ctx.delegate({ path: 'work', agent: 'worker', input: 'pay' })
      yield { type: 'event', name: 'worked', value: messages.length }
    },
  }
  const policy = [{ decision: 'allow' as const }]
  const { runtime, stop } = server({
    agents: [
      { agent: chief, model },
      { agent: worker, model, tools: [tool], policy },
    ],
  })
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  const { state } = thread
  await running.reached
  clock.advance(10_001)
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(2_001)
  await statusIs(state, runId, 'waiting')
  const [record] = state.asks.values()
  expect(record?.ask).toMatchObject({ kind: 'in_doubt', path: 'work', agent: 'worker' })
  running.open()
  await statusIs(state, runId, 'completed')
  expect(resultOf(state)).toBe('paid late')
  await stop()
})

test('a driver that has lost its fence offers the result of its tool as evidence', async () => {
  const running = gate()
  let runs = 0
  const run = async () => {
    runs++
    await running.pass()
    return 'paid by the first'
  }
  const { clock, store, server } = world(payTool({ run }), { leaseTtl: 3_000, sweepEvery: 20 })
  const frozen: Store = { ...store, renew: () => new Promise(() => {}) }
  const first = server({ store: frozen })
  const started = await first.runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  await running.reached
  clock.advance(3_001) // the lease of the first server lapses
  const second = server()
  const { state } = await second.runtime.open(caller, 'c')
  await vi.waitFor(async () => {
    await second.runtime.open(caller, 'c')
    expect(effectOf(state)?.state).toBe('unknown')
  }, patience)
  running.open()
  await vi.waitFor(() => expect(effectOf(state)?.state).toBe('done'), patience)
  clock.advance(10_001) // the second server waits that long before it looks at the call
  await statusIs(state, started.runId, 'completed')
  expect(resultOf(state)).toBe('paid by the first')
  expect(state.asks.size).toBe(0)
  expect(runs).toBe(1)
  await first.stop()
  await second.stop()
})

type Agents = RuntimeOptions['agents']

const agentsWith = (tools: Tool[], model: Agents[number]['model']): Agents => [
  { agent: toolLoop({ name: 'assistant' }), model, tools, policy: [{ decision: 'allow' }] },
]

/** Stops a server in the middle of a call of `pay`. Returns a function that starts a server with other tools. */
async function interrupted(tool: Partial<Tool> = {}) {
  const running = gate()
  const run = async (_: unknown, { signal }: ToolUse) => {
    await running.pass(signal)
    return 'paid'
  }
  const { server, clock, model } = world(payTool({ run, ...tool }))
  const first = server()
  const clientTools = [{ name: 'pay', description: 'Pays in the page', parameters: {} }]
  const { runId } = await first.runtime.start(caller, 'c', {
    ...{ messages: [userText('m', 'go')], options: { clientTools } },
  })
  await running.reached
  await first.stop()
  const restart = async (tools: Tool[]) => {
    const { runtime, stop } = server({ agents: agentsWith(tools, model) })
    const { state } = await runtime.open(caller, 'c')
    clock.advance(10_001)
    return { state, runtime, runId, stop }
  }
  return { restart }
}

const never = () => Promise.reject(new Error('The tool ran.'))

test.each<[string, Tool[]]>([
  [
    'its tool has a schema that the input does not fit',
    [payTool({ run: never, schema: z.strictObject({ currency: z.string() }) })],
  ],
  ['its tool is gone and the client offers a tool of that name', []],
])('an interrupted call is in doubt after a restart when %s', async (_, tools) => {
  const { restart } = await interrupted()
  const { state, runtime, runId, stop } = await restart(tools)
  await statusIs(state, runId, 'waiting')
  expect([...state.asks.values()].map(({ ask }) => ask.kind)).toEqual(['in_doubt'])
  expect(effectOf(state)).toMatchObject({ state: 'unknown', intent: { attempt: 1 } })

  const [askId = ''] = state.asks.keys()
  const named = { input: 'input', value: 'value' }
  const decision = { outcome: 'did_not' as const }
  await runtime.answer(caller, 'c', { decisions: [{ askId, decision, named }] })
  await statusIs(state, runId, 'completed')
  expect(effectOf(state)).toMatchObject({ state: 'failed', intent: { attempt: 1 } })
  expect(resultOf(state)).toMatch(/ It had been started before; it was not run again\.$/)
  await stop()
})

test.each([
  ['has another optional field', { note: z.string().optional() }],
  ['has another required field', { currency: z.string() }],
])('a recorded result is given to the model when the schema of its tool %s', async (_, fields) => {
  const late = gate()
  const run = async () => {
    await late.pass()
    return 'paid late'
  }
  const { state, runId, stop, server, model } = await timedOut({ run })
  await statusIs(state, runId, 'waiting')
  await stop()
  late.open()
  await vi.waitFor(() => expect(effectOf(state)?.state).toBe('done'), patience)
  const tool = payTool({ schema: z.strictObject(fields), run: never })
  const next = server({ agents: agentsWith([tool], model) })
  const opened = await next.runtime.open(caller, 'c')
  await statusIs(opened.state, runId, 'completed')
  expect(resultOf(opened.state)).toBe('paid late')
  await next.stop()
})

test('an agent that makes another call under the id of a recorded call fails if the schema has changed', async () => {
  const late = gate()
  let amount = 0
  const wavering: Agent = {
    name: 'assistant',
    async *run(ctx) {
      const part = (input: string) => ({ type: 'call' as const, callId: '1', name: 'pay', input })
      const said = ctx.messages().some(({ role }) => role === 'assistant')
      const message = { id: 'a', role: 'assistant' as const, parts: [part('{"amount":1}')] }
      if (!said) yield { type: 'message', message }
      await ctx.call([part(JSON.stringify({ amount: ++amount }))])
    },
  }
  const run = async () => {
    await late.pass()
    return 'paid late'
  }
  const { clock, server, model } = world(payTool({}))
  const start = (fields: z.ZodRawShape) => {
    const tools = [payTool({ schema: z.strictObject({ amount: z.number(), ...fields }), run })]
    const policy = [{ decision: 'allow' as const }]
    return server({ agents: [{ agent: wavering, model, tools, policy }] })
  }
  const first = start({})
  const messages = [userText('m', 'go')]
  const { thread, runId } = await first.runtime.start(caller, 'c', { messages })
  await late.reached
  clock.advance(10_001)
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(2_001)
  await statusIs(thread.state, runId, 'waiting')
  await first.stop()
  late.open()
  await vi.waitFor(() => expect(effectOf(thread.state)?.state).toBe('done'), patience)
  const next = start({ note: z.string().optional() })
  const { state } = await next.runtime.open(caller, 'c')
  await statusIs(state, runId, 'failed')
  expect(state.runs.get(runId)?.error?.code).toBe('agent_not_deterministic')
  await next.stop()
})
