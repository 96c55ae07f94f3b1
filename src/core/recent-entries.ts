import { heapBytes } from '../lib/size.ts'
import type { Known } from './entries.ts'

/**
 * Entries kept for readers that follow closely, and their bytes. All readers share them; older entries are
 * read from the store, by each reader for itself.
 */
const recentLimit = 512
const recentBytes = 16_000_000
/** Bytes that an entry takes in memory besides its body, estimated. */
export const entryBytes = 512

/** The last entries of a thread, without a gap. */
export class RecentEntries {
  readonly #recent: { entry: Known; bytes: number }[] = []
  #bytes = 0

  /** Adds the entry that follows the last one. Returns the bytes that it takes in memory. */
  add(entry: Known): number {
    const bytes = entryBytes + heapBytes(entry.body)
    this.#recent.push({ entry, bytes })
    this.#bytes += bytes
    if (this.#recent.length > recentLimit || this.#bytes > recentBytes) this.#trim()
    return bytes
  }

  /** At most `limit` entries after `seq`, oldest first. Undefined if the first of them is not kept any more. */
  after(seq: number, limit: number): Known[] | undefined {
    const first = this.#recent[0]?.entry
    if (!first || first.seq > seq + 1) return undefined
    const from = seq + 1 - first.seq
    return this.#recent.slice(from, from + limit).map(({ entry }) => entry)
  }

  /** Leaves half of what may be kept, so that it is not done again for each entry. */
  #trim(): void {
    let gone = 0
    while (
      gone < this.#recent.length - 1 &&
      (this.#recent.length - gone > recentLimit / 2 || this.#bytes > recentBytes / 2)
    )
      this.#bytes -= this.#recent[gone++]!.bytes
    this.#recent.splice(0, gone)
  }
}
