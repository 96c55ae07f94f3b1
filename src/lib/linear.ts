import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/** Characters of a text that a pattern searches at most: linear time is still time. */
export const maxSearchedLength = 100_000

/** Characters of a pattern from outside. */
const maxPatternLength = 1_000
/** Instructions of all patterns from outside in one schema. */
const maxPatternSize = 5_000
/** Instructions that compiling `\p{L}` counts as: its class has hundreds of ranges. */
const unicodeClassCost = 30
/** Characters that beginning a search counts as. */
const searchCost = 8
/** Steps that all such patterns may take for one value: about 15 ms. */
const maxSteps = 1_000_000

export interface LinearPattern {
  (text: string): boolean | undefined
  /** Steps that it may take for each character of a text. */
  readonly size: number
}

/**
 * Compiles a pattern for an engine whose time grows linearly with the text. Throws for constructs that
 * such an engine does not have (look-around, back-references). The engine is loaded with the first
 * pattern, because few servers use any.
 */
export function compileLinear(given: RegExp | string): RE2JS {
  const { RE2JS } = createRequire(import.meta.url)('re2js') as typeof import('re2js')
  const { source, flags } = typeof given === 'string' ? { source: given, flags: 'u' } : given
  let options = 0
  if (flags.includes('i')) options |= RE2JS.CASE_INSENSITIVE
  if (flags.includes('s')) options |= RE2JS.DOTALL
  if (flags.includes('m')) options |= RE2JS.MULTILINE
  return RE2JS.compile(RE2JS.translateRegExp(source), options)
}

/** Whether a pattern is found in a text; `undefined` if the text is too long to be searched. */
export function linearPattern(given: RegExp | string): LinearPattern {
  const pattern = compileLinear(given)
  const found = (text: string) =>
    text.length > maxSearchedLength ? undefined : pattern.matcher(text).find()
  return Object.assign(found, { size: pattern.programSize() })
}

/**
 * Patterns that a client, a model, an MCP server or a remote agent wrote. Compiling and searching are
 * bounded: `read` throws for a pattern that is too large, and a search that would take too long returns
 * `undefined`. `restart` gives the next value the full number of steps. Calls `onSearch` with the steps of each search.
 */
export function untrustedPatterns(onSearch: (steps: number) => void = () => {}) {
  let size = 0
  let stepsLeft = maxSteps
  const read = (source: string) => {
    if (source.length > maxPatternLength)
      throw new Error(`a pattern is longer than ${maxPatternLength} characters`)
    // Before compiling: counted repetitions make a large program of a short pattern.
    size += estimateSize(source, unicodeClassCost)
    if (size > maxPatternSize) throw new Error('a pattern is too large')
    const found = linearPattern(source)
    return (text: string): boolean | undefined => {
      const steps = found.size * (text.length + searchCost)
      stepsLeft -= steps
      if (stepsLeft < 0) return undefined
      onSearch(steps)
      return found(text)
    }
  }
  const restart = () => {
    stepsLeft = maxSteps
  }
  return { read, restart }
}

/**
 * Instructions that a pattern is compiled to, estimated from its counted repetitions without compiling it. Each class
 * such as `\p{L}` counts as `classCost` more.
 */
export function estimateSize(source: string, classCost = 0): number {
  const groups: number[] = []
  let sum = 0
  let last = 0
  for (let at = 0; at < source.length; at++) {
    const char = source[at]!
    if (char === '(') {
      groups.push(sum)
      sum = 2
      last = 0
    } else if (char === ')') {
      last = sum
      sum += groups.pop() ?? 0
    } else if (char === '{') {
      const close = source.indexOf('}', at)
      const counts = (close < 0 ? '' : source.slice(at + 1, close)).split(',').map(Number)
      if (counts.length > 2 || !counts.every(Number.isInteger)) continue
      const times = Math.max(1, ...counts)
      sum += last * (times - 1)
      last *= times
      at = close
    } else {
      const end = char === '[' ? classEnd(source, at) : char === '\\' ? escapeEnd(source, at) : at
      const classes = source.slice(at, end + 1).match(/\\[pP]/g)?.length ?? 0
      last = 1 + (char === '[' ? end - at : 0) / 2 + classes * classCost
      sum += last
      at = end
    }
  }
  return Math.ceil(groups.reduce((total, group) => total + group, sum))
}

function classEnd(source: string, from: number): number {
  for (let at = from + 1; at < source.length; at++) {
    if (source[at] === '\\') at++
    else if (source[at] === ']' && at > from + 1) return at
  }
  return source.length
}

/** The end of `\d`, `\p{Lu}`, `\u{1F600}`. */
function escapeEnd(source: string, from: number): number {
  const braced = /^\\[pPu]\{[^}]{0,40}\}/.exec(source.slice(from, from + 48))
  return from + (braced?.[0].length ?? 2) - 1
}
