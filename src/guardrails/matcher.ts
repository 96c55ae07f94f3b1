import { compileLinear, maxSearchedLength } from '../lib/linear.ts'
import { WordSearch } from './words.ts'

/** Finds something in texts, also in ones that are still being written. */
export interface Matcher {
  /** Where it is: from, and up to but not including; undefined now and then, to let others run. */
  matches(text: string): Iterable<readonly [number, number] | undefined>
  /** How many characters at the end may be the beginning of a match. */
  open(text: string): number
  /** Characters of a text that can be searched at once. Absent: any number. */
  readonly maxLength?: number
}

/** Characters of white space between two words that are still taken for the beginning of a match. */
const widest = 200

/**
 * Whole words, whatever their case, and whatever white space stands between them; in scripts without spaces
 * between words, anywhere.
 */
export function wordsMatcher(words: readonly string[]): Matcher {
  const search = new WordSearch(words)
  const tail = Math.max(1, search.longest) + (search.hasSpaces ? widest : 0)
  return {
    *matches(text) {
      for (const found of search.find(text)) yield found && [found.from, found.to]
    },
    open(text) {
      const words = search.find(text.slice(-tail))
      for (;;) {
        const { done, value } = words.next()
        if (done) return value
      }
    },
  }
}

/**
 * A regular expression, by an engine whose time grows with the text and with nothing else: no text that
 * a user makes up can keep the server busy. What it cannot do (looking around, back-references) is
 * refused when it is read.
 */
export function patternMatcher(given: RegExp | string, lookBack: number): Matcher {
  const pattern = compileLinear(given)
  return {
    *matches(text) {
      const matcher = pattern.matcher(text)
      while (matcher.find()) yield [matcher.start(), matcher.end()]
    },
    open: (text) => Math.min(text.length, lookBack),
    maxLength: maxSearchedLength,
  }
}
