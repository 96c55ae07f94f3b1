import { RuntimeError } from './errors.ts'
import type { Thread } from './thread.ts'

/** Threads that one request keeps in memory. */
export interface ThreadUse {
  /**
   * Returns the thread that `load` returns, and counts it until `end`. `known` is the thread if it is in memory; others are
   * read a few at a time. Throws `overloaded` if no request uses the thread yet and those of its owner take too much memory.
   */
  open(known: Thread | undefined, load: () => Promise<Thread>): Promise<Thread>
  /** Throws `overloaded` if the owner's threads take too much memory for another. */
  admit(): void
  /** Counts a thread that the request has made. */
  add(thread: Thread): void
  /** The request needs its threads no longer. */
  end(): void
}

interface Used {
  owner: string
  requests: number
  bytes: number
}

/** Threads of one owner that are read at the same time: what they take is known only afterwards. */
const loadsAtOnce = 2
/** Requests of one owner that wait to read a thread. */
const maxWaiting = 1_000
/** Beyond this multiple of the limit of one owner, all owners together: each owner then gets an equal part of it. */
const shares = 1.5

/**
 * Limits the memory of threads that requests in progress use, such as open streams and responses that are read slowly.
 * The cache cannot remove these threads. One owner may use `maxBytes`, and one thread more.
 */
export class ThreadUses {
  readonly #maxBytes: number
  readonly #used = new Map<Thread, Used>()
  readonly #owners = new Map<string, number>()
  readonly #loads = new Map<string, { running: number; waiting: (() => void)[] }>()
  #bytes = 0
  #checks = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of all threads that are used. */
  get bytes(): number {
    return this.#bytes
  }

  request(owner: string): ThreadUse {
    const own = new Set<Thread>()
    let ended = false
    const add = (thread: Thread) => {
      if (ended || own.has(thread)) return
      own.add(thread)
      this.#add(owner, thread)
    }
    const admit = () => {
      if (!ended) this.#admit(owner)
    }
    return {
      admit,
      add,
      open: async (known, load) => {
        if (ended) return await load()
        const opened = async () => {
          if (!(known && this.#used.has(known))) admit()
          const thread = await load()
          add(thread)
          return thread
        }
        return await (known ? opened() : this.#inTurn(owner, opened))
      },
      end: () => {
        if (ended) return
        ended = true
        for (const thread of own) this.#remove(thread)
        own.clear()
      },
    }
  }

  #admit(owner: string): void {
    if (++this.#checks % 32 === 0) for (const thread of this.#used.keys()) this.#weigh(thread)
    const bytes = this.#owners.get(owner) ?? 0
    const pool = shares * this.#maxBytes
    const isOverPart = this.#bytes >= pool && bytes >= pool / this.#owners.size
    if (bytes >= this.#maxBytes || isOverPart) throw overloaded()
  }

  #add(owner: string, thread: Thread): void {
    const used = this.#used.get(thread) ?? { owner, requests: 0, bytes: 0 }
    used.requests++
    this.#used.set(thread, used)
    this.#weigh(thread)
  }

  #remove(thread: Thread): void {
    const used = this.#used.get(thread)!
    if (--used.requests > 0) return
    this.#used.delete(thread)
    this.#count(used.owner, -used.bytes)
  }

  /** A thread grows while it is used. */
  #weigh(thread: Thread): void {
    const used = this.#used.get(thread)!
    this.#count(used.owner, thread.bytes - used.bytes)
    used.bytes = thread.bytes
  }

  #count(owner: string, bytes: number): void {
    this.#bytes += bytes
    const left = (this.#owners.get(owner) ?? 0) + bytes
    if (left > 0) this.#owners.set(owner, left)
    else this.#owners.delete(owner)
  }

  async #inTurn<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const loads = this.#loads.get(owner) ?? { running: 0, waiting: [] }
    this.#loads.set(owner, loads)
    if (loads.waiting.length >= maxWaiting) throw overloaded()
    if (loads.running >= loadsAtOnce)
      await new Promise<void>((resolve) => loads.waiting.push(resolve))
    else loads.running++
    try {
      return await work()
    } finally {
      const next = loads.waiting.shift()
      if (next) next()
      else if (--loads.running === 0) this.#loads.delete(owner)
    }
  }
}

const overloaded = () =>
  new RuntimeError(
    'overloaded',
    'Your open streams and responses use too much memory. Close some of them, then try again.',
    { retryAfter: 5 },
  )
