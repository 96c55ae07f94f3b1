/** Characters of the shortest text that is removed. Shorter ones occur inside ordinary words. */
const minLength = 6
const filterBits = 18
/** Characters that one redaction compares. Beyond it the rest of the text is redacted, so that no text blocks the server. */
const maxCompared = 4_000_000

/**
 * Removes known texts from other texts, also a known text that the end of the other text cuts off. The cost grows with the
 * known texts plus the text, and not with their product: one pass looks at each position for the longest known text that
 * begins there.
 */
export class KnownTexts {
  /** Sorted by UTF-16 units. A known text that the rest of the input starts with sorts before that rest, or equals it. */
  readonly #sorted: readonly string[]
  /** By known text: the index of the longest other known text that is a prefix of it, or -1. */
  readonly #prefix: Int32Array
  /** Bloom filter of the first `minLength` characters of all known texts. Rules out nearly every position. */
  readonly #starts = new Uint8Array(2 ** (filterBits - 3))

  constructor(known: readonly string[]) {
    this.#sorted = [...new Set(known)].filter(({ length }) => length >= minLength).sort()
    this.#prefix = new Int32Array(this.#sorted.length)
    for (const [i, text] of this.#sorted.entries()) {
      let before = i - 1
      while (before >= 0 && !text.startsWith(this.#sorted[before]!)) before = this.#prefix[before]!
      this.#prefix[i] = before
      let hash = 0
      for (let at = 0; at < minLength; at++) hash = nextHash(hash, text.charCodeAt(at))
      const place = placeOf(hash)
      this.#starts[place >>> 3]! |= 1 << (place & 7)
    }
  }

  /** Returns the text with `mark` in place of each known text. Texts that overlap get one mark. */
  redact(text: string, mark: string): string {
    if (this.#sorted.length === 0) return text
    const budget = { left: maxCompared }
    const parts: string[] = []
    let open = 0 // the text from here on is not in `parts`
    let from = -1
    let to = 0
    let hash = 0
    for (let end = 0; end < text.length; end++) {
      const leaving = end < minLength ? 0 : text.charCodeAt(end - minLength)
      hash = (nextHash(hash, text.charCodeAt(end)) - Math.imul(leaving, leavingFactor)) | 0
      const at = end - minLength + 1
      if (at < 0 || !this.#mayStart(hash)) continue
      const length = budget.left > 0 ? this.#lengthAt(text, at, budget) : text.length - at
      if (length === 0) continue
      if (from >= 0 && at < to) to = Math.max(to, at + length)
      else {
        if (from >= 0) parts.push(text.slice(open, from), mark)
        open = from < 0 ? 0 : to
        from = at
        to = at + length
      }
    }
    if (from < 0) return text
    return [...parts, text.slice(open, from), mark, text.slice(to)].join('')
  }

  #mayStart(hash: number): boolean {
    const place = placeOf(hash)
    return (this.#starts[place >>> 3]! & (1 << (place & 7))) !== 0
  }

  /** The length of the longest known text that begins at a position and is complete or cut off by the end of the text, or 0. */
  #lengthAt(text: string, at: number, budget: { left: number }): number {
    let low = 0
    let high = this.#sorted.length
    // Lengths of the common prefixes of the input with the known texts just below and just above the range. All known texts in the range share the shorter one.
    let sharedLow = 0
    let sharedHigh = 0
    while (low < high) {
      const middle = (low + high) >>> 1
      const known = this.#sorted[middle]!
      const begun = Math.min(sharedLow, sharedHigh)
      let shared = begun
      while (
        shared < known.length &&
        at + shared < text.length &&
        known.charCodeAt(shared) === text.charCodeAt(at + shared)
      )
        shared++
      budget.left -= shared - begun + 1
      const isBefore =
        shared === known.length ||
        (at + shared < text.length && known.charCodeAt(shared) < text.charCodeAt(at + shared))
      if (isBefore) {
        low = middle + 1
        sharedLow = shared
      } else {
        high = middle
        sharedHigh = shared
      }
    }
    if (sharedHigh === text.length - at) return sharedHigh
    let found = low - 1
    for (; found >= 0 && this.#sorted[found]!.length > sharedLow; found = this.#prefix[found]!)
      budget.left--
    return found < 0 ? 0 : this.#sorted[found]!.length
  }
}

const factor = 0x01000193
/** Rolling hash: factor of the character that leaves the window of `minLength` characters. */
const leavingFactor = Array.from({ length: minLength }).reduce<number>(
  (product) => Math.imul(product, factor),
  1,
)
const nextHash = (hash: number, unit: number): number => (Math.imul(hash, factor) + unit) | 0
const placeOf = (hash: number): number => Math.imul(hash, 0x9e3779b1) >>> (32 - filterBits)
