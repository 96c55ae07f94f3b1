import { KnownTexts } from './known-texts.ts'

/**
 * Patterns of keys, tokens and passwords, recognised by their form or by the name before them. Each repetition has a limit or
 * begins where no other match of it can begin, so that a search takes linear time.
 */
const secret = new RegExp(
  [
    /\b(?:bearer|basic)\s+[^\s"',;]+/,
    /\b(?:sk|pk|rk|gh[a-z]|xox[a-z])[-_][\w-]{6,}/,
    /(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*/,
    /(?<=:\/\/)[^\s/@]+(?=@)/,
    /(?<=(?:token|secret|passw\w{0,20}|api[-_ ]?key|authori[sz]ation|cookie|credentials?)["']?\s{0,20}[:=]\s{0,20}["']?)[^\s"',;&]+/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
)

/** The text without what looks like a secret, and without those that are known to be some. */
export function masked(text: string, known: readonly string[] = []): string {
  return withoutTexts(text, known).replace(secret, '***')
}

/** Caches the search of each list of known secrets, so that a list is sorted once and not for each text. */
const searches = new WeakMap<readonly string[], KnownTexts>()

/** The text without the known secrets; shorter ones are also parts of other words. */
export function withoutTexts(text: string, known: readonly string[]): string {
  if (known.length === 0) return text
  let search = searches.get(known)
  if (!search) {
    search = new KnownTexts(known)
    searches.set(known, search)
  }
  return search.redact(text, '***')
}
