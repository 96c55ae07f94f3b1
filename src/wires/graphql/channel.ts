/**
 * A list that grows while it is read. A field may be asked for under several names, so it may have
 * several readers; each gets every item. Readers come at the start: once it is sealed, items are
 * kept only until all readers have them, and without readers not at all.
 */
export class Channel<T> {
  #backlog: T[] | undefined = []
  readonly #readers = new Set<Reader<T>>()
  #ended = false

  push(item: T): void {
    this.#backlog?.push(item)
    for (const reader of this.#readers) reader.push(item)
  }

  end(): void {
    this.#ended = true
    for (const reader of this.#readers) reader.end()
  }

  /** No readers will come any more. */
  seal(): void {
    this.#backlog = undefined
  }

  read(): AsyncIterableIterator<T> {
    const reader = new Reader<T>(this.#backlog ?? [], () => this.#readers.delete(reader))
    this.#readers.add(reader)
    if (this.#ended) reader.end()
    return reader
  }
}

/** No generator: one that waits would not hear of `return()`. */
class Reader<T> implements AsyncIterableIterator<T> {
  readonly #items: T[]
  readonly #left: () => void
  #ended = false
  #waiting: ((result: IteratorResult<T>) => void) | undefined

  constructor(items: readonly T[], left: () => void) {
    this.#items = [...items]
    this.#left = left
  }

  push(item: T): void {
    if (!this.#give({ value: item })) this.#items.push(item)
  }

  end(): void {
    this.#ended = true
    this.#give({ done: true, value: undefined })
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#items.length > 0) return Promise.resolve({ value: this.#items.shift() as T })
    if (this.#ended) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  return(): Promise<IteratorResult<T>> {
    this.#left()
    this.#items.length = 0
    this.end()
    return this.next()
  }

  [Symbol.asyncIterator]() {
    return this
  }

  #give(result: IteratorResult<T>): boolean {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.(result)
    return waiting !== undefined
  }
}
