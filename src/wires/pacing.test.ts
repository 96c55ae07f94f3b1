import { expect, test } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { Pacing, pacedBytes } from './pacing.ts'

const megabyte = 1024 * 1024
const { signal } = new AbortController()

test('large bodies of one caller are spaced out while another caller is active', async () => {
  const clock = fakeClock()
  const pacing = new Pacing(clock)
  pacing.seen('good')
  pacing.seen('bad')
  await pacing.body('bad', signal).ofBytes(4 * megabyte)
  let entered = false
  const second = pacing
    .body('bad', signal)
    .ofBytes(megabyte)
    .then(() => {
      entered = true
    })
  await pacing.body('good', signal).ofBytes(4 * megabyte) // not delayed by the other
  await clock.advance(799)
  expect(entered).toBe(false)
  await clock.advance(1)
  await second
})

test('a caller that is alone, and small bodies, are not delayed', async () => {
  const clock = fakeClock()
  const pacing = new Pacing(clock)
  pacing.seen('only')
  for (let n = 0; n < 100; n++) await pacing.body('only', signal).ofBytes(4 * megabyte)
  pacing.seen('other')
  for (let n = 0; n < 100; n++) await pacing.body('only', signal).ofBytes(pacedBytes - 1)
})

test('a large body that would wait for more than five seconds is refused', async () => {
  const clock = fakeClock()
  const pacing = new Pacing(clock)
  pacing.seen('good')
  pacing.seen('bad')
  // 800 ms each: the eighth would wait 5.6 s.
  const turns = Array.from({ length: 40 }, () => pacing.body('bad', signal).ofBytes(4 * megabyte))
  const refused = turns
    .slice(7)
    .map((turn) => expect(turn).rejects.toMatchObject({ code: 'overloaded' }))
  await Promise.all(refused)
  await clock.advance(4_800)
  await Promise.all(turns.slice(0, 7))
})

test('a body of many fields waits as long as a large one, and not for its own bytes', async () => {
  const clock = fakeClock()
  const pacing = new Pacing(clock)
  pacing.seen('good')
  pacing.seen('bad')
  const first = pacing.body('bad', signal)
  await first.ofBytes(megabyte)
  await first.ofTokens(100_000) // counts for 12.2 MiB: the next body waits for 2.4 s
  let entered = false
  const second = pacing
    .body('bad', signal)
    .ofBytes(megabyte)
    .then(() => {
      entered = true
    })
  await clock.advance(2_441)
  expect(entered).toBe(false)
  await clock.advance(1)
  await second
})
