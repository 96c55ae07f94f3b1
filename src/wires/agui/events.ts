import type { Piece } from '../../core/agent.ts'
import { editOfCall } from '../../core/edited.ts'
import type { Known, Usage } from '../../core/entries.ts'
import type { Run, ThreadState } from '../../core/state.ts'
import { isLong } from '../../lib/json-steps.ts'
import { reasoningId } from './messages.ts'

/** AG-UI's events, as JSON text. */
export const event = (type: string, fields: object): string => JSON.stringify({ type, ...fields })

/** An event as JSON text. The text of a long one is made in steps when it is sent. */
export type EventText = string | LongEvent

export interface LongEvent {
  type: 'MESSAGES_SNAPSHOT'
  messages: readonly object[]
}

export function messagesSnapshot(messages: readonly object[]): EventText {
  const snapshot = { type: 'MESSAGES_SNAPSHOT', messages } as const
  return isLong(messages) ? snapshot : JSON.stringify(snapshot)
}

export const custom = (name: string, value: unknown): string => event('CUSTOM', { name, value })

/** The id a piece has there: reasoning is a message of its own. */
export const openId = ({ kind, id }: Piece): string => (kind === 'reasoning' ? reasoningId(id) : id)

/** By hand: this is made for every delta of every stream. */
export function contentOf(kind: Piece['kind'], id: string, text: string): string {
  const delta = JSON.stringify(text)
  const name = JSON.stringify(id)
  if (kind === 'text') return `{"type":"TEXT_MESSAGE_CONTENT","messageId":${name},"delta":${delta}}`
  if (kind === 'reasoning')
    return `{"type":"REASONING_MESSAGE_CONTENT","messageId":${name},"delta":${delta}}`
  if (kind === 'input') return `{"type":"TOOL_CALL_ARGS","toolCallId":${name},"delta":${delta}}`
  return custom('handrail:tool_output', { toolCallId: id, delta: text })
}

export function startOf({ kind, id, messageId, name }: Piece): string[] {
  if (kind === 'text') return [event('TEXT_MESSAGE_START', { messageId: id, role: 'assistant' })]
  if (kind === 'input') {
    const call = { toolCallId: id, toolCallName: name ?? '' }
    return [event('TOOL_CALL_START', { ...call, parentMessageId: messageId })]
  }
  if (kind === 'output') return []
  const about = { messageId: reasoningId(id) }
  return [
    event('REASONING_START', about),
    event('REASONING_MESSAGE_START', { ...about, role: 'reasoning' }),
  ]
}

/** `id` is the one that `openId` gave. */
export function endOf(kind: Piece['kind'], id: string): string[] {
  if (kind === 'text') return [event('TEXT_MESSAGE_END', { messageId: id })]
  if (kind === 'input') return [event('TOOL_CALL_END', { toolCallId: id })]
  if (kind === 'output') return []
  return [
    event('REASONING_MESSAGE_END', { messageId: id }),
    event('REASONING_END', { messageId: id }),
  ]
}

type OfEffect = Known<'effect.intended' | 'effect.done' | 'effect.failed' | 'effect.unknown'>

/**
 * The state of a tool call and the time of the change: the protocol itself has only its result. A call that
 * starts also has the arguments of an edit, and the grant that made an approval unnecessary.
 */
export function callEvents(entry: OfEffect, thread: ThreadState): string[] {
  const { effect, callId: toolCallId } = entry.body
  if (effect !== 'tool' || toolCallId === undefined) return []
  const { at } = entry
  if (entry.kind !== 'effect.intended')
    return [custom('handrail:call', { toolCallId, state: entry.kind.slice('effect.'.length), at })]
  const { askId, grantId } = entry.body
  const edit = editOfCall(thread, askId)
  const more = {
    ...(edit && { edited: true, input: edit.input, originalInput: edit.original }),
    ...(grantId !== undefined && { grantId }),
  }
  return [custom('handrail:call', { toolCallId, state: 'running', at, ...more })]
}

/** What the legs that answer this request used of each model, as far as providers said. */
export function usageOf({ usage: lines, legs }: Run): { usage?: object[] } {
  const used = new Map<string, UsageJson>()
  for (const { legId, model: name, ...line } of lines) {
    if (!legs.includes(legId) || line.inputTokens === undefined) continue
    const [provider, ...rest] = name.split('/')
    const model = rest.length > 0 ? { provider, model: rest.join('/') } : { model: name }
    const sum: UsageJson = used.get(name) ?? { ...model, inputTokens: 0, outputTokens: 0 }
    for (const key of [
      'inputTokens',
      'outputTokens',
      'cachedInputTokens',
      'reasoningTokens',
    ] as const)
      if (line[key] !== undefined) sum[key] = (sum[key] ?? 0) + line[key]
    used.set(name, sum)
  }
  return used.size > 0 ? { usage: [...used.values()] } : {}
}

type UsageJson = { provider?: string; model: string } & Omit<Usage, 'cost'>
