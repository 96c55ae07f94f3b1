import { expect, test } from 'vitest'
import { gate } from '../../../test/support/gate.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import { warpClock } from '../../../test/support/warp-clock.ts'
import { toolLoop } from '../../agents/tool-loop/agent.ts'
import { localBus } from '../../bus/local/bus.ts'
import { userText } from '../../core/messages.ts'
import { createRuntime } from '../../core/runtime.ts'
import type { Store } from '../../core/store.ts'
import { scriptedModel, text } from '../../models/scripted.ts'
import { localQueue } from '../../queue/local/queue.ts'

const { open } = postgresWorkshop('fsync = off')
const silent = { info() {}, warn() {}, error() {} }
const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }

function serverOn(store: Store) {
  const clock = warpClock()
  const runtime = createRuntime({
    ...{ store, clock, bus: localBus(), queue: localQueue(clock), log: silent },
    agents: [
      {
        agent: toolLoop({ name: 'assistant' }),
        model: scriptedModel(() => [text('Hello.')]),
      },
    ],
  })
  return { clock, runtime }
}

const request = { messages: [userText('m', 'hi')], key: { key: 'k', digest: 'd' } }

test.each([
  ['before it reaches Postgres', true, true],
  ['before it reaches Postgres, on a chat that exists', true, false],
  ['after it is committed', false, true],
  ['after it is committed, on a chat that exists', false, false],
])(
  'a start that is held %s is not doubled by the same key on another server',
  async (_, before, isNew) => {
    const [inner, other] = [await open(), await open()]
    const held = gate()
    let armed = false
    const store: Store = {
      ...inner,
      async append(threadId, entries, guard) {
        if (!armed) return await inner.append(threadId, entries, guard)
        armed = false
        if (before) await held.pass()
        const placed = await inner.append(threadId, entries, guard)
        if (!before) await held.pass()
        return placed
      },
    }
    const [one, two] = [serverOn(store), serverOn(other)]
    if (!isNew) await two.runtime.create(caller, 'c', {})
    armed = true
    const started = one.runtime.start(caller, 'c', request)
    await held.reached
    one.clock.advance(5_001)
    const unknown = await started.catch((error: { data: { run_id: string } }) => error)
    expect(unknown).toMatchObject({ code: 'outcome_unknown', data: { thread_id: 'c' } })
    const again = await two.runtime.start(caller, 'c', request)
    expect(again.fresh).toBe(before)
    held.open()
    // The first server, too, finds what became of its request.
    const found = await one.runtime.start(caller, 'c', request)
    expect(found).toMatchObject({ fresh: false, runId: again.runId })
    const kinds = (await other.read(again.thread.threadId)).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'run.queued')).toHaveLength(1)
    expect(kinds.filter((kind) => kind === 'thread.created')).toHaveLength(1)
    await Promise.all([one.runtime.stop(0), two.runtime.stop(0)])
  },
)
