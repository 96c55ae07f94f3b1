import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { call, scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { budgetAskOf } from './budget-set.ts'
import { userText } from './messages.ts'
import { type Caller, createRuntime } from './runtime.ts'
import type { NewEntry, Store } from './store.ts'
import { defineTool } from './tool.ts'

const caller: Caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const named = { input: 'input', value: 'value' }
const log = { info() {}, warn() {}, error() {} }

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  schema: z.object({}),
  access: 'read',
  run: async () => 'seen',
})

/** Two servers on one store; what `meanwhile` does happens right before the first one writes. */
function stage(meanwhile: (entries: readonly NewEntry[]) => Promise<void>, drop?: string) {
  const shared = Object.assign(memoryStore({ clock: systemClock }), { shared: true })
  const seen: Store = Object.assign(Object.create(shared), {
    append: async (...given: Parameters<Store['append']>) => {
      await meanwhile(given[1])
      if (drop !== undefined) for (const { marks } of given[1]) delete marks?.facts?.[drop]
      return await shared.append(...given)
    },
  })
  const model = scriptedModel((_, n) => (n < 5 ? [call(`call-${n}`, 'look', {})] : [text('Done.')]))
  const server = (store: Store) =>
    createRuntime({
      ...{ store, bus: localBus(), queue: localQueue(systemClock), log, plainIds: true },
      agents: [{ agent: toolLoop({ name: 'assistant' }), model, tools: [look] }],
      governor: { isHitlEnabled: true, actionLimit: 3 },
    })
  const [one, other] = [server(seen), server(shared)]
  const served = one.serve()
  onTestFinished(async () => {
    await one.stop(0)
    await served
  })
  const start = async () => {
    const { thread } = await one.start(caller, 'c', { messages: [userText('m', 'go')] })
    await expect.poll(() => budgetAskOf(thread.state)).toBeDefined()
    return thread
  }
  return { model, other, start }
}

const isCall = ({ kind, body }: NewEntry) =>
  kind === 'effect.intended' && JSON.parse(body).effect === 'model'

test('a budget that is lowered between the look and the reservation holds', async () => {
  let calls = 0
  const { model, other, start } = stage(async (entries) => {
    if (!entries.some(isCall) || ++calls !== 2) return
    await other.setGovernor(caller, 'c', { actionLimit: 1 }, named)
  })
  const thread = await start()
  expect(model.requests).toHaveLength(1)
  expect(thread.state.governor).toMatchObject({ actionLimit: 1, actionCounter: 1 })
})

test('the last call goes to whoever reserves it first, beside the run too', async () => {
  let calls = 0
  const { model, other, start } = stage(async (entries) => {
    if (!entries.some(isCall) || ++calls !== 3) return
    const request = { system: [], messages: [], tools: [] }
    const about = { agent: 'assistant', clientId: 'c' }
    const events = other.complete(caller, about, request, new AbortController().signal)
    for await (const _ of events);
  })
  const thread = await start()
  expect(model.requests).toHaveLength(3)
  expect(thread.state.governor).toMatchObject({ actionCounter: 3, total: 3 })
})

test('a budget that is raised just before the question is asked spares it', async () => {
  let raised = false
  const { model, other, start } = stage(async (entries) => {
    if (raised || !entries.some(({ kind }) => kind === 'ask.raised')) return
    raised = true
    await other.setGovernor(caller, 'c', { actionLimit: 4 }, named)
  })
  const thread = await start()
  expect(model.requests).toHaveLength(4)
  expect(thread.state.asks.size).toBe(1)
})

test('a thread of before there was a fact for it is governed all the same', async () => {
  const { model, start } = stage(async () => {}, 'governor')
  await start()
  expect(model.requests).toHaveLength(3)
})
