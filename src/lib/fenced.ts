/** A value as a block of JSON in a text, as models and people read and write it. */
export const fenced = (value: unknown): string =>
  `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``

/** The last block of JSON in a text, or the text itself where it is JSON; undefined where neither is. */
export function readFenced(text: string): unknown {
  for (const json of [lastBlock(text), text.trim()]) {
    if (json === undefined || !/^[[{]/.test(json.trim())) continue
    try {
      return JSON.parse(json)
    } catch {
      // the other one may be
    }
  }
  return undefined
}

/** The text between the last opening fence that is closed, and its closing fence. Reads each line once. */
function lastBlock(text: string): string | undefined {
  const lines = text.split('\n')
  let opened: number | undefined
  let block: [from: number, to: number] | undefined
  for (const [at, line] of lines.entries()) {
    if (!line.startsWith('```')) continue
    const kind = line.slice('```'.length).replaceAll('\t', ' ').trimEnd()
    if (opened !== undefined && kind === '' && at > opened + 1) {
      block = [opened + 1, at]
      opened = undefined
    } else if (opened === undefined && (kind === '' || kind === 'json')) opened = at
  }
  return block && lines.slice(...block).join('\n')
}
