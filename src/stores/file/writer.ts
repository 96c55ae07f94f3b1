import { isRuntimeError, RuntimeError } from '../../core/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Stage, Step } from './stage.ts'

interface Waiting {
  threadId: string | undefined
  bytes: number
  /** By the monotonic clock: what has not begun by then is refused. */
  until: number
  take(stage: Stage): Step<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

interface WriterOptions {
  stage(): Stage
  /** Makes the records durable, all of them or none. */
  write(records: readonly Buffer[]): Promise<void>
  /** Called between two batches, when everything before is durable and in the tables. */
  between(): Promise<void>
}

const mostWaiting = 10_000
const mostBytes = 64 << 20
/** Milliseconds that a change waits for its turn: less than core waits for a write. */
const patience = 4_000
/** Milliseconds between two looks at what waits. */
const expiryEvery = 250

/**
 * Group commit. Whoever comes while a batch is being synced waits for the next one, and one write
 * and one sync serve them all. Each is checked against the state that those before it will leave.
 */
export class Writer {
  readonly #options: WriterOptions
  #queue: Waiting[] = []
  #bytes = 0
  /** How much of a thread is in line or being written. */
  readonly #unsettled = new Map<string, number>()
  #running: Promise<void> | undefined
  #expiry: NodeJS.Timeout | undefined
  #stopped: RuntimeError | undefined

  constructor(options: WriterOptions) {
    this.#options = options
  }

  submit<T>(
    take: (stage: Stage) => Step<T>,
    { threadId, bytes = 0 }: { threadId?: string; bytes?: number } = {},
  ): Promise<T> {
    if (this.#stopped) return Promise.reject(this.#stopped)
    if (this.#queue.length >= mostWaiting || this.#bytes > mostBytes)
      return Promise.reject(new RuntimeError('overloaded', undefined, { retryAfter: 1 }))
    return new Promise<T>((resolve, reject) => {
      const told = { resolve: resolve as (value: unknown) => void, reject }
      const until = systemClock.monotonic() + patience
      this.#queue.push({ threadId, bytes, until, take, ...told })
      this.#bytes += bytes
      this.#expiry ??= setInterval(() => this.#expire(), expiryEvery).unref()
      if (threadId !== undefined)
        this.#unsettled.set(threadId, (this.#unsettled.get(threadId) ?? 0) + 1)
      this.#running ??= this.#run()
    })
  }

  /** In line with what is written of the thread: at once where nothing is. */
  async after<T>(threadId: string, work: () => T): Promise<T> {
    if (this.#stopped) throw this.#stopped
    if (!this.#unsettled.has(threadId)) return work()
    return await this.submit(() => {
      const result = work()
      return { apply: () => result }
    })
  }

  /** Calls `between` soon, though nobody may be writing. */
  nudge(): void {
    this.submit(() => ({ apply() {} })).catch(() => {}) // stopped, or busy enough
  }

  /** Refuses everything from here on; what was accepted before still happens. */
  stop(error: RuntimeError): void {
    this.#stopped ??= error
  }

  /** Returns when nothing is waiting any more. */
  async drained(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #run(): Promise<void> {
    await null // let everyone of this turn of the event loop come along
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      this.#bytes = 0
      try {
        await this.#commit(batch)
        await this.#options.between()
      } catch (error) {
        // A mistake of ours. Memory and disk may now differ, and a restart makes them agree again.
        this.stop(unavailable(error))
        const unknown = new RuntimeError('outcome_unknown', undefined, { cause: error })
        for (const { reject } of batch) reject(unknown)
      }
    }
    clearInterval(this.#expiry)
    this.#expiry = undefined
    this.#running = undefined
  }

  /** Refuses changes that waited too long behind a slow write: nothing of them is written later. */
  #expire(): void {
    const now = systemClock.monotonic()
    const late = this.#queue.filter(({ until }) => until <= now)
    if (late.length === 0) return
    this.#queue = this.#queue.filter(({ until }) => until > now)
    for (const { bytes } of late) this.#bytes -= bytes
    this.#settle(late)
    for (const { reject } of late) reject(unavailable(new Error('The disk is too slow')))
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const stage = this.#options.stage()
    const steps = batch.map((waiting) => {
      try {
        return waiting.take(stage)
      } catch (error) {
        return { error }
      }
    })
    const records = steps.flatMap((step) => ('record' in step ? (step.record ?? []) : []))
    try {
      if (records.length > 0) await this.#options.write(records)
    } catch (cause) {
      // Also those that were refused: they were refused because of what has now not happened.
      const refused = this.#stopped ?? unavailable(cause)
      const error = isRuntimeError(cause, 'outcome_unknown') ? cause : refused
      this.#settle(batch)
      for (const { reject } of batch) reject(error)
      return
    }
    // All of them first: whoever is told of one must not see a half of the batch.
    const results = steps.map((step) => ('apply' in step ? step.apply() : undefined))
    this.#settle(batch)
    for (const [n, { resolve, reject }] of batch.entries()) {
      const step = steps[n]!
      if ('error' in step) reject(step.error)
      else resolve(results[n])
    }
  }

  #settle(batch: readonly Waiting[]): void {
    for (const { threadId } of batch) {
      if (threadId === undefined) continue
      const left = this.#unsettled.get(threadId)! - 1
      if (left > 0) this.#unsettled.set(threadId, left)
      else this.#unsettled.delete(threadId)
    }
  }
}

export function unavailable(cause: unknown): RuntimeError {
  return new RuntimeError('store_unavailable', undefined, { cause, retryAfter: 1 })
}
