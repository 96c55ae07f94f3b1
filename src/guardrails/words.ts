const isLetterOrNumber = /[\p{L}\p{N}]/u
/** Scripts without spaces between words: a word with such letters is found anywhere. */
const isUnspaced = /\p{Lo}/u

/** Letters whose lower case has a second form: `toLowerCase` keeps it, `RegExp` with `iu` does not. */
const secondForms: Record<string, string> = {
  ...{ µ: 'μ', ſ: 's', ς: 'σ', ϐ: 'β', ϑ: 'θ', ϕ: 'φ', ϖ: 'π', ϰ: 'κ', ϱ: 'ρ', ϵ: 'ε', ẛ: 'ṡ' },
  '\u1FBE': 'ι',
}

/** Characters that a search reads before it lets others run. */
const pauseEvery = 8_192

export interface FoundWord {
  /** Index of the word in the list. */
  word: number
  from: number
  /** Not included. */
  to: number
}

/**
 * Finds many words in a text at once (Aho-Corasick): the time grows with the text and with the words, and not
 * with their product. Words are whole, whatever their case and the white space between their parts; words of
 * scripts without spaces are found anywhere. Overlapping words are all found.
 */
export class WordSearch {
  /** States are numbered in the order in which they are made; 0 is the empty text. */
  #states = 1
  /** By state: its characters, the state of its longest proper suffix, and the nearest suffix that is a word. */
  readonly #depth: Int32Array
  readonly #suffix: Int32Array
  readonly #ending: Int32Array
  /** By state: the first word of the list that ends there, or -1. */
  readonly #word: Int32Array
  /** By state: the state before it, and the UTF-16 unit that leads here from there. */
  readonly #before: Int32Array
  readonly #unit: Uint16Array
  readonly #steps: Steps
  /** By word: found only between characters that are no letters and numbers. */
  readonly #whole: boolean[]
  /** Characters of the longest word, and whether any word has a space. */
  readonly longest: number
  readonly hasSpaces: boolean

  constructor(words: readonly string[]) {
    const folded = words.map((word) => evenly(fold(word)))
    this.#whole = folded.map((word) => !isUnspaced.test(word))
    this.longest = folded.reduce((longest, { length }) => Math.max(longest, length), 0)
    this.hasSpaces = folded.some((word) => word.includes(' '))
    const most = folded.reduce((sum, { length }) => sum + length, 1)
    this.#depth = new Int32Array(most)
    this.#suffix = new Int32Array(most)
    this.#ending = new Int32Array(most)
    this.#word = new Int32Array(most).fill(-1)
    this.#before = new Int32Array(most)
    this.#unit = new Uint16Array(most)
    this.#steps = new Steps(most)
    for (const [i, word] of folded.entries()) if (word !== '') this.#add(word, i)
    this.#link()
  }

  #add(word: string, index: number): void {
    let state = 0
    for (let at = 0; at < word.length; at++) {
      const unit = word.charCodeAt(at)
      let next = this.#steps.get(state, unit)
      if (next === 0) {
        next = this.#states++
        this.#depth[next] = at + 1
        this.#before[next] = state
        this.#unit[next] = unit
        this.#steps.set(state, unit, next)
      }
      state = next
    }
    if (this.#word[state] === -1) this.#word[state] = index
  }

