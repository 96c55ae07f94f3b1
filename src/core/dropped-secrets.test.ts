import { expect, test, vi } from 'vitest'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import type { Agent } from './agent.ts'
import { userText } from './messages.ts'
import { createRuntime } from './runtime.ts'
import { RunSecrets } from './secrets.ts'
import { ended } from './state.ts'
import { Thread } from './thread.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }

test('the secrets of a run are dropped when it ends, also if its thread left memory while the run waited', async () => {
  const keep = vi.spyOn(RunSecrets.prototype, 'keep')
  // A thread that left memory loses its listeners, as if the garbage collector had taken it.
  const listen = vi.spyOn(Thread.prototype, 'listen').mockImplementation(() => () => {})
  const agent: Agent = {
    name: 'assistant',
    async *run(ctx) {
      await ctx.ask({ kind: 'input', title: 'Go on?', key: 'go' })
      yield { type: 'event', name: 'went on', value: {} }
    },
  }
  const runtime = createRuntime({
    ...{ store: memoryStore({ clock: systemClock }), bus: localBus() },
    ...{ queue: localQueue(systemClock), log: { info() {}, warn() {}, error() {} } },
    agents: [{ agent, model: scriptedModel(() => []) }],
  })
  const served = runtime.serve()
  const messages = [userText('m', 'go')]
  const options = { forwarded: { token: 'sk-very-secret' } }
  const { thread, runId } = await runtime.start(caller, 'c', { messages, options })
  const secrets = keep.mock.contexts[0] as RunSecrets
  await vi.waitFor(() => expect(thread.state.runs.get(runId)?.status).toBe('waiting'))
  expect(secrets.textsOf(runId)).toEqual(['sk-very-secret'])
  await runtime.cancel(caller, 'c', runId)
  await vi.waitFor(() => expect(ended(thread.state.runs.get(runId)!)).toBe(true))
  await vi.waitFor(() => expect(secrets.textsOf(runId)).toEqual([]))
  listen.mockRestore()
  await runtime.stop()
  await served
})
