import { expect, test, vi } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { localSlots } from '../queue/local/slots.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { userText } from './messages.ts'
import { createRuntime, type RuntimeOptions } from './runtime.ts'
import { ended } from './state.ts'

const silent = { info() {}, warn() {}, error() {} }

/** Starts a run on each of these threads, `tenant/thread`, and says how many ran at once. */
async function mostAtOnce(threads: string[], more: Partial<RuntimeOptions>): Promise<number> {
  let running = 0
  let most = 0
  const agent: Agent = {
    name: 'busy',
    async *run() {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 20))
      running--
    },
  }
  const runtime = createRuntime({
    ...{ store: memoryStore({ clock: systemClock }), bus: localBus(), log: silent },
    queue: localQueue(systemClock),
    agents: [{ agent, model: scriptedModel(() => [text('done')]) }],
    ...more,
  })
  const served = runtime.serve()
  const runs = threads.map(async (name) => {
    const [tenant = '', clientId = ''] = name.split('/')
    const caller = { tenant, user: 'u', roles: [], wire: 'test' }
    const { thread, runId } = await runtime.start(caller, clientId, {
      messages: [userText('m', 'go')],
    })
    const run = thread.state.runs.get(runId)!
    await vi.waitFor(() => expect(ended(run)).toBe(true), { timeout: 5_000, interval: 5 })
  })
  await Promise.all(runs)
  await runtime.stop()
  await served
  return most
}

const ten = Array.from({ length: 10 }, (_, n) => `t/c${n}`)

test('legs wait for room, and begin as soon as there is some', async () => {
  const since = Date.now()
  expect(await mostAtOnce(ten, { maxLegs: 2 })).toBe(2)
  expect(await mostAtOnce(ten, { slots: localSlots({ total: 2 }) })).toBe(2)
  expect(Date.now() - since).toBeLessThan(2_000)
  expect(await mostAtOnce(ten, {})).toBe(10)
})

test('one tenant does not take the room of another', async () => {
  const threads = [...ten, 'u/c', 'v/c']
  const most = await mostAtOnce(threads, { slots: localSlots({ total: 10, perTenant: 1 }) })
  expect(most).toBe(3)
})

test('room is given back when another server has the thread, or the store is away', async () => {
  let held = 0
  const slots = {
    take: async () => {
      held++
      return () => {
        held--
      }
    },
  }
  const store = memoryStore({ clock: systemClock })
  const { claim } = store
  let tries = 0
  store.claim = async (...all) => {
    tries++
    if (tries === 1) throw new Error('away')
    return tries === 2 ? undefined : await claim(...all)
  }
  await mostAtOnce(['t/c'], { slots, store, leaseTtl: 50, sweepEvery: 20 })
  expect(tries).toBeGreaterThan(2)
  expect(held).toBe(0)
})

test('what came to another server is left to it for a moment, and done if it does not', async () => {
  const clock = fakeClock()
  const store = Object.assign(memoryStore({ clock }), { shared: true })
  const drove: string[] = []
  const server = (name: string) => {
    const agent: Agent = {
      name: 'agent',
      async *run() {
        drove.push(name)
        yield { type: 'event', name: 'drove', value: name }
      },
    }
    const queue = localQueue(clock)
    const parts = { store, queue, bus: localBus(), log: silent, clock, serverId: name }
    const agents = [{ agent, model: scriptedModel(() => [text('done')]) }]
    return { runtime: createRuntime({ ...parts, agents, plainIds: true }), queue }
  }
  const [here, there] = [server('here'), server('there')]
  const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
  const start = (id: string) =>
    here.runtime.start(caller, id, { messages: [userText(`m-${id}`, 'go')] })

  // The one that took it is busy elsewhere; the other hears of it at once.
  const idle = there.runtime.serve()
  await start('left')
  there.queue.ring('left')
  await clock.advance(200)
  expect(drove).toEqual([])
  await clock.advance(200)
  expect(drove).toEqual(['there'])

  const served = here.runtime.serve()
  await start('done')
  there.queue.ring('done')
  await clock.advance(1_000)
  expect(drove).toEqual(['there', 'here'])
  for (const { runtime } of [here, there]) await runtime.stop(0)
  await Promise.all([idle, served])
})
