/** Levels that are followed: deeper values, and values that contain themselves, count as not JSON. */
const deepest = 100

/**
 * Whether JSON represents a value without loss. It does not represent a Set, a Map, a Date, a class instance, a
 * BigInt, NaN, -0, a getter or an array with holes. An `undefined` property counts as an absent one, unless `sent`,
 * the value that this one was parsed from, has the property.
 */
export function isJson(value: unknown, sent?: unknown, level = 0): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value !== 'object' || level > deepest) return false
  const isArray = Array.isArray(value)
  if (isArray ? Object.getPrototypeOf(value) !== Array.prototype : !isPlain(value)) return false
  const keys = Reflect.ownKeys(value)
  // Besides its items, an array has a `length`. Holes make it less, other properties more.
  if (isArray && keys.length !== value.length + 1) return false
  return keys.every((key) => {
    if (isArray && key === 'length') return true
    const { value: part, enumerable, get } = Object.getOwnPropertyDescriptor(value, key) ?? {}
    if (typeof key === 'symbol' || !enumerable || get) return false
    const from = ownPart(sent, key)
    if (part === undefined && !isArray) return from === undefined
    return isJson(part, from, level + 1)
  })
}

const ownPart = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined

export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
