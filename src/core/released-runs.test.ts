import { expect, test, vi } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent, AgentContext } from './agent.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import { ended } from './state.ts'

const log = { info() {}, warn() {}, error() {} }
const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }

/** A runtime whose agent calls `onRun`, and a client that sends one message after another. */
function stage(onRun: (ctx: AgentContext) => void = () => {}) {
  const agent: Agent = {
    name: 'assistant',
    async *run(ctx) {
      onRun(ctx)
      yield { type: 'event', name: 'ran', value: {} }
    },
  }
  const parts = { store: memoryStore({ clock: systemClock }), bus: localBus(), log }
  const agents = [{ agent, model: scriptedModel(() => []) }]
  const runtime = createRuntime({ ...parts, queue: localQueue(systemClock), agents })
  const served = runtime.serve()
  const stop = async () => {
    await runtime.stop()
    await served
  }
  const finished = async (runId: string) => {
    const { state } = await runtime.open(caller, 'c')
    await vi.waitFor(() => expect(ended(state.runs.get(runId)!)).toBe(true), { timeout: 20_000 })
    return state
  }
  const say = async (n: number, replaces?: string) => {
    const options = { instructions: [`${n}`.padEnd(10_000, 'x')] }
    const state = { value: { n, text: 'y'.repeat(10_000) } }
    const messages = [userText(`m${n}`, 'go')]
    const { runId } = await runtime.start(caller, 'c', {
      ...{ messages, options, state },
      ...(replaces !== undefined && { replaces }),
    })
    await finished(runId)
    return runId
  }
  return { runtime, say, finished, stop }
}

test('options and states of runs that ended long ago do not stay in memory', async () => {
  const { runtime, say, stop } = stage()
  for (let n = 0; n < 20; n++) await say(n)
  const { state } = await runtime.open(caller, 'c')
  const kept = [...state.runs.values()].map(({ options, before, given }) => ({
    ...{ options, before, given },
  }))
  expect(JSON.stringify(kept).length).toBeLessThan(5 * 3 * 10_100)
  expect(state.states.get('assistant')).toMatchObject({ n: 19 })
  await stop()
})

test('a failed run that is run again after others ended has the options of its request', async () => {
  const seen: string[] = []
  let fails = true
  const { runtime, say, finished, stop } = stage((ctx) => {
    seen.push(ctx.options.instructions?.[0]?.slice(0, 2) ?? '')
    if (fails) throw new Error('no')
  })
  const failed = await say(50)
  fails = false
  await say(51, failed)
  for (let n = 52; n < 60; n++) await say(n)
  await runtime.show(caller, 'c', failed)
  const { state } = await runtime.open(caller, 'c')
  expect(state.head).toBe(failed)
  expect(state.runs.get(failed)).toMatchObject({ status: 'failed', released: true, options: {} })
  await runtime.retry(caller, 'c', failed)
  await finished(failed)
  expect(state.runs.get(failed)?.status).toBe('completed')
  expect(seen.at(-1)).toBe('50')
  await stop()
})
