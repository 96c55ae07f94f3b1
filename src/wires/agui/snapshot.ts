import type { Piece } from '../../core/agent.ts'
import { whatIsShown } from '../../core/branch.ts'
import { type Edit, editsIn } from '../../core/edited.ts'
import type { ThreadState } from '../../core/state.ts'
import { createPatch } from '../../lib/json-patch.ts'
import { standInMessages } from './asks.ts'
import { event, openId } from './events.ts'
import { type AguiMessage, toClient } from './messages.ts'

/** What a client has on its screen: the branch, with the questions that are put as calls. */
export function shownMessages(state: ThreadState, tools: ReadonlySet<string>): AguiMessage[] {
  const shown: AguiMessage[] = []
  // Clients put our result right behind its call and their own at the end of the list: what was
  // thought after the call stands between the two.
  let late: AguiMessage[] = []
  const edits = editsIn(state)
  for (const one of whatIsShown(state)) {
    const [first, ...rest] = messagesOf(one, tools, edits)
    if (!first) continue
    if (late.length > 0 && (first.role !== 'tool' || isClientCall(state, first.toolCallId)))
      shown.push(...late.splice(0))
    shown.push(first)
    if (first.toolCalls && rest[0]?.role === 'reasoning') late = rest
    else shown.push(...rest)
  }
  return [...shown, ...late]
}

function isClientCall(state: ThreadState, callId = ''): boolean {
  for (const { ask } of state.asks.values())
    if (ask.kind === 'client_tool' && ask.callId === callId) return true
  return false
}

function messagesOf(
  one: ReturnType<typeof whatIsShown>[number],
  tools: ReadonlySet<string>,
  edits: ReadonlyMap<string, Edit>,
): AguiMessage[] {
  if ('message' in one) return toClient(one.message, edits)
  if ('ask' in one) return standInMessages(one, tools)
  const { id, type: activityType, content } = one
  return [{ id, role: 'activity', activityType, content }]
}

/** Results are also known by their call; no message has such an id. */
export const resultOf = (callId: string): string => `\0${callId}`

/** Where each stands in a list that a client has, or will have. It may be anything. */
export function placesOf(messages: readonly AguiMessage[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const [place, one] of messages.entries()) {
    const { id, toolCallId } = (one ?? {}) as { id?: unknown; toolCallId?: unknown }
    if (typeof id === 'string') places.set(id, place)
    if (typeof toolCallId === 'string') places.set(resultOf(toolCallId), place)
  }
  return places
}

/** Where the messages of these runs begin in the list; its end, if they are not in it. */
export function firstOf(
  state: ThreadState,
  runIds: readonly string[],
  messages: readonly AguiMessage[],
): number {
  const ids = new Set(runIds.flatMap((runId) => state.runs.get(runId)?.messageIds ?? []))
  const first = messages.findIndex(({ id }) => ids.has(id))
  return first < 0 ? messages.length : first
}

/** What is being written, with as much of its text as this client was sent. */
export function partialMessages(
  pieces: readonly Piece[],
  sent: (id: string) => number | undefined,
  state: ThreadState,
): AguiMessage[] {
  const partial = new Map<string, AguiMessage>()
  const left = new Map<string, number>()
  for (const piece of pieces) {
    const { kind, id, messageId = id, name = '' } = piece
    if (kind === 'output' || state.messages.has(messageId)) continue
    const key = openId(piece)
    const room = left.get(key) ?? sent(key)
    if (room === undefined) continue
    const text = piece.text.slice(0, room)
    left.set(key, room - text.length)
    const owner = kind === 'reasoning' ? key : messageId
    const role = kind === 'reasoning' ? 'reasoning' : 'assistant'
    const message = partial.get(owner) ?? { id: owner, role, content: '' }
    partial.set(owner, message)
    if (kind !== 'input') message.content = `${message.content}${text}`
    else callIn(message, id, name).function.arguments += text
  }
  return [...partial.values()]
}

function callIn(message: AguiMessage, id: string, name: string) {
  message.toolCalls ??= []
  const known = message.toolCalls.find((one) => one.id === id)
  if (known) return known
  const call = { id, type: 'function' as const, function: { name, arguments: '' } }
  message.toolCalls.push(call)
  return call
}

/**
 * Clients put what is new in a list at its end, and leave what they have where it is. Where that
 * would give another order, they are first given what is right so far: the rest then comes in order.
 */
export function commonPrefix(
  messages: readonly AguiMessage[],
  has: ReadonlyMap<string, number>,
): AguiMessage[] | undefined {
  let last = -1
  const first = messages.findIndex(({ id }) => {
    const place = has.get(id) ?? -1
    const inOrder = place > last
    last = place
    return !inOrder
  })
  const after = first >= 0 && messages.slice(first).some(({ id }) => has.has(id))
  return after ? messages.slice(0, first) : undefined
}

/**
 * A change of the state as a patch of the client's copy. States that are too large to compare, and states whose patch
 * would be longer than they are, are sent whole.
 */
export function stateEvents(had: { value: unknown } | undefined, value: unknown): string[] {
  const whole = () => [event('STATE_SNAPSHOT', { snapshot: value })]
  if (!isObject(had?.value) || !isObject(value)) return whole()
  const delta = createPatch(had.value, value)
  if (!delta) return whole()
  if (delta.length === 0) return []
  const patch = event('STATE_DELTA', { delta })
  if (patch.length <= 1_024) return [patch]
  const [snapshot = ''] = whole()
  return [patch.length > snapshot.length ? snapshot : patch]
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
