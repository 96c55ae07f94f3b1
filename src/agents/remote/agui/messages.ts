import type { RunAgentInput } from '@ag-ui/client'
import type { Message } from '../../../core/messages.ts'
import { callsOf, textOf } from '../../../core/messages.ts'
import { remoteIdOf } from '../scribe.ts'

type AguiMessage = RunAgentInput['messages'][number]
type Content = (AguiMessage & { role: 'user' })['content']
type ContentPart = Exclude<Content, string>[number]

/** Our history as AG-UI has it, by the ids that the remote knows. */
export function toAgui(messages: readonly Message[]): AguiMessage[] {
  const callIds = new Map(
    messages.flatMap(callsOf).map((call) => [call.callId, remoteIdOf(call)] as const),
  )
  return messages.map((message) => {
    const { role, callId = '' } = message
    const id = remoteIdOf(message)
    const content = textOf(message)
    if (role === 'user') return { id, role, content: contentOf(message) }
    if (role === 'system') return { id, role, content }
    if (role === 'tool') return { id, role, toolCallId: callIds.get(callId) ?? callId, content }
    const toolCalls = callsOf(message).map((call) => ({
      id: remoteIdOf(call),
      type: 'function' as const,
      function: { name: call.name, arguments: call.input },
    }))
    return { id, role, content, ...(toolCalls.length > 0 && { toolCalls }) }
  })
}

function contentOf(message: Message): Content {
  if (message.parts.every(({ type }) => type === 'text')) return textOf(message)
  return message.parts.flatMap((part): ContentPart[] => {
    if (part.type === 'text') return [{ type: 'text' as const, text: part.text }]
    if (part.type !== 'media') return []
    const { mediaType: mimeType, data, url = '' } = part
    const kind = /^(image|audio|video)\//.exec(mimeType)?.[1] ?? 'document'
    const type = kind as 'image' | 'audio' | 'video' | 'document'
    const source =
      data === undefined
        ? { type: 'url' as const, value: url, mimeType }
        : { type: 'data' as const, value: data, mimeType }
    return [{ type, source }]
  })
}
