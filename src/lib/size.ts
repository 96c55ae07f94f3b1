export interface SizeLimit {
  /** Values and names of fields, at every level. */
  values: number
  /** Characters of all texts and names together. */
  characters: number
}

/** Whether a JSON value is larger than a limit. Reads no more of it than the limit, and does not recurse. */
export function isLarger(value: unknown, limit: SizeLimit): boolean {
  let { values, characters } = limit
  const left: unknown[] = [value]
  while (left.length > 0) {
    const part = left.pop()
    if (--values < 0) return true
    if (typeof part === 'string') characters -= part.length
    else if (Array.isArray(part)) {
      if (part.length > values) return true
      for (const one of part) left.push(one)
    } else if (typeof part === 'object' && part !== null) {
      for (const name in part) {
        if (--values < 0) return true
        characters -= name.length
        left.push((part as Record<string, unknown>)[name])
      }
    }
    if (characters < 0) return true
  }
  return false
}

/** Bytes of an object or array, of a field, a text and any other value, without characters, and of a character. */
const cost = { container: 64, field: 64, text: 32, other: 16, character: 2 }

/**
 * Estimates the bytes of heap that a JSON value takes. Usually too high. The length of the JSON text would be
 * far too low: `{}` has two characters and takes more than 60 bytes. Does not recurse.
 */
export function heapBytes(value: unknown): number {
  let bytes = 0
  const left: unknown[] = [value]
  while (left.length > 0) {
    const part = left.pop()
    if (typeof part === 'string') bytes += cost.text + part.length * cost.character
    else if (typeof part !== 'object' || part === null) bytes += cost.other
    else {
      bytes += cost.container
      if (Array.isArray(part)) for (const one of part) left.push(one)
      else
        for (const name in part) {
          bytes += cost.field + name.length * cost.character
          left.push((part as Record<string, unknown>)[name])
        }
    }
  }
  return bytes
}
