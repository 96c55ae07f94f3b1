import { expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { tools } from '../../test/support/tools.ts'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { call, scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { cancel } from './cancel.ts'
import type { Kind } from './entries.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import type { Store } from './store.ts'
import type { Thread } from './thread.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const person = { type: 'user', id: 'u' } as const
const silent = { info() {}, warn() {}, error() {} }

/** A runtime whose writes of one kind are durable for a while before anybody here knows. */
function slowToHear(kind: Kind, script: Parameters<typeof scriptedModel>[0]) {
  const inner = memoryStore({ clock: systemClock })
  const written = gate()
  const store: Store = {
    ...inner,
    async append(threadId, entries, guard) {
      const stored = await inner.append(threadId, entries, guard)
      if (entries.some((entry) => entry.kind === kind)) await written.pass()
      return stored
    },
  }
  const runtime = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log: silent },
    agents: [
      {
        agent: toolLoop({ name: 'assistant' }),
        model: scriptedModel(script),
        tools: [tools().send],
      },
    ],
  })
  const served = runtime.serve()
  const stop = async () => {
    await runtime.stop(0)
    await served
  }
  return { runtime, written, stop }
}

const heard = (thread: Thread, kind: Kind, runId: string) =>
  new Promise<void>((resolve) => {
    thread.listen((entry) => entry.kind === kind && entry.runId === runId && resolve())
  })

test('an ask that is raised while its run is being cancelled ends with the run (I7)', async () => {
  const steps = [[call('c', 'send', { to: 'ann', amount: 5 })]]
  const { runtime, written, stop } = slowToHear('ask.raised', steps)
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  await written.reached
  const ended = heard(thread, 'run.cancelled', runId)
  await cancel(thread, runId, runtime.newId, person)
  written.open()
  await ended
  expect([...thread.state.asks.values()].map(({ answer }) => answer?.state)).toEqual(['cancelled'])
  await stop()
})

test('a run that is cancelled in line just before its turn does not get it (I7)', async () => {
  const thought = gate()
  const { runtime, written, stop } = slowToHear('run.cancelled', async function* () {
    await thought.pass()
    yield text('done')
  })
  const { thread, runId } = await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  const next = { messages: [userText('n', 'next')], whenBusy: 'queue' } as const
  const { runId: second } = await runtime.start(caller, 'c', next)
  await thought.reached
  const cancelled = cancel(thread, second, runtime.newId, person)
  await written.reached
  // The first ends now: here the second is still known to wait.
  const ended = heard(thread, 'run.completed', runId)
  thought.open()
  await ended
  written.open()
  await cancelled
  expect(thread.state.runs.get(second)?.status).toBe('cancelled')
  expect(thread.state.active).toBe(null)
  await stop()
})
