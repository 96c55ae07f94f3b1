/** Texts by key, limited by their length in all. The one used longest ago goes first. */
export class ByteCache {
  readonly #texts = new Map<string, string>()
  readonly #limit: number
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Characters of all texts that are kept. */
  get size(): number {
    return this.#size
  }

  get(key: string): string | undefined {
    const text = this.#texts.get(key)
    if (text === undefined) return undefined
    this.#texts.delete(key)
    this.#texts.set(key, text)
    return text
  }

  /** Keeps the text, unless it is longer than all of them may be. */
  set(key: string, text: string): void {
    this.delete(key)
    if (text.length > this.#limit) return
    this.#texts.set(key, text)
    this.#size += text.length
    for (const oldest of this.#texts.keys()) {
      if (this.#size <= this.#limit) break
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    this.#size -= this.#texts.get(key)?.length ?? 0
    this.#texts.delete(key)
  }

  deleteAll(isGone: (key: string) => boolean): void {
    for (const key of this.#texts.keys()) if (isGone(key)) this.delete(key)
  }
}
