import type { Message } from '@ag-ui/client'

/** How many messages CopilotKit's agent holds at least: it copies all that it has at every event. */
const most = 60

/** The list in two: what is long past, and what the agent holds, which begins with a turn. */
export function parted(messages: readonly Message[]): { earlier: Message[]; held: Message[] } {
  let cut = Math.max(0, messages.length - most)
  while (cut > 0 && messages[cut]?.role !== 'user') cut--
  return { earlier: messages.slice(0, cut), held: messages.slice(cut) }
}

/**
 * A message as it is sent once the server has it: its id tells which it is, and the rest would only
 * make the request larger than the server takes.
 */
function stub(message: Message): object {
  const { id, role } = message
  return role === 'tool'
    ? { id, role, toolCallId: message.toolCallId, content: '' }
    : { id, role, content: '' }
}

/** The request of CopilotKit's agent with all ids, and the words of `fresh` only: what may be new. */
export function slim(
  body: string,
  earlier: readonly Message[],
  fresh: ReadonlySet<string>,
): string {
  const input = JSON.parse(body) as { messages: Message[] }
  const messages = input.messages.map((one) => (fresh.has(one.id) ? one : stub(one)))
  return JSON.stringify({ ...input, messages: [...earlier.map(stub), ...messages] })
}

export type Content = Extract<Message, { role: 'user' }>['content']

export const textOf = (content: Content | undefined): string =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')
