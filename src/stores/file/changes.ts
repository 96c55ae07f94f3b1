import { newId } from '../../lib/ids.ts'

/** Which ask changed. */
export interface Changed {
  tenant: string
  threadId: string
  askId: string
}

/** Whoever is further behind reads the inbox anew. */
const most = 10_000

/** The asks that changed last, of this life of the store: places in it are good for readers who come back. */
export class Changes {
  readonly #life = newId('life')
  /** The number of the first that is kept. */
  #first = 0
  #kept: Changed[] = []

  get next(): string {
    return `${this.#life}.${this.#first + this.#kept.length}`
  }

  add(changed: Changed): void {
    this.#kept.push(changed)
    if (this.#kept.length < most * 2) return
    this.#first += most
    this.#kept = this.#kept.slice(most)
  }

  /** Undefined when it is not known, or not any more. */
  since(place: string): Changed[] | undefined {
    const [life, number = ''] = place.split('.')
    const from = Number(number) - this.#first
    if (life !== this.#life || !(from >= 0 && from <= this.#kept.length)) return undefined
    return this.#kept.slice(from)
  }
}
