import type { Queue } from '../../core/store.ts'
import type { Clock } from '../../lib/clock.ts'

/** More threads than this are not remembered: the sweep over the store finds them again. */
const bound = 100_000

/** Doorbells and timers within the process: the queue of a single server. */
export function localQueue(clock: Clock): Queue {
  const rung = new Set<string>()
  const times = new Map<string, number>()
  let wake: (() => void) | undefined

  /** The next time is never after this; a scan finds it exactly. */
  let soonest = Number.POSITIVE_INFINITY

  /** Moves what is due to the doorbells; milliseconds until the next is. */
  function due(): number {
    const now = clock.now()
    if (soonest <= now) {
      soonest = Number.POSITIVE_INFINITY
      for (const [threadId, at] of times) {
        if (at > now) soonest = Math.min(soonest, at)
        else if (times.delete(threadId)) rung.add(threadId)
      }
    }
    return soonest - now
  }

  return {
    ring(threadId) {
      if (rung.size < bound) rung.add(threadId)
      wake?.()
    },
    ringAt(threadId, at) {
      const known = times.get(threadId)
      if (known !== undefined && known <= at) return
      if (times.size >= bound && known === undefined) return
      times.set(threadId, at)
      soonest = Math.min(soonest, at)
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
