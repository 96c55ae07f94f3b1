import type { Clock } from '../lib/clock.ts'

export interface Sweeping {
  clock: Clock
  log: { info(about: object, message: string): void }
  /** Milliseconds between two looks. */
  every: number
  /** Forgets what is over, and says how many that were. */
  sweep(now: number): Promise<{ evicted: number; kept: number }>
}

/** Looks again and again for what is over, and logs how much went. Gives how to stop it. */
export function sweeping({ clock, log, every, sweep }: Sweeping): () => void {
  const stopped = new AbortController()
  const run = async () => {
    for (;;) {
      await clock.sleep(every, stopped.signal)
      const { evicted, kept } = await sweep(clock.now())
      if (evicted > 0) log.info({ evicted, kept }, 'sessions evicted')
    }
  }
  run().catch(() => {}) // stopped
  return () => stopped.abort('closed')
}
