/** Comparisons that are worth making: beyond, all of the old goes and all of the new comes. */
const mostCompared = 1_000_000
/** Lines shown around a change. */
const around = 3

/** The lines of a diff, and for each the sign that stands before it: a space, `-` or `+`. */
interface Steps {
  signs: string
  lines: string[]
}

/** What changes between two texts, as a unified diff without the names; empty when nothing does. */
export function unifiedDiff(before: string, after: string): string {
  if (before === after) return ''
  const { signs, lines } = stepsBetween(linesOf(before), linesOf(after))
  const near = nearChanges(signs)
  const out: string[] = []
  const at = { old: 1, new: 1 }
  for (let i = 0; i < lines.length; ) {
    if (near[i] === 0) {
      at.old++
      at.new++
      i++
      continue
    }
    const next = near.indexOf(0, i)
    const end = next === -1 ? lines.length : next
    const header = out.push('') - 1
    let [old, fresh] = [0, 0]
    for (; i < end; i++) {
      const sign = signs[i]!
      const line = lines[i]!
      if (sign !== '+') old++
      if (sign !== '-') fresh++
      if (line.endsWith('\n')) out.push(sign + line.slice(0, -1))
      else out.push(sign + line, '\\ No newline at end of file')
    }
    out[header] = `@@ -${range(at.old, old)} +${range(at.new, fresh)} @@`
    at.old += old
    at.new += fresh
  }
  return out.join('\n')
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

function stepsBetween(a: string[], b: string[]): Steps {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  const most = Math.min(a.length, b.length) - head
  while (tail < most && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const middle = changes(a.slice(head, a.length - tail), b.slice(head, b.length - tail))
  return {
    signs: ' '.repeat(head) + middle.signs + ' '.repeat(tail),
    lines: a.slice(0, head).concat(middle.lines, a.slice(a.length - tail)),
  }
}

/**
 * By the longest list of lines that both have in this order. Lines are compared as numbers: long lines that begin
 * alike would otherwise be read once for every pair.
 */
function changes(a: string[], b: string[]): Steps {
  if (a.length * b.length > mostCompared)
    return { signs: '-'.repeat(a.length) + '+'.repeat(b.length), lines: a.concat(b) }
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
