/** As the server marks them on the card: control and format characters, odd spaces and fillers. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu

/** A joiner or a variation selector where an emoji wants it. */
const emoji =
  /\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?)*/gu

/** What of a text a field does not show as it is, by name and once each; line ends and tabs are seen. */
export function hiddenIn(text: string): string[] {
  const found = text.replace(emoji, '').match(hidden) ?? []
  return namesOf(found.filter((one) => one !== '\n' && one !== '\t'))
}

/** Letters of alphabets whose letters look like Latin ones; of Greek, only those that do. */
const foreign =
  /[\p{sc=Cyrillic}\p{sc=Armenian}\p{sc=Cherokee}\p{sc=Coptic}\p{sc=Lisu}αγικνορτυχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ\uFF21-\uFF5A\u{1D400}-\u{1D7CB}]/gu

/** Latin letters that look like ASCII letters or bars, and stand in ordinary words of some languages. */
const latinTwins = /[ıȷĸƅƿƽɣʋɯỿǀǁǂǃ]/gu
/** An address or a path, by a separator between two words. */
const address = /[\p{L}\p{M}\p{N}_][:/.@]+[\p{L}\p{N}_]/u
const words = /[\p{L}\p{M}\p{N}]+/gu

/**
 * Letters that look like Latin ones, in words with Latin letters, and in addresses and paths Latin letters that look like
 * ASCII ones: by name and once each.
 */
export function lookalikesIn(text: string): string[] {
  const mixed = (text.match(words) ?? []).filter((word) => /[a-zA-Z]/.test(word))
  const tokens = text.match(/[\p{L}\p{M}\p{N}_.@/:-]+/gu) ?? []
  const inAddresses = tokens
    .filter((token) => address.test(token) && /[a-zA-Z]/.test(token))
    .flatMap((token) => token.match(words) ?? [])
    .filter((word) => !/(?![a-zA-Z])\p{sc=Latin}/u.test(word.replace(latinTwins, '')))
  return namesOf([
    ...mixed.flatMap((word) => word.match(foreign) ?? []),
    ...inAddresses.flatMap((word) => word.match(latinTwins) ?? []),
  ])
}

const namesOf = (found: readonly string[]): string[] => {
  const names = found.map(
    (one) => `U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`,
  )
  return [...new Set(names)]
}
