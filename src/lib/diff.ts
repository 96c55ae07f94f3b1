/** Comparisons that are worth making: beyond, all of the old goes and all of the new comes. */
const mostCompared = 1_000_000
/** Limit of the lines of both texts together: beyond it, lines are not compared. */
const mostLines = 20_000
/** Lines shown around a change. */
const around = 3

/** The lines of a diff, and for each the sign that stands before it: a space, `-` or `+`. */
interface Steps {
  signs: string
  lines: string[]
}

/** A diff of which only the beginning may be kept, and the length of all of it. */
export interface Diff {
  text: string
  length: number
}

/**
 * Returns the unified diff of two texts without file names, or an empty text if they are equal. Of a long diff, `text`
 * has `maxLength` characters and the rest of the last line at least; `length` counts the rest.
 */
export function unifiedDiff(
  before: string,
  after: string,
  maxLength = Number.POSITIVE_INFINITY,
): Diff {
  const output = new Output(maxLength)
  if (before === after) return output.diff()
  const head = commonHead(before, after)
  const tail = commonTail(before, after, head)
  const old = before.slice(head, before.length - tail)
  const fresh = after.slice(head, after.length - tail)
  const counts = { old: countLines(old), new: countLines(fresh) }
  const lead = lastLines(before.slice(0, head))
  const rest = firstLines(before.slice(before.length - tail))
  const first = countLines(before.slice(0, head)) - lead.length + 1
  const isCompared = counts.old + counts.new <= mostLines && counts.old * counts.new <= mostCompared
  if (isCompared) {
    const { signs, lines } = changes(linesOf(old), linesOf(fresh))
    const steps = {
      signs: ' '.repeat(lead.length) + signs + ' '.repeat(rest.length),
      lines: [...lead, ...lines, ...rest],
    }
    writeHunks(steps, first, output)
  } else {
    const beside = lead.length + rest.length
    output.add(headerOf({ old: first, new: first }, counts.old + beside, counts.new + beside))
    for (const line of lead) addLine(output, ' ', line)
    addLines(output, '-', old, counts.old)
    addLines(output, '+', fresh, counts.new)
    for (const line of rest) addLine(output, ' ', line)
  }
  return output.diff()
}

/** Lines of a diff, kept until they have `maxLength` characters, then only counted. */
class Output {
  readonly #maxLength: number
  readonly #lines: string[] = []
  #length = -1

  constructor(maxLength: number) {
    this.#maxLength = maxLength
  }

  get isFull(): boolean {
    return this.#length >= this.#maxLength
  }

  add(line: string): void {
    if (!this.isFull) this.#lines.push(line)
    this.#length += line.length + 1
  }

  /** Counts characters of lines that are not added, with their line ends. */
  skip(length: number): void {
    this.#length += length
  }

