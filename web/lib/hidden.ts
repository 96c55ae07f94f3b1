/** As the server marks them on the card: control and format characters, odd spaces and fillers. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu

/** A joiner or a variation selector where an emoji wants it. */
const emoji =
  /\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?)*/gu

/** What of a text a field does not show as it is, by name and once each; line ends and tabs are seen. */
export function hiddenIn(text: string): string[] {
  const found = text.replace(emoji, '').match(hidden) ?? []
  const names = found
    .filter((one) => one !== '\n' && one !== '\t')
    .map((one) => `U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`)
  return [...new Set(names)]
}
