/** All that an input says, one after the other: as JSON, a word could hide behind an escape. */
export function textOfInput(input: unknown): string {
  const found: string[] = []
  const look = (value: unknown): void => {
    if (typeof value === 'object' && value !== null) {
      for (const [key, one] of Object.entries(value)) {
        if (!Array.isArray(value)) found.push(key)
        look(one)
      }
    } else if (value !== undefined && value !== null) found.push(String(value))
  }
  look(input)
  return found.join('\n')
}
