import { setImmediate as tick } from 'node:timers/promises'

/** Says that there is more to come, and nothing else. */
const signOfLife = { hasNext: true }

/**
 * How far the reader of a response is. GraphQL's executor takes whatever it can get and keeps it
 * until it is read; so what feeds it waits here for the reader.
 */
export class Delivery {
  readonly #reading = new AbortController()
  readonly #request: AbortSignal
  /** Something is read piece by piece: before that there is nobody to wait for. */
  #paced = false
  #released = false
  #left = false
  /** Answers the reader's question for the next part, if it has asked. */
  #answer: ((part: { value: object }) => void) | undefined
  #asked: (() => void) | undefined

  constructor(request: AbortSignal) {
    this.#request = request
    if (request.aborted) this.#leave()
    else request.addEventListener('abort', this.#leave, { once: true })
  }

  /** Fires when the reader leaves before all is there to be read. */
  get signal(): AbortSignal {
    return this.#reading.signal
  }

  /** All is there; what the reader does now is no news to the source. */
  release(): void {
    this.#released = true
    this.#request.removeEventListener('abort', this.#leave)
  }

  /** Resolves when the reader has all there is and asks for more, or has left. */
  async caughtUp(): Promise<void> {
    // Whatever can be made of what there is, is made within a tick.
    for (await tick(); this.#paced && !this.#left && !this.#answer; await tick()) {
      await new Promise<void>((resolve) => {
        this.#asked = resolve
      })
    }
  }

  /** Keeps the connection of a waiting reader from looking dead. */
  alive(): void {
    this.#answer?.({ value: signOfLife })
  }

  /** The same parts, for a reader whose pace is the pace of everything. */
  paced<T extends object>(
    parts: AsyncIterable<T>,
    shape: (part: T) => object,
  ): AsyncIterableIterator<object> {
    const iterator = parts[Symbol.asyncIterator]()
    let part: Promise<IteratorResult<object>> | undefined
    const read = async () => {
      const { done, value } = await iterator.next()
      return done ? { done, value } : { value: shape(value) }
    }
    this.#paced = true
    return {
      next: async () => {
        part ??= read()
        const given = await Promise.race([part, this.#ask()])
        this.#answer = undefined
        if (given.value !== signOfLife) part = undefined
        if (given.done) this.#leave()
        return given
      },
      return: async () => {
        this.#leave()
        await iterator.return?.()
        return { done: true, value: undefined }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  #ask(): Promise<IteratorResult<object>> {
    return new Promise((resolve) => {
      this.#answer = resolve
      this.#asked?.()
    })
  }

  readonly #leave = () => {
    this.#left = true
    this.#asked?.()
    if (!this.#released) this.#reading.abort()
  }
}
