/** Small readers of what people write: tolerant of case, politeness, quotes and full stops. */

const name = String.raw`("[^"]+"|'[^']+'|\x60[^\x60]+\x60|\S+)`
const please = String.raw`^(?:(?:please|now|can you|could you),?\s)*`
const called = String.raw`(?:(?:the|a|new|text|file|named|called)\s)*`

export const patterns = {
  recommend: /^Recommend the next actions for this account\b/,
  greeting: /^(?:hi|hello|hey|help)(?: there)?[\s!.,?]*$|\bwhat can you do\b/i,
  weather: /\bweather\b(?:\slike)?(?:\s(?:in|for|at|of))?(?:\s(.{1,80}))?/i,
  writeNamed: new RegExp(
    `${please}(?:write|create|make|save)\\s(?=.{0,40}\\bfile\\s)${called}${name}\\s` +
      '(?:with|containing|saying|that says)' +
      String.raw`(?:\s(?:the|text|content|contents|words?))*:?\s(.+)$`,
    'is',
  ),
  writeTo: new RegExp(
    `${please}(?:write|save|put)\\s(.+)\\s(?:to|into|in)\\s${called}${name}$`,
    'is',
  ),
  read: new RegExp(`${please}(?:read|open|show|cat)\\s(?:me\\s)?${called}${name}$`, 'i'),
  list: new RegExp(
    String.raw`(?:^ls|\b(?:list|show|what)\b.{0,30}\bfiles\b)` +
      String.raw`(?:.{0,20}\bin\s(?:(?:the|folder)\s)*(?!the\s|folder\s|workspace|here)${name})?`,
    'i',
  ),
  run: new RegExp(
    `${please}(?:run|execute|evaluate|eval)` +
      String.raw`(?:\s(?:this|the|some|following|code|javascript|js|snippet)\b)*:?\s(.+)$`,
    'is',
  ),
  useTool: new RegExp(
    String.raw`${please}(?:use|call)\sthe\stool\s([\w-]{1,64})(?:\swith\s(\{.*\}))?[.!]?$`,
    'is',
  ),
  threeThings: /\b(?:three|3) things\b/i,
  think: /^think\b/i,
  fail: /^(?:please )?fail\b/i,
  slow: /^(?:please )?be (?:very )?slow/i,
  echo: new RegExp(`${please}echo\\s(.+)$`, 'is'),
  count: /\bcount (?:up )?to (\d{1,9})/i,
  loop: /^(?:please )?loop\b/i,
}

/** A name without the quotes around it, or without the full stop after it. */
export function nameIn(text = ''): string {
  const quoted = unquote(text)
  if (quoted !== text) return quoted
  let end = text.length
  while (end > 0 && '.,!?'.includes(text[end - 1]!)) end--
  return text.slice(0, end)
}

export function unquote(text = ''): string {
  const trimmed = text.trim()
  const quote = trimmed[0] ?? ''
  const inner = trimmed.slice(1, -1)
  const quoted = trimmed.length > 1 && '"\'`'.includes(quote) && trimmed.endsWith(quote)
  return quoted && !inner.includes(quote) ? inner : trimmed
}

export function cityIn(text = ''): string {
  const bare = text.replace(/[?!.,;:]+.*$/s, '')
  return unquote(bare.replace(/\s(?:today|tomorrow|now|please|right now|like)\b.*$/i, ''))
}

/** The code without the fence people put around it. */
export function codeIn(text = ''): string {
  const fenced = /^\s*```[^\n`]*\n?(.*?)```/s.exec(text)
  return (fenced?.[1] ?? unquoteTicks(text)).trim()
}

const unquoteTicks = (text: string) => (/^\s*`[^`]+`\s*$/.test(text) ? unquote(text) : text)
