/** Returns whether a value is nested deeper than `limit`. Does not recurse, so that no value exhausts the stack. */
export function deeperThan(value: unknown, limit: number): boolean {
  let level = isNested(value) ? [value] : []
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true
    const next: object[] = []
    for (const parent of level)
      for (const part of Array.isArray(parent) ? parent : Object.values(parent))
        if (isNested(part)) next.push(part)
    level = next
  }
  return false
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null
