import { lookalikes } from './lookalikes.ts'

/**
 * What does not show, or shows as something else: control and format characters (those that turn the
 * direction of text among them), spaces that are not the space, fillers, halves of characters, what has no
 * meaning yet; and our own brackets, so that nobody can write what only we may.
 */
const hidden =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800⟦⟧]|(?! )\p{Zs}/gu

/** A joiner or a variation selector where an emoji wants it. */
const emoji =
  /\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?)*/gu

/**
 * The text with what cannot be seen written out, `⟦U+202E⟧`, and with letters that look like those of another
 * alphabet, `p⟦U+0430⟧ypal`. Different texts stay different.
 */
export function visible(text: string, { lines = false } = {}): string {
  let shown = ''
  let at = 0
  for (const { at: index, letter } of lookalikes(text)) {
    shown += withoutHidden(text.slice(at, index), lines) + mark(letter)
    at = index + letter.length
  }
  return shown + withoutHidden(text.slice(at), lines)
}

/** Whether a text holds something that would not be seen as it is. Line ends and tabs are seen. */
export const hides = (text: string): boolean => withoutHidden(text, true) !== text

/** Whether a text holds letters that look like those of another alphabet. */
export const mixes = (text: string): boolean => lookalikes(text).length > 0

function withoutHidden(text: string, lines: boolean): string {
  let shown = ''
  let at = 0
  for (const { index, 0: found } of text.matchAll(emoji)) {
    shown += marked(text.slice(at, index), lines) + found
    at = index + found.length
  }
  return shown + marked(text.slice(at), lines)
}

const marked = (text: string, lines: boolean): string =>
  text.replace(hidden, (one) => (lines && (one === '\n' || one === '\t') ? one : mark(one)))

const mark = (one: string): string =>
  `⟦U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟧`

export interface Shown {
  text: string
  /** Characters that are left out. */
  cut?: number
}

/** No more than so many characters, and how many more there are. Cuts before it makes visible: never inside a mark. */
export function shown(text: string, most: number, how?: { lines?: boolean }): Shown {
  if (text.length <= most) return { text: visible(text, how) }
  const half = /[\uD800-\uDBFF]/.test(text[most - 1]!) ? 1 : 0
  const kept = text.slice(0, most - half)
  return { text: visible(kept, how), cut: text.length - kept.length }
}

/** The same in one text. */
export function shownLine(text: string, most: number): string {
  const { text: kept, cut } = shown(text, most)
  return cut === undefined ? kept : `${kept}… (${cut.toLocaleString('en')} more characters)`
}
