import { type Clock, systemClock } from '../../src/lib/clock.ts'

/** The system's clock, with a hand on it: `advance` lets a while pass at once, for everyone who sleeps. */
export function warpClock(): Clock & { advance(ms: number): void } {
  let ahead = 0
  const sleepers = new Set<{ until: number; wake: () => void }>()
  const monotonic = () => systemClock.monotonic() + ahead
  return {
    now: () => systemClock.now() + ahead,
    monotonic,
    async sleep(ms, signal) {
      const woken = new AbortController()
      const sleeper = { until: monotonic() + ms, wake: () => woken.abort() }
      sleepers.add(sleeper)
      const either = signal ? AbortSignal.any([signal, woken.signal]) : woken.signal
      try {
        await systemClock.sleep(ms, either).catch(() => signal?.throwIfAborted())
      } finally {
        sleepers.delete(sleeper)
      }
    },
    advance(ms) {
      ahead += ms
      for (const sleeper of [...sleepers]) if (sleeper.until <= monotonic()) sleeper.wake()
    },
  }
}
