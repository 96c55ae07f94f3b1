import type { Clock } from '../../lib/clock.ts'

interface Lease {
  holder: string
  fence: number
  /** By the monotonic clock, so that a corrected wall clock takes nobody's lease. */
  until: number
}

const fencesPerEpoch = 2 ** 20

/**
 * Threads whose newest fence is remembered. A driver whose lease lapsed may finish as long as its fence is
 * the newest; the store refuses a driver whose fence it has forgotten.
 */
export const mostFences = 10_000

/**
 * Leases live in memory: they cannot outlive the process, and the directory's lock proves that an
 * earlier process is gone. Only the epoch is on disk; it makes every fence greater than all before.
 */
export class Leases {
  readonly #clock: Clock
  readonly #leases = new Map<string, Lease>()
  readonly #newest = new Map<string, number>()
  #epoch = 0
  #given = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get epoch(): number {
    return this.#epoch
  }

  /** No fence is left in this epoch: a new one must be durable before the next claim. */
  get spent(): boolean {
    return this.#given >= fencesPerEpoch - 1
  }

  /** The epoch whose next fence is new and greater than this one. */
  epochAfter(fence: number): number {
    const next = this.spent ? this.#epoch + 1 : this.#epoch
    return Math.max(next, Math.floor(fence / fencesPerEpoch) + 1)
  }

  enter(epoch: number): void {
    this.#epoch = epoch
    this.#given = 0
  }

  claim(threadId: string, holder: string, ttl: number, force = false) {
    const theirs = this.live(threadId) && this.#leases.get(threadId)?.holder !== holder
    if (theirs && !force) return undefined
    const fence = this.#epoch * fencesPerEpoch + ++this.#given
    this.#leases.set(threadId, { holder, fence, until: this.#clock.monotonic() + ttl })
    this.#newest.delete(threadId) // the last claimed is the last to go
    this.#newest.set(threadId, fence)
    this.#shrink()
    return { fence }
  }

  renew(holder: string, ttl: number): Set<number> {
    const fences = new Set<number>()
    for (const lease of this.#leases.values()) {
      if (lease.holder !== holder) continue
      lease.until = this.#clock.monotonic() + ttl
      fences.add(lease.fence)
    }
    return fences
  }

  release(threadId: string, fence: number): void {
    if (this.#leases.get(threadId)?.fence === fence) this.#leases.delete(threadId)
  }

  forget(threadId: string): void {
    this.#leases.delete(threadId)
    this.#newest.delete(threadId)
  }

  /** Threads whose newest fence is known. */
  get size(): number {
    return this.#newest.size
  }

  /** Forgets the fences that were claimed longest ago, except those of live leases. */
  #shrink(): void {
    if (this.#newest.size <= mostFences) return
    const target = mostFences * 0.9
    for (const threadId of this.#newest.keys()) {
      if (this.#newest.size <= target) break
      if (!this.live(threadId)) this.forget(threadId)
    }
  }

  newest(threadId: string): number | undefined {
    return this.#newest.get(threadId)
  }

  live(threadId: string): boolean {
    return this.remaining(threadId) > 0
  }

  /** Milliseconds until the thread's lease lapses. */
  remaining(threadId: string): number {
    const lease = this.#leases.get(threadId)
    return lease ? Math.max(0, Math.ceil(lease.until - this.#clock.monotonic())) : 0
  }
}
