import type { Piece } from '../../core/agent.ts'
import { editOf, editOfCall } from '../../core/edited.ts'
import type { Known } from '../../core/entries.ts'
import { namesText } from '../../core/follow.ts'
import { textOf } from '../../core/messages.ts'
import { ended, type Run } from '../../core/state.ts'
import { shownKey } from '../../core/tail.ts'
import type { Thread } from '../../core/thread.ts'
import {
  type AgentMoved,
  agentMoved,
  type WorkflowEnded,
  workflowEnded,
} from '../../core/workflow-events.ts'
import { movedEvent } from '../agents-told.ts'
import type { Frame, Projection } from '../sse.ts'
import { outputOf, statusDuring } from './session.ts'

interface Options {
  /** The agent tells of its parts itself. */
  orchestrates: boolean
  now: () => number
}

/** One run as the events of the workflow API. */
export function workflowView(thread: Thread, runId: string, options: Options): Projection {
  const { state } = thread
  const run = () => state.runs.get(runId)!
  const teller = new Teller(thread, runId, options)
  return {
    dialect: `workflow:${runId}`,
    names: namesText(runId, state.clientId),
    entry: (entry, shown) => (entry.runId === runId ? teller.entry(entry, shown) : []),
    piece: (piece, of) => (of === runId ? teller.piece(piece) : undefined),
    retracted: (ids) => teller.retracted(ids),
    ends: (entry) => entry.runId === runId && entry.seq === run().endSeq,
    over: () => ended(run()),
  }
}

class Teller {
  readonly #thread: Thread
  readonly #runId: string
  readonly #options: Options

  constructor(thread: Thread, runId: string, options: Options) {
    this.#thread = thread
    this.#runId = runId
    this.#options = options
  }

