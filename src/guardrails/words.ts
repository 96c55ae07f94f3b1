const isLetterOrNumber = /[\p{L}\p{N}]/u
/** Scripts without spaces between words: a word with such letters is found anywhere. */
const isUnspaced = /\p{Lo}/u

/** Letters whose lower case has a second form: `toLowerCase` keeps it, `RegExp` with `iu` does not. */
const secondForms: Record<string, string> = {
  ...{ µ: 'μ', ſ: 's', ς: 'σ', ϐ: 'β', ϑ: 'θ', ϕ: 'φ', ϖ: 'π', ϰ: 'κ', ϱ: 'ρ', ϵ: 'ε', ẛ: 'ṡ' },
  '\u1FBE': 'ι',
}

/** Characters that are folded at once. */
const partLength = 8_192
/** State transitions after which building or searching yields: about a millisecond. */
const pauseEvery = 8_192

export interface FoundWord {
  /** Index of the word in the list. */
  word: number
  from: number
  /** Not included. */
  to: number
}

/**
 * The words as a tree of states (Aho-Corasick). States are numbered by depth, and the states that follow one state
 * have consecutive numbers in the order of their UTF-16 units. A binary search finds the next state. There is no
 * hash table, because a client that knows its hash function could choose words whose entries collide.
 */
interface Tree {
  /** By state: its first child. Its children end where the children of the next state begin. */
  readonly first: Int32Array
  /** By state: the UTF-16 unit that leads to it. */
  readonly unit: Uint16Array
  /** By state: its length, its suffix link (the longest proper suffix), and its output link (the nearest suffix that is a word). */
  readonly depth: Int32Array
  readonly suffix: Int32Array
  readonly ending: Int32Array
  /** By state: the first word of the list that ends there, or -1, and the lowest index of all words that end there. */
  readonly word: Int32Array
  readonly lowest: Int32Array
  /** By word: whether it is found only as a whole word, between characters that are neither letters nor numbers. */
  readonly whole: readonly boolean[]
  /** Characters of the longest word, and whether any word has a space. */
  readonly longest: number
  readonly hasSpaces: boolean
}

/** Index that no word has. */
const noWord = 2 ** 31 - 1

/** Builds the tree. Yields after about `pauseEvery` steps, so that the caller can let other requests run. */
function* buildTree(words: readonly string[]): Generator<undefined, Tree> {
  const folded: string[] = []
  let work = 0
  for (const word of words) {
    folded.push(evenly(fold(word)))
    work += word.length
    if (work > pauseEvery) yield pause()
  }
  const sorted = Array.from(folded.keys()).filter((index) => folded[index] !== '')
  sorted.sort((a, b) => (folded[a]! < folded[b]! ? -1 : folded[a] === folded[b] ? a - b : 1))
  yield pause()
  const most = folded.reduce((sum, { length }) => sum + length, 1)
  const tree = {
    ...{ first: new Int32Array(most + 1), unit: new Uint16Array(most) },
    ...{ depth: new Int32Array(most), suffix: new Int32Array(most) },
    ...{ ending: new Int32Array(most), word: new Int32Array(most).fill(-1) },
    lowest: new Int32Array(most).fill(noWord),
    whole: folded.map((word) => !isUnspaced.test(word)),
    longest: folded.reduce((longest, { length }) => Math.max(longest, length), 0),
    hasSpaces: folded.some((word) => word.includes(' ')),
  }
  const { first, unit, depth, suffix, ending, word, lowest } = tree
  // By state: the state before it, and the sorted words that begin with its characters.
  const before = new Int32Array(most)
  const from = new Int32Array(most)
  const to = new Int32Array(most)
  to[0] = sorted.length
  let states = 1
  for (let state = 0; state < states; state++) {
    first[state] = states
    // States are completed by depth, so the state of the shorter suffix is complete.
    if (before[state] !== 0) {
      let shorter = suffix[before[state]!]!
      let next = nextState(tree, shorter, unit[state]!)
      for (; next === 0 && shorter !== 0; work++) {
        shorter = suffix[shorter]!
        next = nextState(tree, shorter, unit[state]!)
      }
      suffix[state] = next
    }
    const end = suffix[state]!
    ending[state] = word[end] === -1 ? ending[end]! : end
    let at = from[state]!
    const length = depth[state]!
    if (state !== 0 && folded[sorted[at]!]!.length === length) word[state] = sorted[at]!
    lowest[state] = Math.min(lowest[end]!, word[state] === -1 ? noWord : word[state]!)
    while (at < to[state]! && folded[sorted[at]!]!.length === length) at++
    work += to[state]! - from[state]!
    while (at < to[state]!) {
      const next = states++
      from[next] = at
      unit[next] = folded[sorted[at]!]!.charCodeAt(length)
      while (at < to[state]! && folded[sorted[at]!]!.charCodeAt(length) === unit[next]) at++
      to[next] = at
      before[next] = state
      depth[next] = length + 1
    }
    if (work > pauseEvery) yield pause()
  }
  first[states] = states
  return tree

  function pause(): undefined {
    work = 0
  }
}

