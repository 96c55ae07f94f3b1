import { type Clock, systemClock } from '../../src/lib/clock.ts'

/** A clock on the wall that somebody sets: what sleeps, and what measures, does not notice. */
export function wallClock(ahead = 0): Clock & { move(ms: number): void } {
  let by = ahead
  return {
    ...systemClock,
    now: () => systemClock.now() + by,
    move(ms) {
      by += ms
    },
  }
}
