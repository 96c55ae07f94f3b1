import type { Message } from '@ag-ui/client'
import type { CallStanding, Decided, Outline } from '../../lib/shapes.ts'
import type { ThreadView } from '../../lib/use-link.ts'

export type UserMessage = Extract<Message, { role: 'user' }>
export type AssistantMessage = Extract<Message, { role: 'assistant' }>
export type ReasoningMessage = Extract<Message, { role: 'reasoning' }>
export type ToolMessage = Extract<Message, { role: 'tool' }>

/** What was said, and everything that came of it. */
export interface ShownTurn {
  key: string
  user: UserMessage | undefined
  parts: (AssistantMessage | ReasoningMessage)[]
  results: Map<string, ToolMessage>
}

export function turnsOf(messages: readonly Message[]): ShownTurn[] {
  const turns: ShownTurn[] = []
  for (const message of messages) {
    if (message.role === 'user' || turns.length === 0) {
      const user = message.role === 'user' ? message : undefined
      turns.push({ key: message.id, user, parts: [], results: new Map() })
    }
    const turn = turns.at(-1)!
    if (message.role === 'assistant' || message.role === 'reasoning') turn.parts.push(message)
    if (message.role === 'tool') turn.results.set(message.toolCallId, message)
  }
  return turns
}

/** Whether two turns look the same: CopilotKit gives new objects for old words at every event. */
export function sameTurn(a: ShownTurn, b: ShownTurn): boolean {
  if (a === b) return true
  if (a.key !== b.key || a.parts.length !== b.parts.length || a.results.size !== b.results.size)
    return false
  return a.parts.every((part, i) => samePart(part, b.parts[i]!))
}

type Part = ShownTurn['parts'][number]

function samePart(a: Part, b: Part): boolean {
  if (a.id !== b.id || a.content !== b.content) return false
  const [calls, others] = [callsOf(a), callsOf(b)]
  return (
    calls.length === others.length &&
    calls.every((call, i) => call.function.arguments === others[i]!.function.arguments)
  )
}

export const callsOf = (part: Part) => (part.role === 'assistant' ? (part.toolCalls ?? []) : [])

/** The state of a call: the outline has all of it as it was read, and the live events what changed since. */
export function standingOf(
  { calls, outline }: Pick<ThreadView, 'calls' | 'outline'>,
  id: string,
): CallStanding | undefined {
  const [live, read] = [calls[id], outline?.calls[id]]
  return live && read ? { ...read, ...live } : (live ?? read)
}

/** The edit of a call, if its newest approval has one. The edit of an approval that was replaced did not run. */
export function editOf(outline: Outline | undefined, id: string): Decided | undefined {
  const isOf = ({ kind, callId }: Pick<Decided, 'kind' | 'callId'>) =>
    kind === 'approval' && callId === id
  if (!outline || outline.asks.some(isOf)) return undefined
  const newest = outline.decided.findLast(isOf)
  return newest?.edited ? newest : undefined
}

/** What these turns did that stays done, in the words in which it was decided. */
export function doneIn(turns: readonly ShownTurn[], outline: Outline | undefined): string[] {
  const calls = turns.flatMap(({ parts }) => parts.flatMap(callsOf))
  return calls.flatMap(({ id, function: { name } }) => {
    const standing = outline?.calls[id]
    if (!standing?.stays) return []
    const asked = outline?.decided.filter(({ callId }) => callId === id) ?? []
    const { title = name } = asked.findLast(({ kind }) => kind === 'approval') ?? asked[0] ?? {}
    const changed = editOf(outline, id) ? ' (edited)' : ''
    const ended = standing.state === 'done' ? '' : ` (${standing.state})`
    return [title + changed + ended]
  })
}

/** The answer's own words, without thoughts and tools. */
export const wordsOf = ({ parts }: ShownTurn): string =>
  parts
    .filter((part) => part.role === 'assistant')
    .map(({ content }) => content ?? '')
    .filter((text) => text !== '')
    .join('\n\n')