/** The state that a unit leads to, found by binary search; 0 if there is none. */
function nextState({ first, unit }: Tree, state: number, wanted: number): number {
  const end = first[state + 1]!
  let low = first[state]!
  let high = end
  while (low < high) {
    const middle = (low + high) >>> 1
    if (unit[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low < end && unit[low] === wanted ? low : 0
}

/**
 * Finds many words in a text at once: the time grows with the text and with the words, and not
 * with their product. Words are whole, whatever their case and the white space between their parts; words of
 * scripts without spaces are found anywhere. Overlapping words are all found.
 */
export class WordSearch {
  readonly #tree: Tree
  /** Characters of the longest word, and whether any word has a space. */
  readonly longest: number
  readonly hasSpaces: boolean

  constructor(words: readonly string[], tree: Tree = last(buildTree(words))) {
    this.#tree = tree
    this.longest = tree.longest
    this.hasSpaces = tree.hasSpaces
  }

  /** Reads words in steps of about a millisecond. Yields between them, so that the caller can let other requests run. */
  static *build(words: readonly string[]): Generator<undefined, WordSearch> {
    return new WordSearch(words, yield* buildTree(words))
  }

  /**
   * Yields all words in the text, and `undefined` after about a millisecond, so that the caller can let other requests
   * run. Returns how many characters at the end of the text may begin a word. Skips positions where only words with an
   * index of `limit.words` or more end. The caller may lower this limit between two results.
   */
  *find(
    text: string,
    limit: { words: number } = { words: noWord },
  ): Generator<FoundWord | undefined, number> {
    if (this.longest === 0) return 0
    const { suffix, lowest, depth } = this.#tree
    const starts = new Int32Array(this.longest)
    let state = 0
    let read = 0
    let work = 0
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
        const wanted = space ? spaceUnit : unit
        let next = nextState(this.#tree, state, wanted)
        for (; next === 0 && state !== 0; work++) {
          state = suffix[state]!
          next = nextState(this.#tree, state, wanted)
        }
        state = next
        if (++work > pauseEvery) {
          work = 0
          yield undefined
        }
        if (lowest[state]! >= limit.words) continue
        const startOf = (length: number) => starts[(read - length) % this.longest]!
        work += yield* this.#wordsAt(text, from + i + 1, state, startOf)
      }
    }
    return state === 0 ? 0 : text.length - starts[(read - depth[state]!) % this.longest]!
  }

  /** Yields the words that end in a state. Returns how many candidates it examined, also those inside a longer word. */
  *#wordsAt(
    text: string,
    to: number,
    state: number,
    startOf: (length: number) => number,
  ): Generator<FoundWord, number> {
    const { word: words, whole, ending, depth } = this.#tree
    const followed = isLetterOrNumber.test(characterAt(text, to))
    let count = 0
    for (let found = state; found !== 0; found = ending[found]!, count++) {
      const word = words[found]!
      if (word === -1 || (followed && whole[word])) continue
      const from = startOf(depth[found]!)
      if (whole[word] && isLetterOrNumber.test(characterBefore(text, from))) continue
      yield { word, from, to }
    }
    return count
  }
}

/** The result of a generator, without pauses. */
function last<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
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
  const to = Math.min(text.length, from + partLength)
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
