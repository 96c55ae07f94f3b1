import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { heartbeat, LegStop } from './leg.ts'

describe('a lease', () => {
  test('holds while the heartbeat renews it', async () => {
    const clock = fakeClock()
    let renewals = 0
    const renew = async () => {
      renewals++
      return new Set([7])
    }
    const beat = heartbeat(renew, 9_000, clock)
    const lease = beat.lease(7, clock.monotonic())
    await clock.advance(60_000)
    await lease.hold()
    expect(renewals).toBeGreaterThanOrEqual(20)
    beat.stop()
  })

  test('is renewed before an effect by a process that slept, and refused if it was taken (I4)', async () => {
    let held = new Set([7])
    // No heartbeat ran meanwhile: time jumps without the timers of a stopped process.
    let now = 0
    const frozen = { ...fakeClock(), now: () => now, monotonic: () => now }
    const beat = heartbeat(async () => held, 9_000, frozen)
    const lease = beat.lease(7, frozen.monotonic())
    now += 8_000
    await lease.hold()
    now += 20_000
    held = new Set()
    await expect(lease.hold()).rejects.toThrow(LegStop)
    beat.stop()
  })

  test('does not hold when the store cannot be asked', async () => {
    let now = 0
    const frozen = { ...fakeClock(), now: () => now, monotonic: () => now }
    const beat = heartbeat(() => Promise.reject(new Error('away')), 9_000, frozen)
    const lease = beat.lease(7, frozen.monotonic())
    await lease.hold()
    now += 5_000
    await expect(lease.hold()).rejects.toThrow('away')
    beat.stop()
  })
})