  get #run(): Run {
    return this.#thread.state.runs.get(this.#runId)!
  }

  entry(entry: Known, shown: ReadonlyMap<string, number>): Frame[] {
    const tell = (event: string, data: object) => this.#frame(event, data, entry.at)
    const { agent } = this.#run
    switch (entry.kind) {
      case 'run.started': {
        if (entry.body.leg > 1 || this.#options.orchestrates) return []
        return [tell('agent_started', { agent, step: 1, task: this.#task() })]
      }
      case 'message.added':
        return this.#message(entry, shown)
      case 'message.retracted':
        return [tell('retracted', { message_ids: entry.body.ids })]
      case 'effect.intended': {
        const { effect, name, input, callId, effectId, path, askId, grantId } = entry.body
        if (effect !== 'tool') return []
        const about = { tool_name: name, tool_args: input, tool_call_id: callId ?? effectId }
        const edit = editOfCall(this.#thread.state, askId)
        const more = {
          ...(edit && { edited: true, original_args: edit.original }),
          ...(grantId !== undefined && { grant_id: grantId }),
        }
        return [tell('tool_call', { ...about, agent: this.#agentAt(path), ...more })]
      }
      case 'ask.raised':
        return [tell('approval_required', this.#approval(entry))]
      case 'ask.answered':
        return this.#answered(entry)
      case 'event':
        return this.#event(entry)
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        return this.#ended(entry)
      default:
        return []
    }
  }

  piece({ kind, id, messageId = id, path, text }: Piece): Frame | undefined {
    if (kind !== 'text' && kind !== 'reasoning') return undefined
    const agent = this.#agentAt(path)
    const at = this.#options.now()
    const about = { agent, message_id: messageId, content: text }
    if (kind === 'reasoning') return this.#frame('thinking', about, at)
    return this.#frame('agent_stream', { ...about, content_type: 'text' }, at)
  }

  retracted(ids: readonly string[]): Frame {
    return this.#frame('retracted', { message_ids: ids }, this.#options.now())
  }

  #frame(event: string, data: object, at: number): Frame {
    const { clientId: session_id } = this.#thread.state
    const timestamp = new Date(at).toISOString()
    const envelope = { event, timestamp, session_id, run_id: this.#runId, data }
    return { event, data: JSON.stringify(envelope) }
  }

  /** Sends the part of the text that this reader did not get as pieces. */
  #message(entry: Known<'message.added'>, shown: ReadonlyMap<string, number>): Frame[] {
    const { message, for: whom, path } = entry.body
    const agent = this.#agentAt(path)
    const tell = (event: string, data: object) => this.#frame(event, data, entry.at)
    if (whom === 'model' || message.role === 'user' || message.role === 'system') return []
    const text = textOf(message)
    if (message.role === 'tool') {
      const { callId: tool_call_id, name: tool_name, failed } = message
      const result = failed ? null : parsed(text)
      const outcome = { result, success: !failed, error: failed ? text : null }
      return [tell('tool_result', { tool_call_id, tool_name, ...outcome, agent })]
    }
    const content = text.slice(shown.get(shownKey('text', message.id)) ?? 0)
    if (content === '') return []
    const about = { agent, message_id: message.id, content }
    return [tell('agent_stream', { ...about, content_type: 'text' })]
  }

  #approval({ at, body: { ask } }: Known<'ask.raised'>): object {
    const { askId, kind, title, input, deadline, path, card } = ask
    const { recommendation = input } = (input ?? {}) as { recommendation?: unknown }
    const seconds = Math.round((deadline - at) / 1_000)
    return {
      approval_id: askId,
      session_id: this.#thread.state.clientId,
      recommendation,
      timeout_seconds: seconds,
      timeout_hours: Math.ceil(seconds / 3_600),
      kind,
      title,
      agent: ask.agent ?? this.#run.agent,
      ...(path !== undefined && { path }),
      ...(card && { card }),
    }
  }

  #answered({ at, body: { askId, state, reason } }: Known<'ask.answered'>): Frame[] {
    if (state === 'cancelled') return []
    const record = this.#thread.state.asks.get(askId)
    const waited = record ? Math.round((record.ask.deadline - record.raisedAt) / 1_000) : 0
    if (state === 'timeout')
      return [this.#frame('approval_timeout', { approval_id: askId, timeout_seconds: waited }, at)]
    const edit = editOf(record)
    const edited = edit && { edited: true, input: edit.input, original_input: edit.original }
    const data = { approval_id: askId, status: state, reason: reason ?? null, ...edited }
    return [this.#frame('approval_response', data, at)]
  }

  #event({ at, body: { name, value } }: Known<'event'>): Frame[] {
    if (name === workflowEnded)
      return [this.#frame('workflow_completed', value as WorkflowEnded, at)]
    if (name === agentMoved) return this.#moved(value as AgentMoved, at)
    if (name === 'retry') return [this.#frame('retrying', value as object, at)]
    return []
  }

  /** Agents of agents are no part of the session: of them it is told what they do, not how it stands. */
  #moved(moved: AgentMoved, at: number): Frame[] {
    const { agent, path, status, output, error, agents = { [agent]: status } } = moved
    const told = this.#frame(...movedEvent(moved), at)
    if (path.includes('/')) return [told]
    const state_update = {
      status,
      ...(output !== undefined && { output }),
      ...(error !== undefined && { error }),
    }
    const { state } = this.#thread
    const changed = {
      session_id: state.clientId,
      agent_name: agent,
      state_update,
      workflow_status: statusDuring(this.#run, state, agents),
    }
    return [told, this.#frame('agent_state_changed', changed, at)]
  }

  #ended(entry: Known<'run.completed' | 'run.failed' | 'run.cancelled'>): Frame[] {
    const tell = (event: string, data: object) => this.#frame(event, data, entry.at)
    const { agent } = this.#run
    const goesOn = entry.seq !== this.#run.endSeq // it was tried again
    if (entry.kind === 'run.cancelled')
      return [tell('workflow_cancelled', { agent, reason: entry.body.reason ?? null })]
    const about = { workflow: agent, account_id: null }
    if (entry.kind === 'run.completed') {
      if (this.#options.orchestrates) return []
      const output = outputOf(this.#run, this.#thread.state) ?? null
      const final_output = { status: 'completed', agents_completed: [agent], results: { output } }
      return [
        tell('agent_completed', { agent, step: 1, output }),
        tell('workflow_completed', { ...about, final_output }),
      ]
    }
    const { message, code } = entry.body.error
    const failed = { agent, step: 1, error_message: message, code, critical: true }
    const error = tell('agent_error', { ...failed, retrying: goesOn })
    if (this.#options.orchestrates || goesOn) return [error]
    const final_output = {
      status: 'error',
      message: `Critical agent ${agent} failed`,
      error: message,
    }
    return [error, tell('workflow_completed', { ...about, final_output })]
  }

  #task(): string {
    const { messages } = this.#thread.state
    const said = this.#run.messageIds.map((id) => messages.get(id)?.message)
    const user = said.find((message) => message?.role === 'user')
    return user ? textOf(user) : ''
  }

  /** Who works at the end of a path: its last agent is named by the state that says so. */
  #agentAt(path: string | undefined): string {
    const { agent } = this.#run
    if (path === undefined) return agent
    const parts = (this.#thread.state.states.get(agent) as { agents?: unknown } | undefined)?.agents
    const named = (parts as Record<string, { agent?: string }> | undefined)?.[path.split('/')[0]!]
    return named?.agent ?? path
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
