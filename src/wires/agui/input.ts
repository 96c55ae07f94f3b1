import { shownRuns } from '../../core/branch.ts'
import type { RunOptions } from '../../core/entries.ts'
import type { RequestKey } from '../../core/keys.ts'
import { type Message, textOf } from '../../core/messages.ts'
import type { ClientList, Reconciled } from '../../core/reconcile.ts'
import type { ThreadState } from '../../core/state.ts'
import { sameJson } from '../../lib/json-patch.ts'
import { keyOf, type ListedMessage, lastUserContents } from '../approve.ts'
import { isStandIn } from '../asks.ts'
import { forwardedHeaders } from '../http.ts'
import { maxMessages, tooManyToRead } from '../limits.ts'
import { standInSuffix } from './asks.ts'
import { type AguiMessage, fromClient, thinkerOf } from './messages.ts'
import { type RunInput, readHandrail, readMessage } from './shapes.ts'
import { placesOf, resultOf } from './snapshot.ts'
import type { Listener } from './telling.ts'

export function listenerOf({ threadId, runId, tools, state, ...input }: RunInput): Listener {
  const protocol = input.protocolVersion?.startsWith('1') ? '1' : '0'
  const has = placesOf((input.messages ?? []) as readonly AguiMessage[])
  const thoughts = rawMessages(input).flatMap(({ id, role }) => (role === 'reasoning' ? [id] : []))
  const names = new Set((tools ?? []).map(({ name }) => name))
  return { threadId, runId, protocol, tools: names, has, thoughts, state }
}

/** The list as far as it is one; what is wrong with a message is found when it is read. */
function rawMessages({ messages }: Pick<RunInput, 'messages'>): RawMessage[] {
  const all = (messages ?? []) as ({ id?: unknown; role?: unknown; content?: unknown } | null)[]
  return all.flatMap((one) =>
    typeof one?.id === 'string' && typeof one.role === 'string'
      ? [{ id: one.id, role: one.role, content: one.content }]
      : [],
  )
}

interface RawMessage {
  id: string
  role: string
  content: unknown
}

/**
 * The client's list. Clients send all they have every time: what the thread knows is passed over
 * unread, so that a long history costs no more than its parsing.
 */
export function clientList(input: RunInput, state: ThreadState): ClientList {
  const messages: Message[] = []
  let count = 0
  for (const [i, raw] of (input.messages ?? []).entries()) {
    const { id, role } = (raw ?? {}) as { id?: unknown; role?: unknown }
    if (typeof id === 'string' && state.runs.size > 0) {
      if (role === 'assistant' || role === 'reasoning' || role === 'activity') {
        messages.push({ id, role: 'assistant', parts: [] })
        continue
      }
      if ((role === 'user' || role === 'tool') && state.messages.has(id)) {
        messages.push({ id, role, parts: [] })
        continue
      }
    }
    if (++count > maxMessages) throw tooManyToRead()
    const message = fromClient(readMessage(raw, i))
    if (message) messages.push(message)
  }
  const { branchFrom } = readHandrail(input.forwardedProps)
  const edit = branchFrom === undefined ? {} : { branchFrom }
  const regenerates = (input.resume ?? []).length === 0 // an answer again is no question again
  return { messages, request: input.runId, regenerates, ...edit }
}

/**
 * Returns the request's Idempotency-Key with a digest of the agent, the last user messages and the message that an edit
 * replaces. Answers are not part of the digest: their question identifies them.
 */
export function keyFor(request: Request, agent: string, input: RunInput): { key?: RequestKey } {
  if (!request.headers.has('idempotency-key')) return {} // without reading the messages
  const said = rawMessages(input).flatMap(({ role, content }): ListedMessage[] => {
    if (role === 'system' || role === 'developer') return []
    return role === 'user' ? [{ user: content }] : ['other']
  })
  const { branchFrom } = readHandrail(input.forwardedProps)
  return keyOf(request, ['run', agent, branchFrom, lastUserContents(said)])
}

/** What this client wants done with a message while the thread works; otherwise the setting holds. */
export const busyWish = ({ forwardedProps }: RunInput) => readHandrail(forwardedProps).whenBusy

export function isSuggestion({ forwardedProps }: RunInput): boolean {
  const { toolChoice } = (forwardedProps ?? {}) as {
    toolChoice?: { function?: { name?: unknown } }
  }
  return toolChoice?.function?.name === 'copilotkitSuggest'
}

export function optionsFrom(
  input: RunInput,
  { instructions }: Reconciled,
  request: Request,
): RunOptions {
  const context = (input.context ?? []).map(({ description, value }) => `${description}: ${value}`)
  const clientTools = (input.tools ?? [])
    .filter(({ name }) => !isStandIn(name)) // the server calls those, the model does not
    .map(({ name, description, parameters }) => ({
      name,
      ...(description !== undefined && { description }),
      parameters,
    }))
  const { forwardedProps } = input
  const forwarded =
    typeof forwardedProps === 'object' && forwardedProps !== null
      ? (forwardedProps as Record<string, unknown>)
      : {}
  const headers = forwardedHeaders(request)
  const alone = readHandrail(forwardedProps).unattended === true && { unattended: true }
  return { ...alone, instructions: [...instructions, ...context], clientTools, forwarded, headers }
}

/** The client's copy of the state, when it says something and something else than we have. */
export function stateFrom(
  { state: value }: RunInput,
  state: ThreadState,
  agent: string,
): { state?: { value: unknown } } {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return {}
  if (sameJson(value, state.states.get(agent))) return {}
  return { state: { value } }
}

/** Whether the client shows what the thread holds; after a cut stream, or in a tab that slept, not. */
export function isUpToDate(state: ThreadState, { messages }: RunInput, { has }: Listener): boolean {
  for (const { id, role, content } of rawMessages({ messages })) {
    const owner = role === 'reasoning' ? thinkerOf(id) : id
    if (role !== 'assistant' && role !== 'reasoning') continue
    const ours = state.messages.get(owner)
    if (!ours && !owner.endsWith(standInSuffix)) return false
    if (ours && role === 'assistant' && isCut(content, ours.message)) return false
  }
  for (const run of shownRuns(state)) {
    for (const id of run.messageIds) {
      if (has.has(id)) continue
      const { message, for: whom } = state.messages.get(id)!
      const known = message.role === 'tool' && has.has(resultOf(message.callId ?? ''))
      if (!known && whom !== 'model' && speaks(message)) return false
    }
  }
  return true
}

/** Who left in the middle of an answer has its beginning under the same id. */
function isCut(content: unknown, message: Message): boolean {
  return typeof content === 'string' && content.length < textOf(message).length
}

const speaks = ({ role, parts }: Message): boolean =>
  role !== 'system' &&
  parts.some((part) => part.type === 'call' || (part.type === 'text' && part.text !== ''))
