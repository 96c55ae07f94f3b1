import { type Clock, sleepBy } from '../../src/lib/clock.ts'

/** A clock that stands still until it is moved. */
export function fakeClock(start = 1_000_000): Clock & { advance(ms: number): Promise<void> } {
  let now = start
  const sleepers = new Set<{ at: number; wake: () => void }>()
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
  const timer: Clock['timer'] = (ms, ring) => {
    const sleeper = { at: now + ms, wake: ring }
    sleepers.add(sleeper)
    return () => sleepers.delete(sleeper)
  }
  return {
    now: () => now,
    monotonic: () => now,
    sleep: sleepBy(timer),
    timer,
    /** Moves on, waking sleepers in the order of their times, with a turn of the loop between. */
    async advance(ms) {
      const end = now + ms
      await turn()
      for (;;) {
        const due = [...sleepers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!due) break
        sleepers.delete(due)
        now = Math.max(now, due.at)
        due.wake()
        await turn()
      }
      now = end
      await turn()
    },
  }
}
