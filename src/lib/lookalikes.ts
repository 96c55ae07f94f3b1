/** Letters that a text uses where a reader expects letters of another alphabet; each by its index. */
export interface Lookalike {
  at: number
  letter: string
}

/** Alphabets with letters that look like those of another. The others mix with Latin in ordinary text. */
const alphabets = [
  ...['Latin', 'Cyrillic', 'Armenian', 'Cherokee', 'Coptic', 'Lisu', 'Georgian', 'Deseret'],
  ...['Canadian_Aboriginal', 'Tifinagh', 'Osage', 'Old_Italic', 'Gothic', 'Vai', 'Warang_Citi'],
].map((name) => ({ name, letters: new RegExp(`\\p{Script=${name}}`, 'u') }))

/** Non-Latin letters that look like Latin ones. Other Greek letters stand beside Latin ones in formulas. */
const cyrillicTwins = 'акеорсухіјѕһԁԛԝӏѵүАВЕКМНОРСТУХІЈЅԚԜҮҺӀ'
const greekTwins = 'αγικνορτυχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺ'
const otherTwins = 'օոսհգզցՕՍ'
const twins = new Set(cyrillicTwins + greekTwins + otherTwins)
const greek = new Set(greekTwins)
/** Latin letters of phonetic alphabets, and small capitals. */
const phonetic = /[ɑɡɩɢɪɴʀʏʙʜʟ\u1D00-\u1D2Bꜰꜱ]/
/** Other Latin letters that look like ASCII letters or bars, and stand in ordinary words of some languages. */
const latinTwins = new Set('ıȷĸƅƿƽɣʋɯỿǀǁǂǃ')
/** Letters in parentheses, circles and squares (Ⓑ, 🅱). Unicode does not class them as letters. Without the regional indicators that form flags. */
const enclosed = String.raw`\u249C-\u24E9\u{1F110}-\u{1F129}\u{1F130}-\u{1F149}\u{1F150}-\u{1F169}\u{1F170}-\u{1F189}`
const isEnclosed = new RegExp(`^[${enclosed}]$`, 'u')
/** Signs that look like those of addresses and paths: / . : @ _ \ */
const signs =
  '\u2044\u2215\u29F8\uFF0F\u2571\u2024\uFF0E\uFF61\uFE52\uFF1A\uFE55\uA789\u2236\uFF20\uFE6B\uFF3F\u29F5\uFF3C\uFE68'
/** The full stop of Chinese and Japanese, which addresses may have in place of a point. */
const fullStop = '\u3002'
/** Hyphens, which also stand in ordinary words. */
const hyphens = '\u2010\u2011\uFE63\uFF0D'
const isSign = new RegExp(`[${signs}]`)
const isHyphen = new RegExp(`[${hyphens}]`)
const joint = String.raw`[\w:\/.@\\\-${signs}${fullStop}${hyphens}]`
const oddSign = new RegExp(`(?<=${joint})[${signs}${fullStop}${hyphens}](?=${joint})`, 'g')
const isJoint = new RegExp(joint)
/** A run of characters of addresses and paths; and a separator inside such a run. */
const joints = new RegExp(`${joint}+`, 'g')
const separator = new RegExp(String.raw`\w[:\/.@\\${signs}${fullStop}]+\w`)

// Invisible characters and marks on letters do not end a word. A character of a script that has no
// spaces does: in Japanese, Latin words stand right beside others.
const unspaced = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar']
const inWord = String.raw`[\p{L}\p{M}\p{N}\p{Default_Ignorable_Code_Point}${enclosed}]`
const letter = `[${inWord}--[${unspaced.map((script) => `\\p{sc=${script}}`).join('')}]]`
// `v` can leave characters out of a class, and is younger than our target's literals.
const word = new RegExp(`${letter}+`, 'gv')
/** An address, a path or a name: words with what joins them. */
const token = new RegExp(String.raw`[${letter}_.@\/:\-]+`, 'gv')
/** Inside an address or a path: a separator between two words. */
const separated = /[\p{L}\p{M}\p{N}_][:/.@]+[\p{L}\p{N}_]/u
const isUnspaced = new RegExp(`[${unspaced.map((script) => `\\p{sc=${script}}`).join('')}]`, 'u')
const outsideAscii = /[^\0-\x7F]/
const asciiLetter = /[a-zA-Z]/

/**
 * Finds letters that look like letters of another alphabet: in a word that mixes alphabets, the letters of the
 * smaller part (`pаypal` with a Cyrillic а); in an address or a path with Latin letters, whole words that could
 * be read as Latin (`аррӏе.com`), and Latin letters that could be read as ASCII ones (`paypaı.com`). Also finds
 * signs in an address or a path that look like its separators (`bank.com∕evil`). A sentence in one alphabet has none.
 */
