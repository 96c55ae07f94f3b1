/** Finds something in texts, also in ones that are still being written. */
export interface Matcher {
  /** Where it is: from, and up to but not including. */
  matches(text: string): Iterable<readonly [number, number]>
  /** How many characters at the end may be the beginning of a match. */
  open(text: string): number
}

/** Whole words, whatever their case; in scripts without spaces between words, anywhere. */
export function wordsMatcher(words: readonly string[]): Matcher {
  const wanted = words.map((word) => word.trim()).filter((word) => word !== '')
  const lower = wanted.map((word) => word.toLowerCase())
  const patterns = wanted.map((word) => {
    const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const whole = `(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`
    return /\p{Lo}/u.test(word) ? `${whole}|${escaped}` : whole
  })
  // Each is a literal: there is nothing in it that could be tried in many ways.
  const pattern = patterns.length > 0 ? new RegExp(patterns.join('|'), 'giu') : undefined
  const longest = Math.max(0, ...lower.map(({ length }) => length))
  return {
    *matches(text) {
      if (!pattern) return
      for (const { index, 0: found } of text.matchAll(pattern)) yield [index, index + found.length]
    },
    open(text) {
      const end = text.slice(-longest).toLowerCase()
      for (let from = 0; from < end.length; from++) {
        const rest = end.slice(from)
        if (lower.some((word) => word.startsWith(rest))) return rest.length
      }
      return 0
    },
  }
}

/**
 * A regular expression, by an engine whose time grows with the text and with nothing else: no text that
 * a user makes up can keep the server busy. What it cannot do (looking around, back-references) is
 * refused when it is read.
 */
export async function patternMatcher(given: RegExp | string, lookBack: number): Promise<Matcher> {
  const { RE2JS } = await import('re2js')
  const { source, flags } = typeof given === 'string' ? { source: given, flags: 'u' } : given
  let how = 0
  if (flags.includes('i')) how |= RE2JS.CASE_INSENSITIVE
  if (flags.includes('s')) how |= RE2JS.DOTALL
  if (flags.includes('m')) how |= RE2JS.MULTILINE
  const pattern = RE2JS.compile(RE2JS.translateRegExp(source), how)
  return {
    *matches(text) {
      const matcher = pattern.matcher(text)
      while (matcher.find()) yield [matcher.start(), matcher.end()]
    },
    open: (text) => Math.min(text.length, lookBack),
  }
}
