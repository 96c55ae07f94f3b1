import { atOnce } from '../lib/at-once.ts'
import { isJson } from '../lib/json.ts'
import { shownLine, visible } from '../lib/visible.ts'
import type { Tool, ToolContext } from './tool.ts'

/** Never characters of a text: what the model wrote is put between them to see where it ends up. */
const [open, close] = ['\uFDD0', '\uFDD1']
/** Characters of a whole sentence, and of one text in it. */
const most = { sentence: 300, text: 120 }

/**
 * What a call will do, in one sentence: the tool's own, in which all that the model wrote stands between
 * quotes, so that it cannot pass for ours. Where that cannot be told apart, the whole of it is quoted.
 */
export function sentence(
  tool: Pick<Tool, 'name' | 'describe'>,
  input: unknown,
  owner: ToolContext,
): string {
  const plain = described(tool, input, owner)
  if (plain === undefined) return `Run ${visible(tool.name)}`
  // Texts in a Set, a Map or a class instance cannot be marked: the tool would get another kind of input.
  const probe = isJson(input) ? described(tool, marked(input), owner) : undefined
  const parts = probe === undefined ? undefined : aligned(plain, probe.split(/[\uFDD0\uFDD1]/))
  if (!parts) return `Run ${visible(tool.name)}: ${quoted(plain)}`
  const whole = parts.map((part, i) => (i % 2 === 0 ? visible(part) : quoted(part))).join('')
  return whole.length <= most.sentence ? whole : `Run ${visible(tool.name)}: ${quoted(plain)}`
}

/** Between quotes, whatever quotes it has itself. */
export const quoted = (text: string): string =>
  `“${shownLine(text, most.text).replace(/[“”]/g, (one) => (one === '“' ? '⟦U+201C⟧' : '⟦U+201D⟧'))}”`

function described(
  tool: Pick<Tool, 'describe'>,
  input: unknown,
  owner: ToolContext,
): string | undefined {
  const text = atOnce(() => tool.describe?.(input, owner))
  return typeof text === 'string' && text.trim() !== '' ? text : undefined
}

/** The same input with every text in it between marks. */
function marked(value: unknown): unknown {
  if (typeof value === 'string') return open + value + close
  if (Array.isArray(value)) return value.map(marked)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, marked(part)]))
}

/** The plain sentence in parts, ours and the model's in turn. The end may count: only its numbers may differ. */
function aligned(plain: string, parts: readonly string[]): string[] | undefined {
  if (parts.length % 2 === 0) return undefined
  const before = parts.slice(0, -1)
  const start = before.join('')
  const end = plain.slice(start.length)
  if (!plain.startsWith(start) || uncounted(end) !== uncounted(parts.at(-1)!)) return undefined
  return [...before, end]
}

/** A number with the word after it, which may be of the plural: `1 byte`, `5 bytes`. */
const uncounted = (text: string) => text.replace(/\d[\d.,]*( \p{L}+)?/gu, '#')
