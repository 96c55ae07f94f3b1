/** One operation of RFC 6902. */
export type Operation =
  | { op: 'add' | 'replace' | 'test'; path: string; value: unknown }
  | { op: 'remove'; path: string }
  | { op: 'move' | 'copy'; path: string; from: string }

/** Values that one comparison reads at most, and operations that one patch holds at most. */
const maxCompared = 100_000
const maxOperations = 1_000
/** Operations inside one array; with more, the array is replaced whole. */
const maxArrayOperations = 200
/** Levels that a comparison descends; deeper values are replaced whole. */
const maxDepth = 64
/** Levels below which two values count as different: the call stack has an end. */
const maxSameDepth = 1_000
/** Operations of a patch that is applied. */
const maxApplied = 10_000
/** Values that the copy operations of one patch duplicate at most. Without it, n copies make 2^n values. */
const maxCopied = 100_000

/**
 * The operations that turn one JSON value into another, in time linear in their size. Arrays are compared place by
 * place, and replaced whole if most of their places changed. Returns undefined if the values exceed `maxCompared`, the
 * patch exceeds `maxOperations`, or a path would name a prototype, which clients refuse: send the value whole then.
 */
export function createPatch(before: unknown, after: unknown): Operation[] | undefined {
  const patch = new Patch()
  try {
    patch.compare(before, after, '', 0)
  } catch (error) {
    if (error === noPatch) return undefined
    throw error
  }
  return patch.operations
}

/** Whether two values have the same JSON, whatever the order of their keys. Linear, and ends at the first difference. */
export function sameJson(a: unknown, b: unknown, depth = 0): boolean {
  const one = asJson(a)
  const other = asJson(b)
  if (one === other) return true
  if (!isContainer(one) || !isContainer(other) || depth > maxSameDepth) return false
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false
    return one.every((part, i) => sameJson(part ?? null, other[i] ?? null, depth + 1))
  }
  const names = namesOf(one)
  if (names.length !== namesOf(other).length) return false
  return names.every((name) => sameJson(one[name], own(other, name), depth + 1))
}

/**
 * The value after all operations, without changing the value itself. Throws an Error if an operation does not fit,
 * or if the patch exceeds `maxApplied` or `maxCopied`.
 */
export function applyPatch(value: unknown, operations: readonly Operation[]): unknown {
  if (operations.length > maxApplied) throw new Error('The patch has too many operations.')
  const target = new Target(value)
  for (const operation of operations) target.apply(operation)
  return target.value
}

type Container = Record<string, unknown> | unknown[]

const noPatch = new Error('There is no patch for this.')

class Patch {
  readonly operations: Operation[] = []
  #compared = 0

  compare(before: unknown, after: unknown, path: string, depth: number): void {
    if (++this.#compared > maxCompared) throw noPatch
    const old = asJson(before)
    const fresh = asJson(after)
    if (old === fresh) return
    const comparable = isContainer(old) && isContainer(fresh) && depth < maxDepth
    if (!comparable || Array.isArray(old) !== Array.isArray(fresh))
      this.#add({ op: 'replace', path, value: fresh })
    else if (Array.isArray(old)) this.#arrays(old, fresh as unknown[], path, depth)
    else this.#objects(old, fresh as Record<string, unknown>, path, depth)
  }

  #objects(
    old: Record<string, unknown>,
    fresh: Record<string, unknown>,
    path: string,
    depth: number,
  ): void {
    for (const name of namesOf(old))
      if (!Object.hasOwn(fresh, name) || fresh[name] === undefined)
        this.#add({ op: 'remove', path: `${path}/${escaped(name)}` })
    for (const name of namesOf(fresh)) {
      const at = `${path}/${escaped(name)}`
      if (Object.hasOwn(old, name) && old[name] !== undefined)
        this.compare(old[name], fresh[name], at, depth + 1)
      else this.#add({ op: 'add', path: at, value: fresh[name] })
    }
  }

  #arrays(old: unknown[], fresh: unknown[], path: string, depth: number): void {
    const start = this.operations.length
    const shared = Math.min(old.length, fresh.length)
    let changed = Math.max(0, old.length - fresh.length)
    for (let i = 0; i < shared; i++) {
      const count = this.operations.length
      this.compare(old[i] ?? null, fresh[i] ?? null, `${path}/${i}`, depth + 1)
      if (this.operations.length > count) changed++
      const most = changed > 2 && changed * 2 > old.length
      if (most || this.operations.length - start > maxArrayOperations) {
        this.operations.length = start
        this.#add({ op: 'replace', path, value: fresh })
        return
      }
    }
    for (let i = old.length - 1; i >= fresh.length; i--)
      this.#add({ op: 'remove', path: `${path}/${i}` })
    for (let i = old.length; i < fresh.length; i++)
      this.#add({ op: 'add', path: `${path}/-`, value: fresh[i] ?? null })
  }

  #add(operation: Operation): void {
    if (this.operations.length >= maxOperations) throw noPatch
    this.operations.push(operation)
  }
}

