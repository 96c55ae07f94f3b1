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
  return Array.isArray(value) ? isJsonArray(value, sent, level) : isJsonObject(value, sent, level)
}

function isJsonArray(value: unknown[], sent: unknown, level: number): boolean {
  if (Object.getPrototypeOf(value) !== Array.prototype) return false
  // Besides its items, an array has a `length`. Holes make it less, other properties more.
  if (Reflect.ownKeys(value).length !== value.length + 1) return false
  for (let at = 0; at < value.length; at++) {
    const item = Object.getOwnPropertyDescriptor(value, at)
    if (!item?.enumerable || item.get) return false
    if (!isJson(item.value, ownPart(sent, at), level + 1)) return false
  }
  return true
}

function isJsonObject(value: object, sent: unknown, level: number): boolean {
  if (!isPlain(value)) return false
  for (const key of Reflect.ownKeys(value)) {
    const field = Object.getOwnPropertyDescriptor(value, key)
    if (typeof key === 'symbol' || !field?.enumerable || field.get) return false
    const from = ownPart(sent, key)
    if (field.value === undefined ? from !== undefined : !isJson(field.value, from, level + 1))
      return false
  }
  return true
}

const ownPart = (value: unknown, key: string | number): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string | number, unknown>)[key]
    : undefined

export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
