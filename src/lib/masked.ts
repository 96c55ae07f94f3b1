/** What looks like a key, a token or a password, by its form or by the name before it. */
const secret = new RegExp(
  [
    /\b(?:bearer|basic)\s+[^\s"',;]+/,
    /\b(?:sk|pk|rk|gh[a-z]|xox[a-z])[-_][\w-]{6,}/,
    /\beyJ[\w-]+\.[\w-]+\.[\w-]*/,
    /(?<=:\/\/)[^\s/@]+(?=@)/,
    /(?<=(?:token|secret|passw\w*|api[-_ ]?key|authorization|cookie|credentials?)["']?\s*[:=]\s*["']?)[^\s"',;&]+/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
)

/** The text without what looks like a secret, and without those that are known to be some. */
export function masked(text: string, known: readonly string[] = []): string {
  return withoutTexts(text, known).replace(secret, '***')
}

/** The text without the known secrets; shorter ones are also parts of other words. */
export function withoutTexts(text: string, known: readonly string[]): string {
  let rest = text
  for (const one of known) if (one.length >= 6) rest = rest.replaceAll(one, '***')
  return rest
}
