import { type Clock, sleepBy, systemClock } from '../../src/lib/clock.ts'

/** The system's clock, with a hand on it: `advance` lets a while pass at once, for everyone who sleeps. */
export function warpClock(): Clock & { advance(ms: number): void } {
  let ahead = 0
  const sleepers = new Set<{ until: number; wake: () => void }>()
  const monotonic = () => systemClock.monotonic() + ahead
  const timer: Clock['timer'] = (ms, ring) => {
    const stop = () => {
      cancel()
      sleepers.delete(sleeper)
    }
    const wake = () => {
      stop()
      ring()
    }
    const sleeper = { until: monotonic() + ms, wake }
    const cancel = systemClock.timer(ms, wake)
    sleepers.add(sleeper)
    return stop
  }
  return {
    now: () => systemClock.now() + ahead,
    monotonic,
    sleep: sleepBy(timer),
    timer,
    advance(ms) {
      ahead += ms
      for (const sleeper of [...sleepers]) if (sleeper.until <= monotonic()) sleeper.wake()
    },
  }
}
