import { validHistory } from '../core/history.ts'
import { callsOf, type Message, type Part, textOf } from '../core/messages.ts'
import { covers, type ModelRequest } from '../core/model.ts'
import { isBase64 } from '../lib/base64.ts'
import { safeCallId, safeInput, safeName, safeText } from './safe.ts'

type MediaPart = Extract<Part, { type: 'media' }>
export type SaidPart = { type: 'text'; text: string; meta?: Meta } | MediaPart
export type AnswerPart =
  | { type: 'text' | 'reasoning'; text: string; meta?: Meta }
  | { type: 'call'; callId: string; name: string; input: Record<string, unknown>; meta?: Meta }
export interface ToolResult {
  callId: string
  name: string
  text: string
  failed: boolean
}
export type Meta = Record<string, Record<string, string>>

/** One message of a request, in a form that every provider takes. */
export type Turn =
  | { role: 'user'; parts: SaidPart[] }
  | { role: 'assistant'; parts: AnswerPart[] }
  | { role: 'tool'; results: ToolResult[] }

export interface Settled {
  system: string
  turns: Turn[]
}

export interface Habits {
  accepts: readonly string[]
  /** What a provider wants back with a part: fields, by the name it keeps them under. */
  meta?: { under: string; fields: readonly string[] }
  /** Calls and results are told as text: the request offers no tools. */
  flat?: boolean
}

const beginning = '(The conversation begins here.)'
const onward = 'Go on.'

/**
 * Whatever is in the history, as turns that OpenAI, Anthropic and Gemini all accept (I8): the user
 * speaks first and last, nobody twice in a row, nothing is empty, every call has its result right after
 * it, ids and names are of letters that all of them take, inputs are objects, text is Unicode.
 */
export function settle(request: ModelRequest, habits: Habits): Settled {
  const turns: Turn[] = []
  const messages = validHistory(request.messages)
  const inserted = messages.filter(({ role }) => role === 'system').map(textOf)
  const system = [...request.system, ...inserted].map(safeText).filter(isSaid).join('\n\n')
  const calls = messages.filter(({ role }) => role === 'assistant').flatMap(callsOf)
  const called = new Map(calls.map(({ callId, name }) => [callId, name]))
  let attached: MediaPart[] = []
  const attach = () => {
    if (attached.length > 0) addUser(turns, attached)
    attached = []
  }
  for (const message of messages) {
    if (message.role === 'tool') {
      const media = message.parts.filter((part) => part.type === 'media')
      const readable = media.filter((part) => reads(habits, part))
      attached.push(...readable)
      const name = called.get(message.callId ?? '') ?? ''
      addResult(turns, resultOf(message, name, media, readable), habits)
      continue
    }
    attach()
    if (message.role === 'user') addUser(turns, userParts(message, habits))
    else if (message.role === 'assistant') addAnswer(turns, message, habits)
  }
  attach()
  if (turns[0]?.role !== 'user') turns.unshift(textTurn(beginning))
  if (turns.at(-1)?.role === 'assistant') turns.push(textTurn(onward))
  return { system, turns }
}

const textTurn = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })
const isSaid = (text: string): boolean => text.trim() !== ''

function addUser(turns: Turn[], parts: SaidPart[]): void {
  const last = turns.at(-1)
  if (parts.length === 0) return
  if (last?.role === 'user') last.parts.push(...parts)
  else turns.push({ role: 'user', parts: [...parts] })
}

function addAnswer(turns: Turn[], message: Message, habits: Habits): void {
  const parts = answerParts(message, habits)
  if (parts.length === 0) return
  const last = turns.at(-1)
  const joins = last?.role === 'assistant' && !last.parts.some(({ type }) => type === 'call')
  if (joins) last.parts.push(...parts)
  else turns.push({ role: 'assistant', parts })
}

function addResult(turns: Turn[], result: ToolResult, { flat }: Habits): void {
  const last = turns.at(-1)
  if (flat) addUser(turns, [{ type: 'text', text: `(${result.name} returned: ${result.text})` }])
  else if (last?.role === 'tool') last.results.push(result)
  else turns.push({ role: 'tool', results: [result] })
}

function userParts({ parts }: Message, habits: Habits): SaidPart[] {
  return parts.flatMap((part): SaidPart[] => {
    if (part.type === 'media' && reads(habits, part)) return [part]
    if (part.type === 'media')
      return [{ type: 'text', text: `(${part.mediaType}, not shown here)` }]
    const text = part.type === 'text' ? safeText(part.text) : ''
    return isSaid(text) ? [{ type: 'text', text }] : []
  })
}

/** Thoughts go back only whole, and only to the provider that had them: it signed them. */
function answerParts(message: Message, habits: Habits): AnswerPart[] {
  const said = message.parts.flatMap((part): AnswerPart[] => {
    if (part.type === 'media') return [{ type: 'text', text: `(${part.mediaType})` }]
    if (part.type === 'call') return []
    const text = safeText(part.text)
    const meta = metaOf(part, habits)
    const own = meta && { meta }
    if (part.type === 'text') return isSaid(text) ? [{ type: 'text', text, ...own }] : []
    return meta && !message.partial ? [{ type: 'reasoning', text, meta }] : []
  })
  const calls = callsOf(message).map((call): AnswerPart => {
    const name = safeName(call.name)
    const input = safeInput(call.input)
    if (habits.flat) return { type: 'text', text: `(called ${name}: ${JSON.stringify(input)})` }
    const meta = metaOf(call, habits)
    return { type: 'call', callId: safeCallId(call.callId), name, input, ...(meta && { meta }) }
  })
  // A thought that nothing follows was cut: providers want what it led to.
  const parts = [...said, ...calls]
  return parts.slice(0, parts.findLastIndex(({ type }) => type !== 'reasoning') + 1)
}

/** Its name is that of its call: some results have another, or none. */
function resultOf(
  message: Message,
  name: string,
  media: readonly MediaPart[],
  readable: readonly MediaPart[],
): ToolResult {
  const notes = media.map((one) =>
    readable.includes(one)
      ? `(${one.mediaType}, attached below)`
      : `(${one.mediaType}, not shown here)`,
  )
  const text = [safeText(textOf(message)), ...notes].filter(isSaid).join('\n')
  return {
    callId: safeCallId(message.callId ?? ''),
    name: safeName(name),
    text: text === '' ? '(no output)' : text,
    failed: message.failed ?? false,
  }
}

function metaOf({ meta }: Part, { meta: wanted }: Habits): Meta | undefined {
  const kept = wanted && meta?.[wanted.under]
  if (!wanted || typeof kept !== 'object' || kept === null) return undefined
  const fields = wanted.fields.flatMap((field) => {
    const value = (kept as Record<string, unknown>)[field]
    return typeof value === 'string' && value.trim() !== '' ? [[field, value] as const] : []
  })
  return fields.length > 0 ? { [wanted.under]: Object.fromEntries(fields) } : undefined
}

/** A picture that is neither here nor anywhere cannot be shown. */
function reads({ accepts }: Habits, { mediaType, data, url }: MediaPart): boolean {
  if (data && !isBase64(data)) return false
  if (!data && (url === undefined || !/^https?:\/\//.test(url) || !URL.canParse(url))) return false
  return accepts.some((one) => covers(one, mediaType))
}
