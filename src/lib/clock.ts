/** Time as an argument, so that tests never sleep. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds that only ever grow, for leases. */
  monotonic(): number
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Rings after `ms`, unless what it gives is called before. Costs a fraction of a sleep that is ended. */
  timer(ms: number, ring: () => void): () => void
}

/** `sleep`, for a clock that has timers. */
export const sleepBy =
  (timer: Clock['timer']): Clock['sleep'] =>
  (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const stop = () => {
        cancel()
        reject(signal?.reason)
      }
      const cancel = timer(ms, () => {
        signal?.removeEventListener('abort', stop)
        resolve()
      })
      signal?.addEventListener('abort', stop, { once: true })
    })

const timer: Clock['timer'] = (ms, ring) => {
  const timeout = setTimeout(ring, Math.min(ms, 2 ** 31 - 1))
  return () => clearTimeout(timeout)
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: sleepBy(timer),
  timer,
}
