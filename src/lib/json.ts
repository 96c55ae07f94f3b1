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

/**
 * Returns what a value loses in JSON, as a sentence such as `state.seen is a Set`, or undefined. By default a Map and a Set count, because
 * JSON writes them as `{}`, and a value that contains itself. If `strict`, all values count that JSON drops, replaces or shows in part, such
 * as functions, NaN and class instances. A value with `toJSON`, such as a Date, counts as what that returns.
 */
export function lossIn(value: unknown, name: string, { strict = false } = {}): string | undefined {
  try {
    const loss = lossAt(value, strict, [])
    return loss && `${name}${loss.path} ${loss.reason}`
  } catch {
    return strict ? `${name} has a part that cannot be read` : undefined // serializing it throws too
  }
}

interface Loss {
  /** From the value to its lost part: `.items[0]`. */
  path: string
  reason: string
}

/** `above`: the objects that contain the value. */
function lossAt(value: unknown, strict: boolean, above: object[]): Loss | undefined {
  if (typeof value !== 'object' || value === null)
    return strict ? because(reasonOf(value)) : undefined
  if (above.includes(value)) return because('contains itself')
  if (above.length > deepest) return strict ? because('is nested too deeply') : undefined
  if (value instanceof Map) return because('is a Map')
  if (value instanceof Set) return because('is a Set')
  above.push(value)
  const { toJSON } = value as { toJSON?: unknown }
  const loss =
    typeof toJSON === 'function'
      ? lossAt(toJSON.call(value, ''), strict, above)
      : strict && !Array.isArray(value) && !isPlain(value)
        ? because(`is an instance of ${value.constructor?.name}`)
        : lossInside(value, strict, above)
  above.pop()
  return loss
}

function lossInside(value: object, strict: boolean, above: object[]): Loss | undefined {
  const isList = Array.isArray(value)
  for (const key of Object.keys(value)) {
    const part: unknown = Reflect.get(value, key)
    if (part === undefined && !isList) continue
    const loss = lossAt(part, strict, above)
    if (loss) return { ...loss, path: `${isList ? `[${key}]` : `.${key}`}${loss.path}` }
  }
  return undefined
}

const because = (reason: string | undefined): Loss | undefined =>
  reason === undefined ? undefined : { path: '', reason }

function reasonOf(value: unknown): string | undefined {
  if (typeof value === 'function') return 'is a function'
  if (typeof value === 'bigint') return 'is a BigInt'
  if (typeof value === 'symbol') return 'is a symbol'
  const isLost = value === undefined || (typeof value === 'number' && !Number.isFinite(value))
  return isLost ? `is ${value}` : undefined
}
