import type { Edit } from '../../core/edited.ts'
import { markerOf } from '../../core/large-parts.ts'
import type { Message, Part } from '../../core/messages.ts'
import { callsOf, textOf } from '../../core/messages.ts'
import { insideOf } from '../../lib/base64.ts'
import type { ClientMessage } from './shapes.ts'

/** AG-UI's messages, in and out. */
export interface AguiMessage {
  id: string
  role: 'user' | 'assistant' | 'tool' | 'reasoning' | 'activity'
  content?: unknown
  toolCalls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
  toolCallId?: string
  activityType?: string
}

/** Reasoning is a message of its own there, so it needs an id of its own. */
export const reasoningId = (messageId: string) => `${messageId}-reasoning`

/** The message that was thought about. */
export const thinkerOf = (id: string) => id.replace(/-reasoning$/, '')

export function fromClient(message: ClientMessage): Message | undefined {
  const { id, role, toolCallId } = message
  if (role === 'reasoning' || role === 'activity') return undefined
  const parts = partsOf(message)
  if (role === 'developer' || role === 'system') return { id, role: 'system', parts }
  if (role === 'tool') return { id, role, parts, ...(toolCallId && { callId: toolCallId }) }
  for (const { id: callId, function: call } of message.toolCalls) {
    parts.push({ type: 'call', callId, name: call.name, input: call.arguments })
  }
  return { id, role, parts }
}

function partsOf({ content }: ClientMessage): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content.map((part): Part => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    if (part.type === 'binary') return media(part.mimeType, part.data, part.url, part.filename)
    const { type, value, mimeType } = part.source
    const kind = mimeType ?? `${part.type === 'document' ? 'application' : part.type}/*`
    return type === 'data' ? media(kind, value) : media(kind, undefined, value)
  })
}

function media(given: string, bytes?: string, url?: string, name?: string): Part {
  const inside = url === undefined ? undefined : insideOf(url)
  const { mediaType = given, data = bytes } = inside ?? {}
  return {
    type: 'media',
    mediaType,
    ...(data !== undefined && { data }),
    ...(url !== undefined && !inside && { url }),
    ...(name !== undefined && { name }),
  }
}

/** What a client has on its screen of one message: none, one, or reasoning and the rest. */
export function toClient(message: Message, edits: ReadonlyMap<string, Edit>): AguiMessage[] {
  const { id } = message
  if (message.role === 'tool') {
    return [{ id, role: 'tool', toolCallId: message.callId ?? '', content: textOf(message) }]
  }
  if (message.role === 'user') return [{ id, role: 'user', content: userContent(message) }]
  if (message.role === 'system') return []
  const reasoning = thoughtOf(message)
  const toolCalls = callsOf(message).map(({ callId, name, input }) => ({
    id: callId,
    type: 'function' as const,
    function: whenRead({ name, arguments: '' }, 'arguments', () =>
      argumentsOf(callId, input, edits),
    ),
  }))
  const said: AguiMessage = { id, role: 'assistant', content: textOf(message) }
  if (toolCalls.length > 0) said.toolCalls = toolCalls
  const thought: AguiMessage = { id: reasoningId(id), role: 'reasoning', content: reasoning }
  const speaks = said.content !== '' || toolCalls.length > 0
  const thinksFirst = message.parts.find(({ type }) => type !== 'media')?.type === 'reasoning'
  const shown = [...(reasoning ? [thought] : []), ...(speaks ? [said] : [])]
  return thinksFirst ? shown : shown.reverse() // in the order in which it was told
}

/**
 * The object with a text that is made when it is first read. The text may be long, and a list of messages is made at once
 * but serialized in steps.
 */
export function whenRead<T extends object>(object: T, name: keyof T, make: () => string): T {
  let text: string | undefined
  const get = () => {
    text ??= make()
    return text
  }
  return Object.defineProperty(object, name, { get, enumerable: true, configurable: true })
}

/** The arguments that ran, where the approver changed them; otherwise those that the model wrote. */
function argumentsOf(callId: string, written: string, edits: ReadonlyMap<string, Edit>): string {
  const edit = edits.get(callId)
  return edit ? JSON.stringify(edit.input) : written
}

function userContent(message: Message): unknown {
  if (message.parts.every((part) => part.type === 'text')) return textOf(message)
  return message.parts.flatMap((part): object[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'media') return []
    const { mediaType, url, stored, data = stored && markerOf(stored) } = part
    const type = /^(image|audio|video)\//.exec(mediaType)?.[1] ?? 'document'
    const source = { type: data === undefined ? 'url' : 'data', value: data ?? url ?? '' }
    return [{ type, source: { ...source, mimeType: mediaType } }]
  })
}

export function thoughtOf({ parts }: Message): string {
  let text = ''
  for (const part of parts) if (part.type === 'reasoning') text += part.text
  return text
}