/** A value while a patch is applied to it: containers are copied when they are first changed. */
class Target {
  value: unknown
  readonly #copies = new Set<object>()
  #copied = 0

  constructor(value: unknown) {
    this.value = value
  }

  apply(operation: Operation): void {
    switch (operation.op) {
      case 'add':
        this.#insert(operation.path, operation.value)
        return
      case 'replace':
        this.#replace(operation.path, operation.value)
        return
      case 'remove':
        this.#remove(operation.path)
        return
      case 'test':
        if (sameJson(valueAt(this.value, tokensOf(operation.path)), operation.value)) return
        throw new Error('The test failed.')
      case 'move': {
        const { from, path } = operation
        if (path.startsWith(`${from}/`)) throw new Error('A value cannot be moved into itself.')
        const moved = valueAt(this.value, tokensOf(from))
        if (from === path) return
        this.#remove(from)
        this.#insert(path, moved)
        return
      }
      case 'copy': {
        const source = valueAt(this.value, tokensOf(operation.from))
        this.#copied += countOf(source, maxCopied - this.#copied)
        if (this.#copied > maxCopied) throw new Error('The patch copies too much.')
        this.#insert(operation.path, structuredClone(source))
        return
      }
      default:
        throw new Error('The operation is not known.')
    }
  }

  #insert(path: string, value: unknown): void {
    const tokens = tokensOf(path)
    const last = tokens.pop()
    if (last === undefined) {
      this.value = value
      return
    }
    const container = this.#writable(tokens)
    const key = keyIn(container, last)
    if (Array.isArray(container)) container.splice(Number(key), 0, value)
    else container[key] = value
  }

  #replace(path: string, value: unknown): void {
    const tokens = tokensOf(path)
    valueAt(this.value, tokens)
    const last = tokens.pop()
    if (last === undefined) this.value = value
    else put(this.#writable(tokens), last, value)
  }

  #remove(path: string): void {
    const tokens = tokensOf(path)
    valueAt(this.value, tokens)
    const last = tokens.pop()
    if (last === undefined) throw new Error('The whole value cannot be removed.')
    const container = this.#writable(tokens)
    const key = keyIn(container, last)
    if (Array.isArray(container)) container.splice(Number(key), 1)
    else delete container[key]
  }

  /** The container at a path, which nobody else holds. */
  #writable(tokens: readonly string[]): Container {
    let container = this.#copyOf(this.value)
    this.value = container
    for (const token of tokens) {
      const part = this.#copyOf(own(container, keyIn(container, token)))
      put(container, token, part)
      container = part
    }
    return container
  }

  #copyOf(value: unknown): Container {
    if (!isContainer(value)) throw new Error('The path leads nowhere.')
    if (this.#copies.has(value)) return value
    const copy = Array.isArray(value) ? [...value] : { ...value }
    this.#copies.add(copy)
    return copy
  }
}

function put(container: Container, token: string, value: unknown): void {
  ;(container as Record<string | number, unknown>)[keyIn(container, token)] = value
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value
  for (const token of path) {
    if (!isContainer(found)) throw new Error('The path leads nowhere.')
    found = own(found, keyIn(found, token))
  }
  if (found === undefined) throw new Error('The path leads nowhere.')
  return found
}

/** The key of a token: `-` is the place after the last of an array. */
function keyIn(container: Container, token: string): string | number {
  if (!Array.isArray(container)) {
    if (unsafe.has(token)) throw new Error('The path is not allowed.')
    return token
  }
  if (token === '-') return container.length
  if (!/^(0|[1-9]\d{0,9})$/.test(token) || Number(token) > container.length)
    throw new Error('The path is no place of the array.')
  return Number(token)
}

const unsafe = new Set(['__proto__', 'constructor', 'prototype'])

const own = (container: Container, key: string | number): unknown =>
  Object.hasOwn(container, key) ? (container as Record<string | number, unknown>)[key] : undefined

function tokensOf(path: string): string[] {
  if (path === '') return []
  if (!path.startsWith('/')) throw new Error('The path does not begin with /.')
  return path
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Values inside a value, itself included, counted up to a limit. */
function countOf(value: unknown, limit: number): number {
  let count = 0
  const left = [value]
  for (let one = left.pop(); count <= limit; one = left.pop()) {
    count++
    if (isContainer(one)) for (const part of Object.values(one)) left.push(part)
    if (left.length === 0) break
  }
  return count
}

function escaped(name: string): string {
  if (unsafe.has(name)) throw noPatch
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

const isContainer = (value: unknown): value is Container =>
  typeof value === 'object' && value !== null

const namesOf = (value: object): string[] =>
  Object.keys(value).filter((name) => (value as Record<string, unknown>)[name] !== undefined)

/** The value as JSON writes it, one level deep. */
function asJson(value: unknown): unknown {
  const { toJSON } = Object(value) as { toJSON?: unknown }
  return typeof toJSON === 'function' ? toJSON.call(value) : value
}
