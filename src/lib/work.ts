import { setImmediate as turn } from 'node:timers/promises'

/** Several things that are being done at once. */
export class Work {
  readonly #running = new Set<Promise<unknown>>()

  /** The same promise, known to be under way until it settles. */
  add<T>(promise: Promise<T>): Promise<T> {
    this.#running.add(promise)
    const done = () => this.#running.delete(promise)
    promise.then(done, done)
    return promise
  }

  /** Resolves when nothing is under way, nor begun by what just ended. */
  async over(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#running)
      await turn()
    }
  }
}
