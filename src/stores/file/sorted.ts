import { RuntimeError } from '../../core/errors.ts'
import type { Page } from '../../core/store.ts'

export type Key = readonly (number | string)[]

export interface Order<Row> {
  /** Part of the cursor, so that one list's cursor is not taken for another's. */
  name: string
  key(row: Row): Key
  compare(a: Key, b: Key): number
  copy(row: Row): Row
}

/**
 * Rows in order. Changes are only noted; the next page merges them in one pass, so writing costs
 * nothing with the length of the list and listing never sorts more than what changed.
 */
export class SortedRows<Row> {
  readonly #order: Order<Row>
  #rows: { id: string; key: Key; row: Row }[] = []
  #changed = new Map<string, Row | undefined>()

  constructor(order: Order<Row>) {
    this.#order = order
  }

  set(id: string, row: Row | undefined): void {
    this.#changed.set(id, row)
  }

  page(limit: number, cursor: string | undefined, wanted: (row: Row) => boolean): Page<Row> {
    this.#merge()
    const { copy, name } = this.#order
    const rows: Row[] = []
    let last: Key | undefined
    for (let n = cursor === undefined ? 0 : this.#after(cursor); n < this.#rows.length; n++) {
      const { key, row } = this.#rows[n]!
      if (!wanted(row)) continue
      if (rows.length >= limit) return last ? { rows, next: encode(name, last) } : { rows }
      rows.push(copy(row))
      last = key
    }
    return { rows }
  }

  #merge(): void {
    if (this.#changed.size === 0) return
    const { key, compare } = this.#order
    const changed = this.#changed
    this.#changed = new Map()
    const fresh = []
    for (const [id, row] of changed) if (row !== undefined) fresh.push({ id, key: key(row), row })
    fresh.sort((a, b) => compare(a.key, b.key))
    const merged = []
    let n = 0
    for (const old of this.#rows) {
      if (changed.has(old.id)) continue
      while (n < fresh.length && compare(fresh[n]!.key, old.key) < 0) merged.push(fresh[n++]!)
      merged.push(old)
    }
    while (n < fresh.length) merged.push(fresh[n++]!)
    this.#rows = merged
  }

  /** Where the rows after the cursor begin; its own row may be gone. */
  #after(cursor: string): number {
    const { name, compare } = this.#order
    const key = decode(name, cursor)
    let low = 0
    let high = this.#rows.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (compare(this.#rows[middle]!.key, key) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function encode(name: string, key: Key): string {
  return Buffer.from(JSON.stringify([name, ...key])).toString('base64url')
}

export function decode(name: string, cursor: string): Key {
  try {
    const [made, first, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const strings = rest.length > 0 && rest.every((part: unknown) => typeof part === 'string')
    if (made === name && Number.isFinite(first) && strings) return [first, ...rest]
  } catch {}
  throw new RuntimeError('invalid_cursor', undefined, { field: 'cursor' })
}
