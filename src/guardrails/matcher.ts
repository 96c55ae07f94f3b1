/** Finds something in texts, also in ones that are still being written. */
export interface Matcher {
  /** Where it is: from, and up to but not including. */
  matches(text: string): Iterable<readonly [number, number]>
  /** How many characters at the end may be the beginning of a match. */
  open(text: string): number
}

/** White space of any kind; some of it is none to regular expressions. */
const space = '[\\s\\u0085\\u200B]'
const isSpace = new RegExp(space)
/** Characters of white space between two words that are still taken for the beginning of a match. */
const widest = 200

/**
 * Whole words, whatever their case, and whatever white space stands between them; in scripts without spaces
 * between words, anywhere.
 */
export function wordsMatcher(words: readonly string[]): Matcher {
  const wanted = words
    .map((word) => word.split(new RegExp(`${space}+`)).filter((part) => part !== ''))
    .filter((parts) => parts.length > 0)
  const lower = wanted.map((parts) => parts.join(' ').toLowerCase())
  const patterns = wanted.map((parts) => {
    const escaped = parts
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join(`${space}+`)
    const whole = `(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`
    return parts.some((part) => /\p{Lo}/u.test(part)) ? `${whole}|${escaped}` : whole
  })
  // Literals, and white space that no literal begins with: nothing in it could be tried in many ways.
  const pattern = patterns.length > 0 ? new RegExp(patterns.join('|'), 'giu') : undefined
  const longest = Math.max(0, ...lower.map(({ length }) => length))
  const wide = lower.some((word) => word.includes(' ')) ? widest : 0
  return {
    *matches(text) {
      if (!pattern) return
      for (const { index, 0: found } of text.matchAll(pattern)) yield [index, index + found.length]
    },
    open(text) {
      const end = evenly(text.slice(-(longest + wide)))
      const line = end.map(({ char }) => char).join('')
      for (let from = Math.max(0, line.length - longest); from < line.length; from++) {
        const rest = line.slice(from)
        if (lower.some((word) => word.startsWith(rest))) return end[from]!.left
      }
      return 0
    },
  }
}

/** The characters of a text in lower case, white space as one, each with how many are left from there. */
function evenly(text: string): { char: string; left: number }[] {
  const chars: { char: string; left: number }[] = []
  for (let at = 0; at < text.length; at++) {
    const left = text.length - at
    if (!isSpace.test(text[at]!)) {
      for (const char of text[at]!.toLowerCase()) chars.push({ char, left })
    } else if (chars.at(-1)?.char !== ' ') chars.push({ char: ' ', left })
  }
  return chars
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
