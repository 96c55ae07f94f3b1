import type { Queue } from '../../core/store.ts'
import type { Clock } from '../../lib/clock.ts'

/** More threads than this are not remembered: the sweep over the store finds them again. */
const bound = 100_000

/** Doorbells and timers within the process: the queue of a single server. */
export function localQueue(clock: Clock): Queue {
  const rung = new Set<string>()
  /** When to ring by the wall clock, and by the monotonic clock in case the wall clock is set back. */
  const times = new Map<string, { at: number; by: number }>()
  let wake: (() => void) | undefined

  /** The next time is never after these; a scan finds it exactly. */
  let soonest = { at: Number.POSITIVE_INFINITY, by: Number.POSITIVE_INFINITY }
  const sooner = (one: typeof soonest, other: typeof soonest) => ({
    at: Math.min(one.at, other.at),
    by: Math.min(one.by, other.by),
  })

  /** Moves what is due to the doorbells; milliseconds until the next is. */
  function due(): number {
    const now = { at: clock.now(), by: clock.monotonic() }
    const isDue = ({ at, by }: typeof soonest) => at <= now.at || by <= now.by
    if (isDue(soonest)) {
      soonest = { at: Number.POSITIVE_INFINITY, by: Number.POSITIVE_INFINITY }
      for (const [threadId, time] of times) {
        if (!isDue(time)) soonest = sooner(soonest, time)
        else if (times.delete(threadId)) rung.add(threadId)
      }
    }
    return Math.min(soonest.at - now.at, soonest.by - now.by)
  }

  return {
    ring(threadId) {
      if (rung.size < bound) rung.add(threadId)
      wake?.()
    },
    ringAt(threadId, at) {
      const known = times.get(threadId)
      const time = { at, by: clock.monotonic() + Math.max(0, at - clock.now()) }
      if (known !== undefined && known.at <= at && known.by <= time.by) return
      if (times.size >= bound && known === undefined) return
      const next = known ? sooner(known, time) : time
      times.set(threadId, next)
      soonest = sooner(soonest, next)
      wake?.()
    },
    async serve(worker, signal) {
      const working = new Set<string>()
      const stop = () => wake?.()
      signal.addEventListener('abort', stop)
      while (!signal.aborted) {
        const pause = due()
        for (const threadId of rung) {
          if (working.has(threadId)) continue // it will be looked at again afterwards
          rung.delete(threadId)
          working.add(threadId)
          void worker(threadId)
            .catch(() => {}) // the worker logs; the sweep comes back to it
            .finally(() => {
              working.delete(threadId)
              if (rung.has(threadId)) wake?.()
            })
        }
        let rest = () => {}
        await new Promise<void>((resolve) => {
          wake = resolve
          if (signal.aborted) resolve()
          if (pause < Number.POSITIVE_INFINITY) rest = clock.timer(Math.max(1, pause), resolve)
        })
        rest()
        wake = undefined
      }
      signal.removeEventListener('abort', stop)
    },
  }
}