export function lookalikes(text: string): Lookalike[] {
  if (!outsideAscii.test(text)) return []
  const found = signsIn(text)
  for (const { 0: joined, index: start } of text.matchAll(token)) {
    if (!outsideAscii.test(joined)) continue
    const latin = asciiLetter.test(joined)
    const isAddress = latin && (separated.test(joined) || isBesideSign(text, start, joined))
    for (const { 0: one, index } of joined.matchAll(word)) {
      if (!outsideAscii.test(one)) continue
      const letters = lettersOf(one)
      const odd = new Set(oddIn(letters, latin))
      if (isAddress) for (const letter of latinTwinsIn(letters)) odd.add(letter)
      for (const { at, letter } of odd) found.push({ at: start + index + at, letter })
    }
  }
  return found.sort((a, b) => a.at - b.at)
}

/** Whether a sign that looks like a separator stands directly before or after a token. */
const isBesideSign = (text: string, start: number, { length }: string): boolean =>
  isSign.test(text.charAt(start - 1)) || isSign.test(text.charAt(start + length))

/** Latin letters of a word that look like ASCII letters. A word with other letters outside ASCII, such as `ışık`, has none. */
function latinTwinsIn(letters: readonly Letter[]): readonly Letter[] {
  const twinsOf = letters.filter(({ letter }) => latinTwins.has(letter))
  const isOther = ({ letter }: Letter) => !asciiLetter.test(letter) && !latinTwins.has(letter)
  return letters.some((one) => one.alphabet === 'Latin' && isOther(one)) ? [] : twinsOf
}

/**
 * Finds signs that look like separators. Leaves out a sign between two digits (a fraction or a date), a hyphen outside of
 * addresses and paths, and `。` where Chinese or Japanese text follows the words beside it (`使用React。Vue也可以`).
 */
function signsIn(text: string): Lookalike[] {
  const found: Lookalike[] = []
  let run = { end: 0, isAddress: false, goesOn: false }
  for (const { 0: letter, index: at } of text.matchAll(oddSign)) {
    if (/^\d.\d$/.test(text.slice(at - 1, at + 2))) continue
    if (letter === fullStop || isHyphen.test(letter)) {
      if (at >= run.end) run = runAt(text, at)
      if (letter === fullStop ? run.goesOn : !run.isAddress) continue
    }
    found.push({ at, letter })
  }
  return found
}

/** The whole run around a sign. The caller reads each run once, because later signs of the run are inside it. */
function runAt(text: string, at: number) {
  let start = at
  while (start > 0 && isJoint.test(text[start - 1]!)) start--
  joints.lastIndex = start
  const run = joints.exec(text)![0]
  const end = start + run.length
  const isAddress = separator.test(run)
  return { end, isAddress, goesOn: isUnspaced.test(text.charAt(end)) }
}

interface Letter extends Lookalike {
  alphabet: string
}

/** The letters of a word that have an alphabet with lookalikes. */
function lettersOf(one: string): Letter[] {
  const letters: Letter[] = []
  const known = new Map<string, string | undefined>()
  let at = 0
  for (const letter of one) {
    if (!known.has(letter)) known.set(letter, alphabetOf(letter))
    const alphabet = known.get(letter)
    if (alphabet !== undefined) letters.push({ at, letter, alphabet })
    at += letter.length
  }
  return letters
}

function oddIn(letters: readonly Letter[], besideLatin: boolean): readonly Letter[] {
  const counts = new Map<string, number>()
  for (const { alphabet } of letters) counts.set(alphabet, (counts.get(alphabet) ?? 0) + 1)
  const foreign = letters.filter(({ alphabet }) => alphabet !== 'Latin')
  const readsAsLatin = foreign.every(isTwin)
  if (counts.size < 2) return besideLatin && readsAsLatin ? foreign : []
  if (counts.has('Latin') && readsAsLatin) return foreign
  const most = Math.max(...counts.values())
  const main = [...counts].find(([, count]) => count === most)?.[0]
  return letters.filter(({ alphabet }) => alphabet !== main)
}

const isTwin = ({ letter, alphabet }: Letter): boolean => alphabet === styled || twins.has(letter)

/** Latin letters in another form: 𝐩, ｐ, ⅼ, ⓟ. */
const styled = 'styled'

function alphabetOf(letter: string): string | undefined {
  if (asciiLetter.test(letter)) return 'Latin'
  if (isEnclosed.test(letter)) return styled
  if (!/[\p{L}\p{Nl}]/u.test(letter)) return undefined
  if (phonetic.test(letter) || /^[a-zA-Z]+$/.test(letter.normalize('NFKC'))) return styled
  if (greek.has(letter)) return 'Greek'
  return alphabets.find(({ letters }) => letters.test(letter))?.name
}
