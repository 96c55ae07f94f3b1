import { callsOf, type Message, type Part, toolText } from './messages.ts'

/**
 * Makes any history valid for every provider (I8): each call is followed at once by exactly one
 * result, in the order of the calls; results without a call and empty messages are left out. The
 * result of an edited call begins with the arguments that ran.
 */
export function validHistory(messages: readonly Message[]): Message[] {
  const results = new Map<string, Message>()
  for (const message of messages) {
    if (message.role !== 'tool' || !message.callId || results.has(message.callId)) continue
    results.set(message.callId, message)
  }
  const valid: Message[] = []
  const seen = new Set<string>()
  // Only the assistant calls, and an id that a provider gave twice names one call: the first.
  const stands = (part: Part, { role }: Message) => {
    if (part.type !== 'call') return true
    if (role !== 'assistant' || seen.has(part.callId)) return false
    seen.add(part.callId)
    return true
  }
  for (const message of messages) {
    if (message.role === 'tool') continue
    const parts = message.parts.filter((part) => stands(part, message))
    const kept = parts.length === message.parts.length ? message : { ...message, parts }
    if (!speaks(kept)) continue
    valid.push(kept)
    for (const call of callsOf(kept)) {
      const result = results.get(call.callId)
      const text = result ? '' : 'This call was not made: the run ended before it.'
      valid.push(
        result?.parts.length
          ? withArguments(result)
          : toolText(`none_${call.callId}`, call, text, !result),
      )
    }
  }
  return valid
}

/** Characters of edited arguments that the model is told. */
const longestArguments = 20_000

/**
 * The result of a call whose arguments the approver changed, as the model is told it: with the arguments that
 * ran. The result itself stays as it is, because clients and agents may parse it.
 */
export function withArguments(result: Message): Message {
  const { ranWith, ...meta } = result.meta ?? {}
  if (typeof ranWith !== 'string') return result
  const left = ranWith.length - longestArguments
  const cut = left > 0 ? ` (cut: ${left} more characters)` : ''
  const note = 'The approver changed the arguments of this call. It ran with these arguments:'
  const text = `${note} ${ranWith.slice(0, longestArguments)}${cut}\n\n`
  return { ...result, meta, parts: [{ type: 'text', text }, ...result.parts] }
}

/** Providers refuse messages that say nothing. */
function speaks({ parts }: Message): boolean {
  return parts.some((part) =>
    part.type === 'text' ? part.text.trim() !== '' : part.type !== 'reasoning',
  )
}
