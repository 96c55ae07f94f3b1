export interface Word {
  word: string
  /** Where it begins in the text. */
  at: number
}

/** Of a longer one, only so much is compared. */
const longest = 64

// Scripts without spaces between words: each character counts as one, and neighbours make the word.
const unspaced = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar']
const alone = `[${unspaced.map((script) => `\\p{sc=${script}}`).join('')}]`
// `v` knows how to leave characters out of a class, and is younger than our target's literals.
const any = new RegExp(`${alone}|[[\\p{L}\\p{N}\\p{M}]--${alone}]+`, 'gv')
const anyAscii = /[a-z0-9]+/gi
const plain = /^[a-z0-9]+$/i

/** The words of a text in their order, the same for every way to write them: case and accents are gone. */
export function wordsOf(text: string): Word[] {
  const words: Word[] = []
  for (const { 0: found, index } of text.matchAll(any)) {
    const word = fold(found)
    if (word !== '') words.push({ word, at: index })
  }
  return words
}

function fold(word: string): string {
  if (plain.test(word)) return word.toLowerCase().slice(0, longest)
  return word
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\u0300-\u036f]/g, '')
    .slice(0, longest)
}

/** The keys of all words of a text, each once. */
export function keysOf(text: string): Set<number> {
  const keys = new Set<number>()
  // Each way to write a word once: most words of a text are in it several times.
  const ascii = Buffer.byteLength(text) === text.length
  for (const found of new Set(text.match(ascii ? anyAscii : any))) {
    const word = fold(found)
    if (word !== '') keys.add(keyOfWord(word))
  }
  return keys
}

/** A word as a number of 32 bits with a sign, as indexes keep it. Others may have the same. */
export function keyOfWord(word: string): number {
  let hash = 0x811c9dc5
  for (let n = 0; n < word.length; n++) hash = Math.imul(hash ^ word.charCodeAt(n), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}
