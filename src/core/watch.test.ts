import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { watched } from './watch.ts'

const limits = { first: 100, between: 50, total: 1_000 }

async function* after(clock: ReturnType<typeof fakeClock>, ...waits: number[]) {
  for (const wait of waits) {
    await clock.sleep(wait)
    yield wait
  }
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const one of source) list.push(one)
  return list
}

describe('a source that is watched', () => {
  test('passes on what comes in time', async () => {
    const clock = fakeClock()
    let stops = 0
    const reading = all(watched(after(clock, 90, 40, 40), limits, clock, () => stops++))
    await clock.advance(500)
    expect(await reading).toEqual([90, 40, 40])
    expect(stops).toBe(0)
  })

  test.each([
    ['its first event', [200], 'did not begin'],
    ['a later one', [90, 60], 'stopped answering'],
    ['its end', Array.from({ length: 50 }, () => 40), 'still answering'],
  ])('is given up when %s is too long in coming', async (_what, waits, told) => {
    const clock = fakeClock()
    let stops = 0
    const reading = all(watched(after(clock, ...waits), limits, clock, () => stops++))
    reading.catch(() => {})
    await clock.advance(5_000)
    await expect(reading).rejects.toMatchObject({ code: 'model_timeout' })
    await expect(reading).rejects.toThrow(told)
    expect(stops).toBe(1)
  })

  test('is not blamed for a reader that takes its time', async () => {
    const clock = fakeClock()
    const read: number[] = []
    const reading = (async () => {
      for await (const one of watched(after(clock, 10, 10, 10), limits, clock, () => {})) {
        read.push(one)
        await clock.sleep(200)
      }
    })()
    await clock.advance(900)
    await reading
    expect(read).toEqual([10, 10, 10])
  })

  test('is closed when the reader leaves', async () => {
    const clock = fakeClock()
    let closed = false
    async function* source() {
      try {
        for (;;) yield 1
      } finally {
        closed = true
      }
    }
    for await (const _ of watched(source(), limits, clock, () => {})) break
    await clock.advance(10)
    expect(closed).toBe(true)
  })
})
