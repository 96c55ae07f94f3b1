import type { BaseMessage } from '@langchain/core/messages'
import type { ModelRequest } from '../../core/model.ts'
import { type Habits, type SaidPart, settle, type Turn } from '../settle.ts'

/** A request as LangChain's messages. Its package is loaded when it is needed. */
export async function messagesOf(request: ModelRequest, habits: Habits): Promise<BaseMessage[]> {
  const classes = await import('@langchain/core/messages')
  const { system, turns } = settle(request, habits)
  const first = system === '' ? [] : [new classes.SystemMessage(system)]
  return [...first, ...turns.flatMap((turn) => messagesFor(turn, classes))]
}

type Classes = typeof import('@langchain/core/messages')

function messagesFor(turn: Turn, { HumanMessage, AIMessage, ToolMessage }: Classes): BaseMessage[] {
  if (turn.role === 'user') return [new HumanMessage({ content: contentOf(turn.parts) })]
  if (turn.role === 'tool') {
    return turn.results.map(
      ({ callId, name, text, failed }) =>
        new ToolMessage({
          tool_call_id: callId,
          name,
          content: text,
          status: failed ? 'error' : 'success',
        }),
    )
  }
  const content = turn.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const tool_calls = turn.parts.flatMap((part) =>
    part.type === 'call' ? [{ id: part.callId, name: part.name, args: part.input }] : [],
  )
  return [new AIMessage({ content, tool_calls })]
}

function contentOf(parts: readonly SaidPart[]) {
  if (parts.every((part) => part.type === 'text')) return parts.map(({ text }) => text).join('\n\n')
  return parts.map((part) => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    const { mediaType, data, url } = part
    const address = data ? `data:${mediaType};base64,${data}` : (url ?? '')
    if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url: address } }
    const type = mediaType.startsWith('audio/') ? 'audio' : 'file'
    if (data) return { type, source_type: 'base64', mime_type: mediaType, data }
    return { type, source_type: 'url', mime_type: mediaType, url: address }
  })
}