  diff(): Diff {
    return { text: this.#lines.join('\n'), length: Math.max(0, this.#length) }
  }
}

function writeHunks({ signs, lines }: Steps, first: number, output: Output): void {
  const near = nearChanges(signs)
  const at = { old: first, new: first }
  for (let i = 0; i < lines.length; ) {
    if (near[i] === 0) {
      at.old++
      at.new++
      i++
      continue
    }
    const next = near.indexOf(0, i)
    const end = next === -1 ? lines.length : next
    let [old, fresh] = [0, 0]
    for (let n = i; n < end; n++) {
      if (signs[n] !== '+') old++
      if (signs[n] !== '-') fresh++
    }
    output.add(headerOf(at, old, fresh))
    for (; i < end; i++) addLine(output, signs[i]!, lines[i]!)
    at.old += old
    at.new += fresh
  }
}

const headerOf = (at: { old: number; new: number }, old: number, fresh: number): string =>
  `@@ -${range(at.old, old)} +${range(at.new, fresh)} @@`

const noLineEnd = '\\ No newline at end of file'

function addLine(output: Output, sign: string, line: string): void {
  const isEnded = line.endsWith('\n')
  output.add(sign + (isEnded ? line.slice(0, -1) : line))
  if (!isEnded) output.add(noLineEnd)
}

/** Adds the lines of a text while there is room. Counts the others by their number and length. */
function addLines(output: Output, sign: string, text: string, count: number): void {
  let start = 0
  let left = count
  for (; start < text.length && !output.isFull; left--) {
    const end = text.indexOf('\n', start) + 1 || text.length
    addLine(output, sign, text.slice(start, end))
    start = end
  }
  if (left === 0) return
  output.skip(text.length - start + left)
  if (!text.endsWith('\n')) output.skip(noLineEnd.length + 2)
}

/** 1 for each step that is a change or stands at most `around` lines from one. */
function nearChanges(signs: string): Uint8Array {
  const near = new Uint8Array(signs.length)
  let marked = 0
  for (let i = 0; i < signs.length; i++) {
    if (signs[i] === ' ') continue
    const end = Math.min(signs.length, i + around + 1)
    for (marked = Math.max(marked, i - around); marked < end; marked++) near[marked] = 1
  }
  return near
}

/** An empty side stands before its first line, by the format. */
const range = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`

function linesOf(text: string): string[] {
  const lines: string[] = []
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf('\n', start) + 1 || text.length
    lines.push(text.slice(start, end))
    start = end
  }
  return lines
}

/** Characters of the whole lines that both texts begin with. */
function commonHead(before: string, after: string): number {
  const most = Math.min(before.length, after.length)
  let same = 0
  while (same < most && before.charCodeAt(same) === after.charCodeAt(same)) same++
  return same === 0 ? 0 : before.lastIndexOf('\n', same - 1) + 1
}

/** Characters of the whole lines that both texts end with, after their common head. */
function commonTail(before: string, after: string, head: number): number {
  const most = Math.min(before.length, after.length) - head
  const [a, b] = [before.length - 1, after.length - 1]
  let same = 0
  while (same < most && before.charCodeAt(a - same) === after.charCodeAt(b - same)) same++
  const isLineStart = (text: string) => {
    const at = text.length - same
    return at === head || text.charCodeAt(at - 1) === lineEnd
  }
  if (isLineStart(before) && isLineStart(after)) return same
  const end = before.indexOf('\n', before.length - same)
  return end === -1 ? 0 : before.length - end - 1
}

const lineEnd = 10

function countLines(text: string): number {
  let count = text === '' || text.endsWith('\n') ? 0 : 1
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === lineEnd) count++
  return count
}

/** The last lines of a text that ends with a line end, as many as stand before a change. */
function lastLines(text: string): string[] {
  let start = text.length
  for (let n = 0; n < around && start > 0; n++)
    start = start === 1 ? 0 : text.lastIndexOf('\n', start - 2) + 1
  return linesOf(text.slice(start))
}

/** The first lines of a text, as many as stand after a change. */
function firstLines(text: string): string[] {
  let end = 0
  for (let n = 0; n < around && end < text.length; n++)
    end = text.indexOf('\n', end) + 1 || text.length
  return linesOf(text.slice(0, end))
}

/**
 * By the longest list of lines that both have in this order. Lines are compared as numbers: long lines that begin
 * alike would otherwise be read once for every pair.
 */
function changes(a: string[], b: string[]): Steps {
  const numbers = new Map<string, number>()
  const numberOf = (line: string) => {
    const known = numbers.get(line) ?? numbers.size
    numbers.set(line, known)
    return known
  }
  const old = Uint32Array.from(a, numberOf)
  const fresh = Uint32Array.from(b, numberOf)
  const width = b.length + 1
  const common = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        old[i] === fresh[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
  let signs = ''
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length) {
    if (old[i] === fresh[j]) {
      signs += ' '
      lines.push(a[i++]!)
      j++
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) {
      signs += '-'
      lines.push(a[i++]!)
    } else {
      signs += '+'
      lines.push(b[j++]!)
    }
  }
  signs += '-'.repeat(a.length - i) + '+'.repeat(b.length - j)
  return { signs, lines: lines.concat(a.slice(i), b.slice(j)) }
}
