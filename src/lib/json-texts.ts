/**
 * Yields every string and every field name in a JSON value, in no particular order. Takes time in proportion to the
 * size of the value, however deeply it is nested.
 */
export function* textsOf(value: unknown): Generator<string> {
  const left = [value]
  while (left.length > 0) {
    const part = left.pop()
    if (typeof part === 'string') yield part
    else if (Array.isArray(part)) for (const item of part) left.push(item)
    else if (typeof part === 'object' && part !== null) {
      for (const [name, field] of Object.entries(part)) {
        yield name
        left.push(field)
      }
    }
  }
}
