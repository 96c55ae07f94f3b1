import type { Clock } from '../lib/clock.ts'

/** The reason of a signal that fired because a time was used up. Its name is that of any abort. */
export class TimeUp extends DOMException {
  constructor() {
    super('This operation was aborted', 'AbortError')
  }
}

export interface Countdown {
  /** Fires with `TimeUp` when the time is used up. */
  readonly signal: AbortSignal
  /** Stops the time until what it gives is called. Several may hold it at once. */
  hold(): () => void
}

/** Milliseconds that run down while nobody holds them; they end with `over`. */
export function countdown(ms: number, clock: Clock, over: AbortSignal): Countdown {
  const late = new AbortController()
  let left = ms
  let holders = 0
  let stop = run()

  /** Gives what stops it and takes the time that has passed. */
  function run(): () => void {
    const stopped = new AbortController()
    const since = clock.monotonic()
    clock.sleep(left, AbortSignal.any([over, stopped.signal])).then(
      () => late.abort(new TimeUp()),
      () => {},
    )
    return () => {
      stopped.abort('held')
      left = Math.max(0, left - (clock.monotonic() - since))
    }
  }

  return {
    signal: late.signal,
    hold() {
      if (holders++ === 0) stop()
      let held = true
      return () => {
        if (!held) return
        held = false
        if (--holders === 0 && !over.aborted) stop = run()
      }
    },
  }
}
