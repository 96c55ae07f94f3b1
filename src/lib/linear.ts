import { createRequire } from 'node:module'

/** Longer texts are not searched: even linear time is time. */
const longest = 100_000

export interface LinearPattern {
  (text: string): boolean | undefined
  /** Steps that it may take for each character of a text. */
  readonly size: number
}

/**
 * Whether a pattern is found in a text, by an engine whose time grows with the text and with nothing else;
 * `undefined` where the text is too long to be searched. Throws for what such an engine cannot do (looking
 * around, back-references). Loaded when the first pattern is read: few policies have any.
 */
export function linearPattern(given: RegExp | string): LinearPattern {
  const { RE2JS } = createRequire(import.meta.url)('re2js') as typeof import('re2js')
  const { source, flags } = typeof given === 'string' ? { source: given, flags: 'u' } : given
  let how = 0
  if (flags.includes('i')) how |= RE2JS.CASE_INSENSITIVE
  if (flags.includes('s')) how |= RE2JS.DOTALL
  if (flags.includes('m')) how |= RE2JS.MULTILINE
  const pattern = RE2JS.compile(RE2JS.translateRegExp(source), how)
  const found = (text: string) => (text.length > longest ? undefined : pattern.matcher(text).find())
  return Object.assign(found, { size: pattern.programSize() })
}
