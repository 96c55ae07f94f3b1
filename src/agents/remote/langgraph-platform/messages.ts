import type { Message } from '../../../core/messages.ts'
import { callsOf, textOf } from '../../../core/messages.ts'
import { remoteIdOf } from '../scribe.ts'

/** Our history as LangChain writes messages down, by the ids that the remote knows. */
export function toLangChain(messages: readonly Message[], known: readonly Message[]) {
  const callIds = new Map(
    known.flatMap(callsOf).map((call) => [call.callId, remoteIdOf(call)] as const),
  )
  return messages.map((message) => {
    const { role, name, callId = '' } = message
    const id = remoteIdOf(message)
    const content = textOf(message)
    if (role === 'user') return { type: 'human', id, content: contentOf(message) }
    if (role === 'system') return { type: 'system', id, content }
    if (role === 'tool') {
      const tool_call_id = callIds.get(callId) ?? callId
      return { type: 'tool', id, tool_call_id, content, ...(name && { name }) }
    }
    const tool_calls = callsOf(message).map((call) => ({
      id: remoteIdOf(call),
      name: call.name,
      args: argumentsOf(call.input),
    }))
    return { type: 'ai', id, content, tool_calls }
  })
}

function contentOf(message: Message) {
  if (message.parts.every(({ type }) => type === 'text')) return textOf(message)
  return message.parts.flatMap((part): object[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'media') return []
    const { mediaType, data, url } = part
    const to = data === undefined ? url : `data:${mediaType};base64,${data}`
    return [{ type: 'image_url', image_url: { url: to ?? '' } }]
  })
}

function argumentsOf(input: string): unknown {
  try {
    return JSON.parse(input === '' ? '{}' : input)
  } catch {
    return {}
  }
}
