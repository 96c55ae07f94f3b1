import { RuntimeError } from '../core/errors.ts'
import type { Clock } from '../lib/clock.ts'

/** Bytes of a body from which on it is paced: smaller ones cost no more than the run that they start. */
export const pacedBytes = 64 * 1024
/**
 * Milliseconds between two bodies of one caller, for each byte of the first. The most expensive bodies, those with
 * images, take about 18 ms of CPU time per MiB, so that one caller's large bodies take a tenth of a core.
 */
const msPerByte = 200 / (1024 * 1024)
/** Bytes that a field, item or bracket of JSON counts for: a body of 8,000 tool calls takes 2.5 µs of CPU time for each. */
const bytesPerToken = 128
/** Milliseconds for which a caller counts as active after a request. */
const activeFor = 2_000
/** Milliseconds that a body waits at most; beyond that it is refused. Waiting bodies of one caller take 25 MiB and one body at most. */
const maxWait = 5_000
/** Callers whose next turn is remembered. */
const maxCallers = 10_000

/**
 * Spaces out the large bodies of one caller while other callers are active, so that parsing them does not delay
 * the others. A caller that is alone is never delayed.
 */
export class Pacing {
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** By caller: when its next large body may be read. */
  readonly #next = new Map<string, number>()
  /** The last two callers, and when each made its last request. */
  #last = { caller: '', at: Number.NEGATIVE_INFINITY }
  #other = { caller: '', at: Number.NEGATIVE_INFINITY }

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.#clock = clock
  }

  /** Notes a request of this caller. */
  seen(caller: string): void {
    if (this.#last.caller !== caller) this.#other = this.#last
    this.#last = { caller, at: this.#clock.monotonic() }
  }

  /**
   * The turns of one body: of its bytes before it is decoded, and of its fields and items before it is parsed, if they cost more. Each
   * resolves when the work may be done, and rejects with `overloaded` if that would take too long.
   */
  body(caller: string, signal: AbortSignal) {
    let bytes = 0
    let end: number | undefined
    return {
      ofBytes: async (count: number): Promise<void> => {
        bytes = count
        end = await this.#turn(caller, bytes, signal)
      },
      ofTokens: async (count: number): Promise<void> => {
        const more = count * bytesPerToken - bytes
        if (more > 0) await this.#turn(caller, more, signal, end)
      },
    }
  }

  /** Returns when the caller's next turn may begin. The turn that ends at `own` is of the same body: it is not waited for. */
  async #turn(caller: string, bytes: number, signal: AbortSignal, own?: number) {
    if (bytes < pacedBytes) return undefined
    const now = this.#clock.monotonic()
    const other = this.#last.caller === caller ? this.#other : this.#last
    const free = this.#next.get(caller)
    const isWaiting = now - other.at < activeFor && free !== undefined && free !== own
    const start = isWaiting ? Math.max(now, free) : now
    if (start - now > maxWait)
      throw new RuntimeError('overloaded', 'Too many large requests at once. Send fewer.', {
        retryAfter: Math.ceil((start - now) / 1_000),
      })
    const end = (free === own ? (own ?? start) : start) + bytes * msPerByte
    this.#next.delete(caller)
    this.#next.set(caller, end)
    for (const oldest of this.#next.keys()) {
      if (this.#next.size <= maxCallers) break
      this.#next.delete(oldest)
    }
    if (start > now) await this.#clock.sleep(start - now, signal)
    return end
  }
}
