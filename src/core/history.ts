import { callsOf, type Message, toolText } from './messages.ts'

/**
 * Makes any history valid for every provider (I8): each call is followed at once by exactly one
 * result, in the order of the calls; results without a call and empty messages are left out.
 */
export function validHistory(messages: readonly Message[]): Message[] {
  const results = new Map<string, Message>()
  for (const message of messages) {
    if (message.role !== 'tool' || !message.callId || results.has(message.callId)) continue
    results.set(message.callId, message)
  }
  const valid: Message[] = []
  const seen = new Set<string>()
  for (const message of messages) {
    if (message.role === 'tool') continue
    // A call id that a provider gave twice names one call: the first.
    const parts = message.parts.filter((part) => part.type !== 'call' || !seen.has(part.callId))
    const calls = callsOf({ ...message, parts })
    for (const call of calls) seen.add(call.callId)
    if (!speaks({ ...message, parts })) continue
    valid.push(parts.length === message.parts.length ? message : { ...message, parts })
    for (const call of calls) {
      valid.push(results.get(call.callId) ?? toolText(`none_${call.callId}`, call, unmade, true))
    }
  }
  return valid
}

const unmade = 'This call was not made: the run ended before it.'

/** Providers refuse messages that say nothing. */
function speaks(message: Message): boolean {
  if (message.role === 'user')
    return message.parts.some((part) => part.type !== 'text' || part.text)
  return message.parts.some((part) => {
    if (part.type === 'call') return true
    return part.type === 'text' && part.text.trim() !== ''
  })
}
