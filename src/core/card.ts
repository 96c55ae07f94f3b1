import { z } from 'zod'
import { canonical } from '../lib/canonical.ts'
import { unifiedDiff } from '../lib/diff.ts'
import { textsOf } from '../lib/json-texts.ts'
import { hides, mixes, shown, shownLine, visible } from '../lib/visible.ts'
import type { Preview, Risk, Tool } from './tool.ts'

const shownSchema = z.object({ text: z.string(), cut: z.number().optional() })

/**
 * What the person who decides is shown. The server makes it from the real arguments; what cannot be seen
 * in them is written out, what the model wrote stands between quotes or apart, and what is left out is counted.
 */
export const cardSchema = z.object({
  title: z.string(),
  tool: z.string().optional(),
  server: z.string().optional(),
  agent: z.string().optional(),
  access: z.enum(['read', 'write', 'execute']).optional(),
  target: z.string().optional(),
  /** One line for each, by name; texts in quotes. */
  arguments: z.array(z.string()),
  risk: z.object({ level: z.enum(['low', 'medium', 'high']), why: z.string() }),
  preview: shownSchema.extend({ kind: z.enum(['diff', 'code', 'text']) }).optional(),
  /** The model's own words beside the call: its reasons, not facts. */
  said: shownSchema.optional(),
  /** An effect in doubt: when it began, as milliseconds since 1970. */
  began: z.number().optional(),
})
export type Card = z.infer<typeof cardSchema>

/** Characters of each part. A card is for reading; all of the arguments are in the ask. */
const most = { title: 300, target: 300, line: 1_000, lines: 50, preview: 20_000, said: 2_000 }

export interface CardParts {
  title: string
  tool?: Pick<Tool, 'name' | 'server' | 'access'>
  agent?: string
  input: unknown
  /** The JSON of the parsed input, if it differs from `input`. The card checks its texts and does not list them. */
  parsed?: unknown
  target?: string | undefined
  risk?: Risk | undefined
  preview?: Preview | undefined
  said?: string
  began?: number
  /** It was approved before, but for a state that has changed. */
  again?: boolean
}

/** `title` is shown as it is: see `sentence`. */
export function cardOf(parts: CardParts): Card {
  const { title, tool, agent, input, target, preview, said = '', began } = parts
  return {
    title,
    ...(tool && { tool: visible(tool.name) }),
    ...(tool?.server !== undefined && { server: visible(tool.server) }),
    ...(agent !== undefined && { agent: visible(agent) }),
    ...(tool?.access && { access: tool.access }),
    ...(target !== undefined && { target: shownLine(target, most.target) }),
    arguments: argumentLines(input),
    risk: riskOf(parts),
    ...(preview && { preview: previewOf(preview) }),
    ...(said.trim() !== '' && { said: shown(said.trim(), most.said, { lines: true }) }),
    ...(began !== undefined && { began }),
  }
}

/** One line for each argument, by name, as canonical JSON. */
function argumentLines(input: unknown): string[] {
  if (input === undefined) return []
  const isList = typeof input !== 'object' || input === null || Array.isArray(input)
  const named = isList ? { input } : (input as Record<string, unknown>)
  const names = Object.keys(named)
    .filter((name) => named[name] !== undefined)
    .sort()
  const lines = names.slice(0, most.lines).map((name) => {
    const value = shownLine(canonical(named[name]) ?? 'null', most.line)
    return `${shownLine(name, 100)}: ${value}`
  })
  const left = names.length - lines.length
  return left > 0 ? [...lines, `… (${left.toLocaleString('en')} more arguments)`] : lines
}

const byAccess: Record<NonNullable<Tool['access']> | 'unknown', Risk> = {
  read: { level: 'low', why: 'It reads, and changes nothing.' },
  write: { level: 'medium', why: 'It changes something.' },
  execute: { level: 'high', why: 'It runs code.' },
  unknown: { level: 'high', why: 'Nobody has said what it touches.' },
}

const unseen = 'The arguments hold characters that cannot be seen; they are marked.'

const unchecked =
  'The arguments are too long to be checked completely for characters that cannot be seen or that look like others.'

const outdated =
  'This call was approved before, but what it changes has changed since. Nothing was done yet.'

const alike =
  'The arguments hold letters that look like those of another alphabet; they are marked.'

function riskOf({ tool, input, parsed, again, ...parts }: CardParts): Risk {
  const risk = parts.risk ?? byAccess[tool?.access ?? 'unknown']
  const why = `${again ? `${outdated} ` : ''}${shownLine(risk.why, most.title)}`
  // As texts: JSON would write some of them as escapes, which can be seen but say the same.
  const { texts, complete } = checkedTexts([input, parsed])
  const odd = [
    ...(texts.some(hides) ? [unseen] : []),
    ...(texts.some(mixes) ? [alike] : []),
    ...(complete ? [] : [unchecked]),
  ]
  return odd.length === 0
    ? { level: risk.level, why }
    : { level: 'high', why: [why, ...odd].join(' ') }
}

/** Characters of texts outside of ASCII that are checked: a million would keep the server for half a second. */
const maxChecked = 50_000
/** Nothing in such a text is hidden or looks like another letter. */
const plain = /^[\n\t -~]*$/

/** The texts and names in a value that are not plain, up to `maxChecked` characters in all. */
function checkedTexts(input: unknown): { texts: string[]; complete: boolean } {
  const texts: string[] = []
  let left = maxChecked
  for (const text of textsOf(input)) {
    if (plain.test(text)) continue
    if (text.length > left) return { texts: [...texts, text.slice(0, left)], complete: false }
    left -= text.length
    texts.push(text)
  }
  return { texts, complete: true }
}

function previewOf(preview: Preview): NonNullable<Card['preview']> {
  const { kind } = preview
  if (kind !== 'diff') return { kind, ...shown(preview.text, most.preview, { lines: true }) }
  const { text, length } = unifiedDiff(preview.before ?? '', preview.after, most.preview)
  if (length === 0) return { kind: 'text', text: 'Nothing changes.' }
  const { text: begin, cut = 0 } = shown(text, most.preview, { lines: true })
  const left = cut + length - text.length
  return { kind, text: begin, ...(left > 0 && { cut: left }) }
}
