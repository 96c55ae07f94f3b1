import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  type MessageContent,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages'
import { withArguments } from '../../core/history.ts'
import { callsOf, type Message, type Part, textOf } from '../../core/messages.ts'
import { insideOf } from '../../lib/base64.ts'

/** What a provider says of a message besides its words; kept so that it is the same when it is given again. */
export interface Aside {
  content?: MessageContent
  additional_kwargs?: Record<string, unknown>
  response_metadata?: Record<string, unknown>
  usage_metadata?: AIMessage['usage_metadata']
}

export function toLangChain(message: Message): BaseMessage {
  const { id, role } = message
  const text = textOf(message)
  if (role === 'system') return new SystemMessage({ id, content: text })
  if (role === 'user') return new HumanMessage({ id, content: contentOf(message.parts) })
  if (role === 'tool') {
    const { callId = '', name = '', failed } = message
    const status = failed ? 'error' : 'success'
    const content = textOf(withArguments(message))
    return new ToolMessage({ id, content, tool_call_id: callId, name, status })
  }
  const aside = (message.meta?.langchain ?? {}) as Aside
  const tool_calls = callsOf(message).flatMap(({ callId, name, input }) => {
    const args = parsed(input)
    return args ? [{ id: callId, name, args, type: 'tool_call' as const }] : []
  })
  const invalid_tool_calls = callsOf(message)
    .filter(({ input }) => !parsed(input))
    .map(({ callId, name, input }) => ({
      id: callId,
      name,
      args: input,
      type: 'invalid_tool_call' as const,
    }))
  return new AIMessage({ content: text, ...aside, id, tool_calls, invalid_tool_calls })
}

export function fromLangChain(message: BaseMessage, fallbackId: string): Message | undefined {
  const id = message.id ?? fallbackId
  const parts = partsOf(message.content)
  if (HumanMessage.isInstance(message)) return { id, role: 'user', parts }
  if (SystemMessage.isInstance(message)) return { id, role: 'system', parts }
  if (ToolMessage.isInstance(message)) {
    const { tool_call_id: callId, name, status } = message
    const failed = status === 'error' && { failed: true }
    return { id, role: 'tool', callId, ...(name !== undefined && { name }), parts, ...failed }
  }
  if (!AIMessage.isInstance(message)) return undefined
  const { tool_calls = [], invalid_tool_calls = [] } = message
  const calls = tool_calls.map(({ id: callId = '', name, args }): Part => {
    return { type: 'call', callId, name, input: JSON.stringify(args ?? {}) }
  })
  const broken = invalid_tool_calls.map(({ id: callId = '', name = '', args = '' }): Part => {
    return { type: 'call', callId, name, input: args }
  })
  return { id, role: 'assistant', parts: [...parts, ...calls, ...broken] }
}

/** What an answer has besides what our own message says. */
export function asideOf(message: AIMessage): Aside {
  const { content, additional_kwargs, response_metadata, usage_metadata } = message
  return {
    ...(typeof content !== 'string' && { content }),
    ...(Object.keys(additional_kwargs).length > 0 && { additional_kwargs }),
    ...(Object.keys(response_metadata).length > 0 && { response_metadata }),
    ...(usage_metadata && { usage_metadata }),
  }
}

function parsed(input: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(input === '' ? '{}' : input)
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

type ContentBlock = Exclude<MessageContent, string>[number]

function contentOf(parts: readonly Part[]): MessageContent {
  if (parts.every((part) => part.type === 'text')) return parts.map(({ text }) => text).join('\n\n')
  return parts.flatMap((part): ContentBlock[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'media') return []
    const { mediaType, data, url = '' } = part
    const address = data === undefined ? url : `data:${mediaType};base64,${data}`
    if (mediaType.startsWith('image/')) return [{ type: 'image_url', image_url: { url: address } }]
    return [{ type: 'file', mimeType: mediaType, ...(data === undefined ? { url } : { data }) }]
  })
}

function partsOf(content: MessageContent): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content.flatMap((block): Part[] => {
    const one = block as Record<string, unknown>
    if (one.type === 'text' && typeof one.text === 'string')
      return [{ type: 'text', text: one.text }]
    const thought = one.thinking ?? one.reasoning
    if (typeof thought === 'string') return [{ type: 'reasoning', text: thought }]
    const { image_url: image } = one
    const url = typeof image === 'string' ? image : (image as { url?: unknown } | undefined)?.url
    if (typeof url === 'string') return [mediaOf(url)]
    return []
  })
}

function mediaOf(url: string): Part {
  return { type: 'media', ...(insideOf(url) ?? { mediaType: 'image/*', url }) }
}
