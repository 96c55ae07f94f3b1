import { describe, expect, test } from 'vitest'
import { queueContract } from '../../../test/contracts/queue.contract.ts'
import { fakeClock } from '../../../test/support/clock.ts'
import { systemClock } from '../../lib/clock.ts'
import { localQueue } from './queue.ts'

queueContract('the local', async () => {
  const queue = localQueue(systemClock)
  return { servers: [queue, queue], dispose: async () => {} }
})

describe('the local queue', () => {
  test('rings after the time that was meant, also if the wall clock is set back', async () => {
    const clock = fakeClock()
    let back = 0
    const queue = localQueue({ ...clock, now: () => clock.now() - back })
    const stop = new AbortController()
    const looks: string[] = []
    const served = queue.serve(async (threadId) => void looks.push(threadId), stop.signal)
    queue.ringAt('a', clock.now() + 1_000)
    await clock.advance(0)
    back = 86_400_000
    await clock.advance(999)
    expect(looks).toEqual([])
    await clock.advance(2)
    expect(looks).toEqual(['a'])
    stop.abort()
    await served
  })

  test('looks at a thread once for many rings, and again if it rings meanwhile', async () => {
    const clock = fakeClock()
    const queue = localQueue(clock)
    const stop = new AbortController()
    const looks: string[] = []
    let finish = () => {}
    const served = queue.serve(async (threadId) => {
      looks.push(threadId)
      await new Promise<void>((resolve) => {
        finish = resolve
      })
    }, stop.signal)
    queue.ring('a')
    queue.ring('a')
    await clock.advance(0)
    expect(looks).toEqual(['a'])
    queue.ring('a')
    await clock.advance(0)
    expect(looks).toEqual(['a'])
    finish()
    await clock.advance(0)
    expect(looks).toEqual(['a', 'a'])
    finish()
    stop.abort()
    await served
  })

  test('rings at a time, and earlier if asked to', async () => {
    const clock = fakeClock()
    const queue = localQueue(clock)
    const stop = new AbortController()
    const looks: number[] = []
    const served = queue.serve(async () => {
      looks.push(clock.now())
    }, stop.signal)
    const start = clock.now()
    queue.ringAt('a', start + 500)
    queue.ringAt('a', start + 100)
    queue.ringAt('b', start + 300)
    await clock.advance(50)
    expect(looks).toEqual([])
    await clock.advance(1_000)
    expect(looks).toEqual([start + 100, start + 300])
    stop.abort()
    await served
  })

  test('goes on when a look fails', async () => {
    const clock = fakeClock()
    const queue = localQueue(clock)
    const stop = new AbortController()
    let looks = 0
    const served = queue.serve(async () => {
      if (++looks === 1) throw new Error('once')
    }, stop.signal)
    queue.ring('a')
    await clock.advance(0)
    queue.ring('a')
    await clock.advance(0)
    expect(looks).toBe(2)
    stop.abort()
    await served
  })
})
