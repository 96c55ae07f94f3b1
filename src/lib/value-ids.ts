/** Characters that take as long to read as one step. */
const charactersPerStep = 8

/**
 * Assigns ids to JSON values: equal values have equal ids, whatever the order of their fields. Each object is read once,
 * so that comparing values takes time in proportion to their size, also if they contain each other.
 */
export class ValueIds {
  readonly #take: (steps: number) => void
  readonly #known: ReadonlyMap<string, number> | undefined
  readonly #byText = new Map<string, number>()
  readonly #byObject = new Map<object, number>()
  #next: number
  /** By id: the list in which it was found last. */
  #foundIn = new Int32Array(64)
  #lists = 0

  /** `of` and `areDistinct` call `take` with their steps before each piece of work. Values in `known` keep their ids. */
  constructor(take: (steps: number) => void, known?: ValueIds) {
    this.#take = take
    this.#known = known ? known.#byText : undefined
    this.#next = known ? known.#next : 0
  }

  of(value: unknown): number {
    if (typeof value === 'string') {
      this.#take(4 + value.length / charactersPerStep)
      return this.#idOf(`s${value}`)
    }
    if (typeof value !== 'object' || value === null) {
      this.#take(4)
      // The letter prevents hash collisions: V8 hashes a string of digits to its number, which the client could choose.
      return this.#idOf(`${typeof value === 'number' ? 'n' : 'v'}${String(value)}`)
    }
    const known = this.#byObject.get(value)
    if (known !== undefined) return known
    const id = this.#idOf(Array.isArray(value) ? this.#textOfList(value) : this.#textOf(value))
    this.#byObject.set(value, id)
    return id
  }

  /** Whether no two items are equal. */
  areDistinct(items: readonly unknown[]): boolean {
    const list = ++this.#lists
    for (const item of items) {
      const id = this.of(item)
      if (id >= this.#foundIn.length) this.#grow(id)
      if (this.#foundIn[id] === list) return false
      this.#foundIn[id] = list
    }
    return true
  }

  #grow(id: number): void {
    const larger = new Int32Array(2 * id)
    larger.set(this.#foundIn)
    this.#foundIn = larger
  }

  #textOfList(items: readonly unknown[]): string {
    this.#take(2 + items.length)
    return `[${items.map((item) => this.of(item)).join()}`
  }

  #textOf(value: object): string {
    const names = Object.keys(value).sort()
    let text = '{'
    for (const name of names) {
      this.#take(5 + name.length / charactersPerStep)
      const part = (value as Record<string, unknown>)[name]
      if (part !== undefined) text += `${name.length}:${name}${this.of(part)},`
    }
    return text
  }

  #idOf(text: string): number {
    const known = this.#known?.get(text) ?? this.#byText.get(text)
    if (known !== undefined) return known
    this.#byText.set(text, this.#next)
    return this.#next++
  }
}
