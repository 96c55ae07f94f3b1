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

/**
 * A question for more budget is then a call of it, among the messages. CopilotKit is not told: it would
 * answer the call for us as soon as it came.
 */
const reconfigureHITL = {
  name: 'reconfigureHITL',
  description: 'Asks the person for more budget.',
  parameters: { type: 'object', properties: {} },
}

/**
 * The request of CopilotKit's agent with all ids, and the words of `fresh` only: what may be new. After a
 * stream that was `left` in its middle the last answer may be there in part: the server takes what has an
 * id here for whole, so it is not named, and comes with the server's list.
 */
export function slim(
  body: string,
  earlier: readonly Message[],
  { fresh, left }: { fresh: ReadonlySet<string>; left: boolean },
): string {
  const input = JSON.parse(body) as { messages: Message[]; tools?: object[] }
  const said = input.messages.findLastIndex(({ id, role }) => role === 'user' && !fresh.has(id))
  const whole = ({ role }: Message, i: number) => !left || role === 'user' || i <= said
  const messages = input.messages.filter(whole).map((one) => (fresh.has(one.id) ? one : stub(one)))
  const tools = [...(input.tools ?? []), reconfigureHITL]
  return JSON.stringify({ ...input, tools, messages: [...earlier.map(stub), ...messages] })
}

export type Content = Extract<Message, { role: 'user' }>['content']

export const textOf = (content: Content | undefined): string =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')
