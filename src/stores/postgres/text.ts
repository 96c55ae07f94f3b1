import { sha256 } from '../../lib/canonical.ts'

/**
 * Any string as a text that Postgres can hold, and back. It has no NUL and no half of a character:
 * those are written as U+0001 and four hex digits, and so is U+0001 itself. All other strings stay as
 * they are, and so does the order of strings, but for halves of characters.
 */
export function pack(text: string): string {
  if (!text.includes('\0') && !text.includes(mark) && text.isWellFormed()) return text
  return text.replace(unfit, (char) => mark + char.charCodeAt(0).toString(16).padStart(4, '0'))
}

export function unpack(text: string): string {
  if (!text.includes(mark)) return text
  return text.replace(packed, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

const mark = '\u0001'
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these
const unfit = /[\0\u0001]|\p{Surrogate}/gu
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these
const packed = /\u0001([0-9a-f]{4})/g

/** Bytes; an index entry of several keys must stay below 2,700. */
const longest = 400

/** A name as a key of an index: itself, or its beginning and a digest if it is too long for one. */
export function keyOf(name: string): string {
  const text = pack(name)
  if (text.length <= longest / 3 || Buffer.byteLength(text) <= longest) return text
  return `${text.slice(0, 100).toWellFormed()}${mark}#${sha256(JSON.stringify(name))}`
}

export const isShortened = (key: unknown): boolean =>
  typeof key === 'string' && key.includes(`${mark}#`)
