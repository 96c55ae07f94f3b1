import { expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { tools } from '../../test/support/tools.ts'
import { toolLoop } from '../agents/tool-loop/agent.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { call, scriptedModel } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { cancel } from './cancel.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import type { Store } from './store.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent = { info() {}, warn() {}, error() {} }

test('an ask that is raised while its run is being cancelled ends with the run (I7)', async () => {
  const inner = memoryStore({ clock: systemClock })
  const raised = gate()
  const store: Store = {
    ...inner,
    async append(threadId, entries, guard) {
      const stored = await inner.append(threadId, entries, guard)
      // It is written, and nobody here knows yet.
      if (entries.some(({ kind }) => kind === 'ask.raised')) await raised.pass()
      return stored
    },
  }
  const runtime = createRuntime({
    ...{ store, bus: localBus(), queue: localQueue(systemClock), log: silent },
    agents: [
      {
        agent: toolLoop({ name: 'assistant' }),
        model: scriptedModel([[call('c', 'send', { to: 'ann', amount: 5 })]]),
        tools: [tools().send],
      },
    ],
  })
  const served = runtime.serve()
  const { thread, runId } = await runtime.start(caller, 'c', { message: userText('m', 'go') })
  await raised.reached
  const ended = new Promise<void>((resolve) => {
    thread.listen(({ kind }) => kind === 'run.cancelled' && resolve())
  })
  await cancel(thread, runId, runtime.newId, { type: 'user', id: 'u' })
  raised.open()
  await ended
  expect([...thread.state.asks.values()].map(({ answer }) => answer?.state)).toEqual(['cancelled'])
  await runtime.stop(0)
  await served
})
