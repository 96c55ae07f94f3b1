/** Whether a value is nested deeper than this. Without recursion: what is too deep must not be its end. */
export function deeperThan(value: unknown, limit: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true
    level = level.flatMap((one) =>
      typeof one === 'object' && one !== null ? Object.values(one).filter(isNested) : [],
    )
  }
  return false
}

const isNested = (value: unknown) => typeof value === 'object' && value !== null