  /** Sets the suffixes, of short states first: those of a state depend on shorter states only. */
  #link(): void {
    for (const state of this.#byDepth()) {
      const before = this.#before[state]!
      const suffix = before === 0 ? 0 : this.#step(this.#suffix[before]!, this.#unit[state]!)
      this.#suffix[state] = suffix
      this.#ending[state] = this.#word[suffix] === -1 ? this.#ending[suffix]! : suffix
    }
  }

  /** All states but 0, counted into place. */
  #byDepth(): Int32Array {
    const places = new Int32Array(this.longest + 2)
    for (let state = 1; state < this.#states; state++) places[this.#depth[state]! + 1]!++
    for (let depth = 1; depth < places.length; depth++) places[depth]! += places[depth - 1]!
    const sorted = new Int32Array(this.#states - 1)
    for (let state = 1; state < this.#states; state++)
      sorted[places[this.#depth[state]!]!++] = state
    return sorted
  }

  #step(from: number, unit: number): number {
    for (let state = from; ; state = this.#suffix[state]!) {
      const next = this.#steps.get(state, unit)
      if (next !== 0 || state === 0) return next
    }
  }

  /**
   * All words in the text; undefined now and then, as an opportunity to let others run. Returns how many
   * characters at the end of the text may be the beginning of a word.
   */
  *find(text: string): Generator<FoundWord | undefined, number> {
    if (this.longest === 0) return 0
    const starts = new Int32Array(this.longest)
    let state = 0
    let read = 0
    let afterSpace = false
    for (let from = 0, to = 0; from < text.length; from = to) {
      if (from > 0) yield undefined
      to = partEnd(text, from)
      const part = fold(text.slice(from, to))
      for (let i = 0; i < part.length; i++) {
        const unit = part.charCodeAt(i)
        const space = isSpace(unit)
        if (space && afterSpace) continue
        afterSpace = space
        starts[read++ % this.longest] = from + i
        state = this.#step(state, space ? spaceUnit : unit)
        if (this.#word[state] === -1 && this.#ending[state] === 0) continue
        const startOf = (length: number) => starts[(read - length) % this.longest]!
        yield* this.#wordsAt(text, from + i + 1, state, startOf)
      }
    }
    return state === 0 ? 0 : text.length - starts[(read - this.#depth[state]!) % this.longest]!
  }

  *#wordsAt(
    text: string,
    to: number,
    state: number,
    startOf: (length: number) => number,
  ): Generator<FoundWord> {
    const followed = isLetterOrNumber.test(characterAt(text, to))
    for (let found = state; found !== 0; found = this.#ending[found]!) {
      const word = this.#word[found]!
      if (word === -1 || (followed && this.#whole[word])) continue
      const from = startOf(this.#depth[found]!)
      if (this.#whole[word] && isLetterOrNumber.test(characterBefore(text, from))) continue
      yield { word, from, to }
    }
  }
}

/** Steps from state to state by a UTF-16 unit, as a hash table of numbers: a Map of them takes ten times as long. */
class Steps {
  readonly #from: Int32Array
  readonly #unit: Uint16Array
  /** 0: this place is free. */
  readonly #to: Int32Array
  readonly #mask: number

  constructor(most: number) {
    const places = 2 ** Math.ceil(Math.log2(most * 2))
    this.#from = new Int32Array(places)
    this.#unit = new Uint16Array(places)
    this.#to = new Int32Array(places)
    this.#mask = places - 1
  }

  /** The place of a step, or the free place for it. */
  #place(from: number, unit: number): number {
    let hash = Math.imul(from, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b)
    hash ^= hash >>> 15
    let place = hash & this.#mask
    while (this.#to[place] !== 0 && (this.#from[place] !== from || this.#unit[place] !== unit))
      place = (place + 1) & this.#mask
    return place
  }

  /** 0 where there is no such step. */
  get = (from: number, unit: number): number => this.#to[this.#place(from, unit)]!

  set(from: number, unit: number, to: number): void {
    const place = this.#place(from, unit)
    this.#from[place] = from
    this.#unit[place] = unit
    this.#to[place] = to
  }
}

const spaceUnit = 0x20

/** White space of any kind, also U+0085 and U+200B, which are none to regular expressions. */
function isSpace(unit: number): boolean {
  if (unit < 0x80) return unit === spaceUnit || (unit >= 9 && unit <= 13)
  if (unit === 0x85 || unit === 0xa0) return true
  if (unit < 0x1680) return false
  if (unit >= 0x2000 && unit <= 0x200b) return true
  return [0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff].includes(unit)
}

/** The next part ends where no character is cut in two. */
function partEnd(text: string, from: number): number {
  const to = Math.min(text.length, from + pauseEvery)
  return isHighSurrogate(text.charCodeAt(to - 1)) ? Math.min(text.length, to + 1) : to
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff

const characterAt = (text: string, at: number): string =>
  isHighSurrogate(text.charCodeAt(at)) ? text.slice(at, at + 2) : text.charAt(at)
const characterBefore = (text: string, at: number): string =>
  isLowSurrogate(text.charCodeAt(at - 1)) ? text.slice(at - 2, at) : text.charAt(at - 1)

/** The same for upper and lower case, with the length of the text: positions stay. */
function fold(text: string): string {
  const lower = text.toLowerCase()
  const same = lower.length === text.length ? lower : Array.from(text, lowerOne).join('')
  return same.replace(
    /[\u00b5\u017f\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5\u1e9b\u1fbe]/g,
    secondForm,
  )
}

function lowerOne(char: string): string {
  const lower = char.toLowerCase()
  return lower.length === char.length ? lower : char
}

const secondForm = (char: string) => secondForms[char]!

/** A word with one space between its parts and none around them. */
function evenly(word: string): string {
  let even = ''
  for (let at = 0; at < word.length; at++) {
    if (!isSpace(word.charCodeAt(at))) even += word[at]
    else if (even !== '' && !even.endsWith(' ')) even += ' '
  }
  return even.trimEnd()
}
