import type { Clock } from '../lib/clock.ts'
import type { Store } from './store.ts'
import type { Log } from './worker.ts'

/** Milliseconds between two looks at the store's clock, and by how much ours may differ from it. */
const lookEvery = 5_000
const close = 500

/**
 * A deadline is one for all servers, and their clocks differ. Where the store has a clock of its own, it is that
 * one which says what time it is: a server that is ahead must not end what people still have time for.
 */
export class StoreClock implements Clock {
  readonly #own: Clock
  #ahead = 0

  constructor(own: Clock) {
    this.#own = own
  }

  now = () => this.#own.now() - this.#ahead
  monotonic = () => this.#own.monotonic()
  sleep: Clock['sleep'] = (ms, signal) => this.#own.sleep(ms, signal)
  timer: Clock['timer'] = (ms, ring) => this.#own.timer(ms, ring)

  /** Resolves after the first look, and goes on looking until the signal fires. */
  async follow(time: NonNullable<Store['time']>, log: Log, signal: AbortSignal): Promise<void> {
    await this.#look(time, log)
    const goOn = async () => {
      for (;;) {
        await this.#own.sleep(lookEvery, signal)
        await this.#look(time, log)
      }
    }
    goOn().catch(() => {}) // it was told to stop
  }

  async #look(time: NonNullable<Store['time']>, log: Log): Promise<void> {
    const before = this.#own.now()
    const there = await time().catch(() => undefined) // it is away: what was known counts on
    if (there === undefined) return
    const after = this.#own.now()
    const ahead = Math.round((before + after) / 2 - there)
    const differs = Math.abs(ahead) > close + (after - before)
    if (differs && this.#ahead === 0)
      log.warn({ aheadMs: ahead }, "this server's clock is not the store's: the store's counts")
    this.#ahead = differs ? ahead : 0
  }
}
