import { RuntimeError } from '../../core/errors.ts'
import type { Page } from '../../core/store.ts'

type Key = (number | string)[]
type Order = 'newest' | 'soonest' | 'latest'

/** One page in the order of the keys. The cursor is the last row's key, so new rows shift nothing. */
export function pageOf<Row>(
  rows: Row[],
  keyOf: (row: Row) => Key,
  order: Order,
  limit: number,
  cursor?: string,
): Page<Row> {
  const after = cursor === undefined ? undefined : decode(cursor, order)
  const compare = (a: Key, b: Key) => compareKeys(a, b, order)
  const sorted = rows
    .map((row) => ({ row, key: keyOf(row) }))
    .filter(({ key }) => after === undefined || compare(key, after) > 0)
    .sort((a, b) => compare(a.key, b.key))
  const page = sorted.slice(0, Math.max(0, limit))
  const last = page.at(-1)
  const next = last && sorted.length > page.length ? encode(last.key, order) : undefined
  return { rows: structuredClone(page.map(({ row }) => row)), ...(next && { next }) }
}

/** Newest first also means the greater id first among equals: ids sort by the time they were made. */
function compareKeys(a: Key, b: Key, order: Order): number {
  for (const [n, left] of a.entries()) {
    const right = b[n] as typeof left
    if (left === right) continue
    const sign = order !== 'soonest' && n > 0 ? -1 : 1
    return left < right ? -sign : sign
  }
  return 0
}

function encode(key: Key, order: string): string {
  return Buffer.from(JSON.stringify([order, ...key])).toString('base64url')
}

function decode(cursor: string, order: Order): Key {
  try {
    const [made, ...key] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Key
    const [first, ...rest] = key
    const shaped = made === order && rest.length === (order === 'newest' ? 1 : 2)
    if (shaped && Number.isFinite(first) && rest.every((part) => typeof part === 'string'))
      return key
  } catch {}
  throw new RuntimeError('invalid_cursor', undefined, { field: 'cursor' })
}
