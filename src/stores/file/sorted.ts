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

interface Placed<Row> {
  id: string
  key: Key
  row: Row
}

/** Changes up to this many are put in their places; more are merged in one pass. */
const few = 16

/**
 * Rows in order. Changes are only noted; the next page puts them in their places, so writing costs
 * nothing with the length of the list and listing never sorts more than what changed.
 */
export class SortedRows<Row> {
  readonly #order: Order<Row>
  #rows: Placed<Row>[] = []
  #changed = new Map<string, Row | undefined>()
  /** Where each row stands, by its key. */
  readonly #keys = new Map<string, Key>()

  constructor(order: Order<Row>) {
    this.#order = order
  }

  set(id: string, row: Row | undefined): void {
    if (row !== undefined || this.#keys.has(id)) this.#changed.set(id, row)
    else this.#changed.delete(id)
  }

  /** Rows in the list, and changes that are not in their places yet. */
  get size(): number {
    return this.#rows.length + this.#changed.size
  }

  get isEmpty(): boolean {
    this.#settle()
    return this.#rows.length === 0
  }

  page(limit: number, cursor: string | undefined, wanted: (row: Row) => boolean): Page<Row> {
    const { name, key } = this.#order
    const after = cursor === undefined ? undefined : decode(name, cursor)
    const rows = this.first(limit + 1, after, wanted)
    const last = rows[limit - 1]
    if (rows.length <= limit || last === undefined) return { rows: rows.slice(0, limit) }
    return { rows: rows.slice(0, limit), next: encode(name, key(last)) }
  }

  /** The first rows after a key. */
  first(limit: number, after: Key | undefined, wanted: (row: Row) => boolean): Row[] {
    this.#settle()
    const rows: Row[] = []
    for (let n = after === undefined ? 0 : this.#after(after); n < this.#rows.length; n++) {
      if (rows.length >= limit) break
      const { row } = this.#rows[n]!
      if (wanted(row)) rows.push(this.#order.copy(row))
    }
    return rows
  }

  #settle(): void {
    const changed = this.#changed
    if (changed.size === 0) return
    this.#changed = new Map()
    if (changed.size > few) this.#merge(changed)
    else for (const [id, row] of changed) this.#place(id, row)
  }

  #place(id: string, row: Row | undefined): void {
    const old = this.#keys.get(id)
    if (old) this.#rows.splice(this.#after(old) - 1, 1)
    this.#keys.delete(id)
    if (row === undefined) return
    const key = this.#order.key(row)
    this.#rows.splice(this.#after(key), 0, { id, key, row })
    this.#keys.set(id, key)
  }

  #merge(changed: ReadonlyMap<string, Row | undefined>): void {
    const { key, compare } = this.#order
    const fresh: Placed<Row>[] = []
    for (const [id, row] of changed)
      if (row === undefined) this.#keys.delete(id)
      else {
        fresh.push({ id, key: key(row), row })
        this.#keys.set(id, fresh.at(-1)!.key)
      }
    fresh.sort((a, b) => compare(a.key, b.key))
    const merged: Placed<Row>[] = []
    let n = 0
    for (const old of this.#rows) {
      if (changed.has(old.id)) continue
      while (n < fresh.length && compare(fresh[n]!.key, old.key) < 0) merged.push(fresh[n++]!)
      merged.push(old)
    }
    while (n < fresh.length) merged.push(fresh[n++]!)
    this.#rows = merged
  }

  /** Where the rows after the key begin; its own row may be gone. */
  #after(key: Key): number {
    const { compare } = this.#order
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

export function compareKeys(a: Key, b: Key): number {
  for (let n = 0; n < a.length; n++) {
    if (a[n] === b[n]) continue
    return a[n]! < b[n]! ? -1 : 1
  }
  return 0
}

export function encode(name: string, key: Key): string {
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
