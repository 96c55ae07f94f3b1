import { expect, test } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { localBus } from '../bus/local/bus.ts'
import { systemClock } from '../lib/clock.ts'
import { scriptedModel, text } from '../models/scripted.ts'
import { localQueue } from '../queue/local/queue.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { createRuntime } from './runtime.ts'

test('readiness asks the store at most once a second, whoever asks, and sees an outage then', async () => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  let asked = 0
  let down = false
  const counting = {
    ...store,
    async work(limit: number) {
      asked++
      if (down) throw new Error('no store')
      return await store.work(limit)
    },
  }
  const runtime = createRuntime({
    ...{ store: counting, bus: localBus(), clock, queue: localQueue(systemClock) },
    log: { info() {}, warn() {}, error() {} },
    agents: [{ agent: { name: 'a', async *run() {} }, model: scriptedModel(() => [text('done')]) }],
  })
  const problems = await Promise.all(Array.from({ length: 100 }, () => runtime.problem()))
  expect(new Set(problems)).toEqual(new Set([undefined]))
  for (let n = 0; n < 100; n++) await runtime.problem()
  expect(asked).toBe(1)
  down = true
  await clock.advance(1_000)
  expect(await runtime.problem()).toBe('Storage is not available.')
  expect(asked).toBe(2)
  await runtime.stop()
  expect(await runtime.problem()).toBe('The server is stopping.')
})
