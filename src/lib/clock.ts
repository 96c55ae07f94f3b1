/** Time as an argument, so that tests never sleep. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds that only ever grow, for leases. */
  monotonic(): number
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const stop = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        },
        Math.min(ms, 2 ** 31 - 1),
      )
      signal?.addEventListener('abort', stop, { once: true })
    }),
}
