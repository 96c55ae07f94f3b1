/** Comparisons that are worth making: beyond, all of the old goes and all of the new comes. */
const mostCompared = 4_000_000
/** Lines shown around a change. */
const around = 3

interface Step {
  sign: ' ' | '-' | '+'
  line: string
}

/** What changes between two texts, as a unified diff without the names; empty when nothing does. */
export function unifiedDiff(before: string, after: string): string {
  if (before === after) return ''
  const steps = stepsBetween(linesOf(before), linesOf(after))
  const near = steps.map((_, i) =>
    steps.slice(Math.max(0, i - around), i + around + 1).some(({ sign }) => sign !== ' '),
  )
  const out: string[] = []
  const at = { old: 1, new: 1 }
  for (let i = 0; i < steps.length; ) {
    if (!near[i]) {
      at.old++
      at.new++
      i++
      continue
    }
    const end = near.indexOf(false, i)
    const hunk = steps.slice(i, end === -1 ? undefined : end)
    const old = hunk.filter(({ sign }) => sign !== '+').length
    const fresh = hunk.filter(({ sign }) => sign !== '-').length
    out.push(`@@ -${range(at.old, old)} +${range(at.new, fresh)} @@`)
    for (const { sign, line } of hunk) {
      out.push(sign + line.replace(/\n$/, ''))
      if (!line.endsWith('\n')) out.push('\\ No newline at end of file')
    }
    at.old += old
    at.new += fresh
    i += hunk.length
  }
  return out.join('\n')
}

/** An empty side stands before its first line, by the format. */
const range = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`

const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

function stepsBetween(a: string[], b: string[]): Step[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  const most = Math.min(a.length, b.length) - head
  while (tail < most && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const middle = changes(a.slice(head, a.length - tail), b.slice(head, b.length - tail))
  const same = (lines: string[]) => lines.map((line): Step => ({ sign: ' ', line }))
  return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))]
}

/** By the longest list of lines that both have in this order. */
function changes(a: string[], b: string[]): Step[] {
  const gone = (line: string): Step => ({ sign: '-', line })
  const come = (line: string): Step => ({ sign: '+', line })
  if (a.length * b.length > mostCompared) return [...a.map(gone), ...b.map(come)]
  const width = b.length + 1
  const common = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
  const steps: Step[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      steps.push({ sign: ' ', line: a[i++]! })
      j++
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) steps.push(gone(a[i++]!))
    else steps.push(come(b[j++]!))
  }
  return [...steps, ...a.slice(i).map(gone), ...b.slice(j).map(come)]
}
