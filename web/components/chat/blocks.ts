const fence = /^ {0,3}(`{3,}|~{3,})/
/** What a link or a footnote elsewhere in the text may mean. */
const definition = /^ {0,3}\[[^\]\n]+\]:/m
const item = /^ {0,3}([-*+]|\d{1,9}[.)])\s/

/**
 * Markdown in pieces that can be read one by one: parted at blank lines, but not inside of code, and not
 * between the items of a list. Where one piece may need another it stays one.
 */
export function blocksOf(text: string): string[] {
  if (definition.test(text)) return [text]
  const blocks: string[] = []
  let lines: string[] = []
  let open: string | undefined
  let blank = false
  for (const line of text.split('\n')) {
    const mark = fence.exec(line)?.[1]
    const goesOn = /^\s/.test(line) || (item.test(line) && item.test(lines[0] ?? ''))
    if (open === undefined && blank && line.trim() !== '' && !goesOn) {
      blocks.push(lines.join('\n'))
      lines = []
    }
    lines.push(line)
    blank = open === undefined && line.trim() === ''
    if (open === undefined) open = mark
    else if (mark?.startsWith(open) && line.trim() === mark) open = undefined
  }
  if (lines.some((line) => line.trim() !== '')) blocks.push(lines.join('\n'))
  return blocks
}
