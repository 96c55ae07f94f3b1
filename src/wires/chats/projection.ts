import type { Piece } from '../../core/agent.ts'
import { governorView, isMeterNow } from '../../core/budget.ts'
import { editOf } from '../../core/edited.ts'
import type { Known } from '../../core/entries.ts'
import { namesText } from '../../core/follow.ts'
import { textOf } from '../../core/messages.ts'
import { ended, type ThreadState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import { type AgentMoved, agentMoved, workflowEnded } from '../../core/workflow-events.ts'
import { movedEvent } from '../agents-told.ts'
import type { Frame, Projection } from '../sse.ts'
import { approvalJson, callEvent, isoTime, messageEvents } from './interaction.ts'

/** One interaction as the seed's events, and the added ones that its clients may ignore. */
export function interactionView(thread: Thread, runId: string): Projection {
  const { state } = thread
  return {
    dialect: `chats:${runId}`, // a reader of another run sees nothing of these pieces
    names: namesText(runId),
    alike: true,
    entry: (entry) => {
      if (entry.runId !== runId) return []
      const list = framesOf(entry, state)
      // A failed run that was tried again was not complete then.
      const goesOn = entry.kind === 'run.failed' && entry.seq !== state.runs.get(runId)?.endSeq
      return goesOn ? list.slice(0, -1) : list
    },
    beside: (entry) => {
      // A budget is the chat's: it may be set from outside of any interaction.
      if (entry.runId !== runId && entry.kind !== 'governor.set') return undefined
      const run = state.runs.get(runId)
      if (!run || (ended(run) && entry.seq > (run.endSeq ?? 0))) return undefined
      return isMeterNow(entry, state) ? frame('governor', governorView(state.governor)) : undefined
    },
    piece: (piece, of) => (of === runId ? pieceFrame(piece) : undefined),
    retracted: (ids) => frame('retracted', { ids, why: 'resent' }),
    ends: (entry) => entry.runId === runId && entry.seq === state.runs.get(runId)?.endSeq,
    over: () => {
      const run = state.runs.get(runId)
      return !run || ended(run)
    },
  }
}

const frame = (event: string, data: object): Frame => ({ event, data: JSON.stringify(data) })

const eventNames = {
  TOOL_CALL: 'tool_call',
  TOOL_RESULT: 'tool_result',
  THINKING: 'thinking',
  ANSWER: 'answer',
} as const

/** By hand: this runs for every delta of every stream. */
function pieceFrame({ kind, id, text }: Piece): Frame | undefined {
  if (kind === 'input') return undefined
  const rest = `${JSON.stringify(id)},"delta":${JSON.stringify(text)}}` // agents choose their ids
  if (kind === 'text') return { event: 'answer_delta', data: `{"message_id":${rest}` }
  if (kind === 'reasoning') return { event: 'thinking_delta', data: `{"message_id":${rest}` }
  return { event: 'tool_output', data: `{"id":${rest}` }
}

function framesOf(entry: Known, thread: ThreadState): Frame[] {
  const interaction_id = entry.runId
  switch (entry.kind) {
    case 'message.added': {
      const { message, path } = entry.body
      const by = path === undefined ? {} : { path }
      if (entry.body.for === 'model') return []
      if (message.role !== 'user')
        return messageEvents(message).map((one) => frame(eventNames[one.type], { ...one, ...by }))
      const started = { interaction_id, chat_id: thread.clientId, status: 'RUNNING' }
      const said = { user_message: textOf(message), created_at: isoTime(entry.at) }
      return [frame('interaction_started', { ...started, ...said })]
    }
    case 'message.retracted':
      return [frame('retracted', entry.body)]
    case 'effect.intended': {
      if (entry.body.effect !== 'tool') return []
      const again = entry.body.attempt > 1 && { attempt: entry.body.attempt }
      return [frame('tool_call', { ...callEvent(entry.body, thread), ...again })]
    }
    case 'ask.raised':
      return [frame('approval_required', approvalJson(entry.body))]
    case 'ask.answered': {
      const { askId, state, reason, input, outcome, remember } = entry.body
      if (state === 'cancelled') return []
      const approved = state === 'approved' || state === 'answered'
      const by = { by: entry.actor.id, ...(reason !== undefined && { reason }) }
      const more = { ...(outcome && { outcome }), ...(remember && { remember }) }
      const edit = editOf(thread.asks.get(askId))
      const edited = edit
        ? { edited: true, edited_input: edit.input, original_input: edit.original }
        : input !== undefined && { edited_input: input }
      const about = { approval_id: askId, approved, state, ...by, ...more, ...edited }
      return [frame(approved ? 'approved' : 'rejected', about)]
    }
    case 'event':
      return told.get(entry.body.name)?.(entry.body.value as object) ?? []
    case 'run.completed':
      return [complete(interaction_id, 'COMPLETED')]
    case 'run.failed': {
      const { code, message, retryable = false } = entry.body.error
      const error = frame('error', { error: message, code, retryable })
      return [error, complete(interaction_id, 'FAILED')]
    }
    case 'run.cancelled':
      return [
        frame('cancelled', { interaction_id, ...entry.body }),
        complete(interaction_id, 'CANCELLED'),
      ]
    default:
      return []
  }
}

/** Events that a person who waits wants to know of. */
const told: ReadonlyMap<string, (value: object) => Frame[]> = new Map([
  [
    agentMoved,
    (value) => {
      const moved = value as AgentMoved
      const [event, data] = movedEvent(moved)
      return [frame(event, { ...data, path: moved.path })]
    },
  ],
  [workflowEnded, (value) => [frame('workflow_completed', value)]],
  ['retry', (value) => [frame('retrying', value)]],
  ['fallback', (value) => [frame('fallback', value)]],
  ['context', (value) => [frame('context_shortened', value)]],
  ['policy', (value) => [frame('denied', value)]],
])

const complete = (interaction_id: string | undefined, status: string) =>
  frame('interaction_complete', { interaction_id, status })
