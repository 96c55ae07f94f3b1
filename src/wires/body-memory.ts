import { RuntimeError } from '../core/errors.ts'

/** Bytes of bodies that the server holds at once for one caller. Two bodies of the largest size are always allowed. */
const minPerCaller = 64 * 1024 * 1024
/** Callers whose bodies may reach the limit at the same time. */
const shares = 4

/**
 * Limits the memory of request bodies that are being received or wait to be parsed. Without it, a client could hold
 * one large, unfinished body on each of many connections.
 */
export class BodyMemory {
  readonly #maxPerCaller: number
  readonly #byCaller = new Map<string, number>()
  #inAll = 0

  constructor(bodyLimit: number) {
    this.#maxPerCaller = Math.max(minPerCaller, 2 * bodyLimit)
  }

  /** Bytes that are held for all callers. */
  get bytes(): number {
    return this.#inAll
  }

  /** The account of one body. `grow` throws `overloaded` beyond a limit; `free` gives all of its bytes back. */
  body(caller: string): { grow(bytes: number): void; free(): void } {
    let held = 0
    const add = (bytes: number) => {
      held += bytes
      this.#inAll += bytes
      const left = (this.#byCaller.get(caller) ?? 0) + bytes
      if (left > 0) this.#byCaller.set(caller, left)
      else this.#byCaller.delete(caller)
    }
    return {
      grow: (bytes) => {
        const own = (this.#byCaller.get(caller) ?? 0) + bytes
        const inAll = this.#inAll + bytes
        if (own > this.#maxPerCaller || inAll > shares * this.#maxPerCaller) throw overloaded()
        add(bytes)
      },
      free: () => add(-held),
    }
  }
}

function overloaded(): RuntimeError {
  return new RuntimeError('overloaded', 'Too many large requests at once. Send fewer.', {
    retryAfter: 1,
  })
}
