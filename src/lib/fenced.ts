/** A value as a block of JSON in a text, as models and people read and write it. */
export const fenced = (value: unknown): string =>
  `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``

/** The last block of JSON in a text, or the text itself where it is JSON; undefined where neither is. */
export function readFenced(text: string): unknown {
  const blocks = [...text.matchAll(/^```(?:json)?[ \t]*\n([\s\S]*?)\n```[ \t]*$/gm)]
  for (const json of [blocks.at(-1)?.[1], text.trim()]) {
    if (json === undefined || !/^[[{]/.test(json.trim())) continue
    try {
      return JSON.parse(json)
    } catch {
      // the other one may be
    }
  }
  return undefined
}
