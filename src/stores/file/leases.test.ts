import { expect, test } from 'vitest'
import { fakeClock } from '../../../test/support/clock.ts'
import { Leases } from './leases.ts'

test('has a fence for a million claims, then asks for a new epoch', () => {
  const leases = new Leases(fakeClock())
  leases.enter(7)
  let last = 0
  while (!leases.spent) last = leases.claim('t', 'me', 1000)!.fence
  leases.enter(8)
  expect(leases.spent).toBe(false)
  expect(leases.claim('t', 'me', 1000)!.fence).toBeGreaterThan(last)
})
