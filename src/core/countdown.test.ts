import { expect, test } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { countdown } from './countdown.ts'

test('time runs down, and not while anybody holds it', async () => {
  const clock = fakeClock()
  const { signal, hold } = countdown(100, clock, new AbortController().signal)
  await clock.advance(60)
  const first = hold()
  const second = hold()
  await clock.advance(1_000)
  first()
  first()
  await clock.advance(1_000)
  expect(signal.aborted).toBe(false)
  second()
  await clock.advance(39)
  expect(signal.aborted).toBe(false)
  await clock.advance(2)
  expect(signal.aborted).toBe(true)
})

test('it ends with what it was for', async () => {
  const clock = fakeClock()
  const over = new AbortController()
  const { signal, hold } = countdown(100, clock, over.signal)
  const goOn = hold()
  over.abort()
  goOn()
  await clock.advance(1_000)
  expect(signal.aborted).toBe(false)
})
