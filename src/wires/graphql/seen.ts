import { shownRuns } from '../../core/branch.ts'
import { editsIn } from '../../core/edited.ts'
import { type Message, textOf } from '../../core/messages.ts'
import type { ThreadState } from '../../core/state.ts'
import { sameJson } from '../../lib/json-patch.ts'
import { openAsks } from '../asks.ts'
import { textParser } from '../body.ts'
import { resultId } from './messages.ts'
import type { GenerateInput } from './shapes.ts'
import type { Listener } from './telling.ts'

/**
 * A question that this client was not shown, or shown as an interrupt, stands in the way of what is
 * said next: it is shown again. One that it was shown as a card is passed over by typing on.
 */
export function isBlocked(state: ThreadState, { tools, has }: Listener): boolean {
  const run = state.runs.get(state.active ?? '')
  if (run?.status !== 'waiting') return false
  const { calls, interrupts } = openAsks(state, run, tools)
  const shown = ({ ask }: (typeof calls)[number]) =>
    ask.kind === 'client_tool' || has.has(ask.askId)
  return interrupts.length > 0 || !calls.every(shown)
}

/**
 * Whether the client has all that is shown of the thread but this run, and nothing that is not: neither a
 * message that the thread does not have, nor arguments that the approver of a call has changed.
 */
export function isUpToDate(
  state: ThreadState,
  data: GenerateInput,
  to: Listener,
  runId: string,
): boolean {
  const edits = editsIn(state)
  const parse = textParser(true)
  const isSame = (text: string, input: unknown): boolean => {
    try {
      return sameJson(parse(text, ''), input)
    } catch {
      return false // beyond the limits of a request: the client is sent the arguments again
    }
  }
  for (const { id, textMessage, actionExecutionMessage: call } of data.messages) {
    const edit = call && edits.get(id)
    if (edit && !isSame(call.arguments, edit.input)) return false
    const { role, content } = textMessage ?? {}
    if (role === 'assistant' && content !== '' && !state.messages.has(id)) return false
  }
  for (const run of shownRuns(state)) {
    if (run.runId === runId) continue
    for (const id of run.messageIds) {
      const { message, for: whom } = state.messages.get(id)!
      if (whom !== 'model' && !hasAll(to, message)) return false
    }
  }
  return true
}

function hasAll({ has, hidden }: Listener, message: Message): boolean {
  const { id, role, callId = '', name = '' } = message
  if (role === 'system') return true
  if (role === 'tool') return hidden.has(name) || has.has(resultId(callId))
  if (!has.has(id) && textOf(message) !== '') return false
  return message.parts.every(
    (part) => part.type !== 'call' || has.has(part.callId) || hidden.has(part.name),
  )
}
