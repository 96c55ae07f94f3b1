import { whatIsShown } from '../../core/branch.ts'
import { type Edit, editsIn } from '../../core/edited.ts'
import { markerOf } from '../../core/large-parts.ts'
import { callsOf, type Message, textOf } from '../../core/messages.ts'
import type { ThreadState } from '../../core/state.ts'
import { pauses } from '../../lib/pause.ts'
import type { ListedMessage } from '../approve.ts'
import type { MessageInput } from './shapes.ts'

/**
 * A client's list in our shape. It sends all it has every time: what the thread knows is passed
 * over, so that a long history costs no more than its parsing.
 */
export function fromClient(list: readonly MessageInput[], state: ThreadState): Message[] {
  const fresh = state.runs.size === 0
  const messages: Message[] = []
  const byId = new Map<string, Message>()
  const add = (message: Message) => {
    messages.push(message)
    byId.set(message.id, message)
  }
  for (const { id, ...one } of list) {
    if (one.textMessage) {
      const { role, content } = one.textMessage
      const parts = content === '' ? [] : [{ type: 'text' as const, text: content }]
      if (role === 'system' || role === 'developer') add({ id, role: 'system', parts })
      else if (role === 'user' || (role === 'assistant' && content !== '')) add({ id, role, parts })
    } else if (one.imageMessage?.role === 'user') {
      const { format, bytes: data } = one.imageMessage
      const mediaType = format.includes('/') ? format : `image/${format}`
      add({ id, role: 'user', parts: [{ type: 'media', mediaType, data }] })
    } else if (one.resultMessage) {
      const { actionExecutionId: callId, actionName: name, result } = one.resultMessage
      add({ id, role: 'tool', callId, name, parts: [{ type: 'text', text: result }] })
    } else if (one.actionExecutionMessage && fresh) {
      const { name, arguments: input, parentMessageId } = one.actionExecutionMessage
      const known = byId.get(parentMessageId ?? '')
      const parent: Message = known ?? { id: parentMessageId ?? id, role: 'assistant', parts: [] }
      if (!known) add(parent)
      if (parent.role === 'assistant') parent.parts.push({ type: 'call', callId: id, name, input })
    }
  }
  return messages
}

/** The list without instructions and states, for `lastUserContents`. */
export function listed(list: readonly MessageInput[]): ListedMessage[] {
  return list.flatMap(({ textMessage, imageMessage, agentStateMessage }): ListedMessage[] => {
    if (agentStateMessage) return []
    const role = textMessage?.role ?? imageMessage?.role
    if (role === 'system' || role === 'developer') return []
    if (role !== 'user') return ['other']
    if (textMessage) return [{ user: textMessage.content }]
    return [{ user: { format: imageMessage!.format, bytes: imageMessage!.bytes } }]
  })
}

/** What a client has: ids of texts, of calls, and of the calls that its results are of. */
export function idsIn(list: readonly MessageInput[]): Set<string> {
  const ids = new Set<string>()
  for (const { id, resultMessage } of list) {
    ids.add(id)
    if (resultMessage) ids.add(resultId(resultMessage.actionExecutionId))
  }
  return ids
}

export const resultId = (callId: string) => `result-${callId}`

/**
 * The thread as clients load it: told apart by their keys, each result right behind its call. Markers
 * stand for the data of large images: see `Thread.filled`.
 */
export const toClient = (state: ThreadState): object[] => [...clientLists(state)].flat()

/** The same in steps: other requests run between them. */
export async function toClientInSteps(state: ThreadState): Promise<object[]> {
  const all: object[] = []
  const pause = pauses()
  for (const list of clientLists(state)) {
    all.push(...list)
    await pause()
  }
  return all
}

/** Yields, for each message, the messages that clients load. */
function* clientLists(state: ThreadState): Generator<object[], void, undefined> {
  const said = whatIsShown(state).flatMap((one) => ('message' in one ? [one.message] : []))
  const results = new Map(said.map((message) => [message.callId, message]))
  const edits = editsIn(state)
  for (const message of said) yield shown(message, results, edits)
}

function shown(
  message: Message,
  results: ReadonlyMap<string | undefined, Message>,
  edits: ReadonlyMap<string, Edit>,
): object[] {
  const { id, role } = message
  if (role === 'tool' || role === 'system') return []
  const content = textOf(message)
  const list: object[] = content === '' ? [] : [{ id, role, content }]
  for (const part of message.parts) {
    if (part.type !== 'media' || !part.mediaType.startsWith('image/')) continue
    const bytes = part.stored ? markerOf(part.stored) : part.data
    if (bytes === undefined) continue
    const format = part.mediaType.slice('image/'.length)
    list.push({ id: content === '' ? id : `${id}-image`, role, format, bytes })
  }
  for (const { callId, name, input } of callsOf(message)) {
    const edit = edits.get(callId)
    const ran = edit ? edit.input : parsed(input)
    list.push({ id: callId, name, arguments: ran, parentMessageId: id })
    const result = results.get(callId)
    if (!result) continue
    const about = { actionExecutionId: callId, actionName: name }
    list.push({ id: resultId(callId), ...about, result: textOf(result) })
  }
  return list
}

/** Clients want an object here, whatever the model wrote. */
function parsed(input: string): object {
  try {
    const value: unknown = JSON.parse(input)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
