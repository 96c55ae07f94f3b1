import type { Message } from '../../../core/messages.ts'
import { callsOf, textOf } from '../../../core/messages.ts'
import { remoteIdOf } from '../scribe.ts'

/** Our history as CopilotKit's runtime sends it: each call and each result is a message. */
export function toCopilotKit(messages: readonly Message[]): object[] {
  const names = new Map(messages.flatMap(callsOf).map((call) => [call.callId, call] as const))
  return messages.flatMap((message): object[] => {
    const id = remoteIdOf(message)
    const createdAt = new Date(0).toISOString() // every message must have one; nobody reads it
    if (message.role === 'tool') {
      const call = names.get(message.callId ?? '')
      const actionExecutionId = call ? remoteIdOf(call) : (message.callId ?? '')
      const about = { actionExecutionId, actionName: message.name ?? call?.name ?? '' }
      return [{ type: 'ResultMessage', id, createdAt, ...about, result: textOf(message) }]
    }
    const content = textOf(message)
    const text = { type: 'TextMessage', id, createdAt, role: message.role, content }
    const calls = callsOf(message).map((call) => ({
      type: 'ActionExecutionMessage',
      id: remoteIdOf(call),
      createdAt,
      name: call.name,
      arguments: argumentsOf(call.input),
      parentMessageId: id,
    }))
    return content === '' && calls.length > 0 ? calls : [text, ...calls]
  })
}

function argumentsOf(input: string): unknown {
  try {
    return JSON.parse(input === '' ? '{}' : input)
  } catch {
    return {}
  }
}
