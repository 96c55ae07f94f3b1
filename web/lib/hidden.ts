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

/** Letters that look like Latin ones, in words with Latin letters: by name and once each. */
export function lookalikesIn(text: string): string[] {
  const mixed = (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).filter((word) => /[a-zA-Z]/.test(word))
  return namesOf(mixed.flatMap((word) => word.match(foreign) ?? []))
}

const namesOf = (found: readonly string[]): string[] => {
  const names = found.map(
    (one) => `U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`,
  )
  return [...new Set(names)]
}
