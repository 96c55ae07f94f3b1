import type { Piece } from '../../core/agent.ts'
import { governorView, isMeterNow } from '../../core/budget.ts'
import { editOfCall } from '../../core/edited.ts'
import type { Known } from '../../core/entries.ts'
import type { Cursor, Step } from '../../core/follow.ts'
import { callsOf, type Message, textOf } from '../../core/messages.ts'
import { returnedEvent } from '../../core/returned.ts'
import type { Thread } from '../../core/thread.ts'
import { waitsInside } from '../asks.ts'
import { finishOf } from './ending.ts'
import { callEvents, custom, type EventText, event, messagesSnapshot, openId } from './events.ts'
import { type AguiMessage, reasoningId, thoughtOf } from './messages.ts'
import { Opened } from './opened.ts'
import {
  commonPrefix,
  firstOf,
  partialMessages,
  placesOf,
  resultOf,
  shownMessages,
  stateEvents,
} from './snapshot.ts'

/** Who listens, as its request says. */
export interface Listener {
  /** The ids that the client gave, echoed. */
  threadId: string
  runId: string
  protocol: '0' | '1'
  /** Names of the tools that the client offers. */
  tools: ReadonlySet<string>
  /** The places of what it has, by the id of a message, and by `resultOf` its call. */
  has: ReadonlyMap<string, number>
  /** Thoughts among them. */
  thoughts: readonly string[]
  /** Its copy of the agent's state. */
  state: unknown
}

/**
 * Tells one client what happens on a thread until a run ends or waits, as AG-UI events in an order
 * that its verifier accepts: it remembers what it has opened, and closes all of it before the end.
 */
export class Telling {
  readonly #to: Listener
  readonly #thread: Thread
  readonly runId: string
  readonly #agent: string
  readonly #opened = new Opened()
  readonly #steps = new Set<string>()
  #state: { value: unknown } | undefined
  #has: ReadonlyMap<string, number>
  /** Entries up to here were told by a snapshot. */
  #told = 0
  /** The last event was made. */
  over = false

  constructor(to: Listener, thread: Thread, runId: string) {
    this.#to = to
    this.#thread = thread
    this.#has = to.has
    this.runId = runId
    this.#agent = thread.state.runs.get(runId)?.agent ?? thread.state.agent
    if (isFilled(to.state)) this.#state = { value: to.state }
  }

  /**
   * Takes a telling up again for a client that has the events of these entries of the run, so many characters of
   * messages that are open, and what a snapshot told. The next change of the state is told whole.
   */
  resume(entries: readonly Known[], sent: Cursor['sent'] = new Map(), told = 0): void {
    this.#told = told
    this.#state = undefined
    for (const { kind, body } of entries) {
      if (kind === 'run.waiting') this.#steps.clear()
      if (kind === 'event') this.#event(body.name, body.value)
    }
    for (const [key, count] of sent) {
      const colon = key.indexOf(':')
      const kind = key.slice(0, colon) as Piece['kind']
      const piece = { kind, id: key.slice(colon + 1), text: '' }
      this.#opened.start(piece)
      this.#opened.count(piece, count)
    }
  }

  /** Entries up to this seq were told by a snapshot. */
  get told(): number {
    return this.#told
  }

  /** To a client that has what went before. */
  begin(): EventText[] {
    return [this.started(), ...this.#shared()]
  }

  /** To a client that may have nothing: all there is, and what is being written open for more. */
  join(): EventText[] {
    const { tail, state } = this.#thread
    const events: string[] = []
    // Pieces of another server may be ahead of the entries here, or behind: then they come later.
    for (const piece of tail.seq === state.seq ? tail.pieces : []) {
      events.push(...this.#opened.start(piece))
      this.#opened.count(piece)
    }
    for (const name of state.runs.get(this.runId)?.steps ?? []) {
      this.#steps.add(name)
      events.push(event('STEP_STARTED', { stepName: name }))
    }
    this.#state = undefined
    const messages = this.#messages()
    const prefix = commonPrefix(messages, this.#has)
    const cut = prefix === undefined ? [] : [messagesSnapshot(prefix)]
    const shown = placesOf(messages)
    const lost = this.#to.thoughts.filter((id) => !shown.has(id))
    return [this.started(), ...cut, ...this.snapshot(lost), ...events]
  }

  piece(piece: Piece): string[] {
    return this.#opened.piece(piece)
  }

  /** Pieces that were made for another reader; false if they do not fit what this one has. */
  takes(counts: ReadonlyMap<string, number>): boolean {
    return this.#opened.takes(counts)
  }

  entry(entry: Known): EventText[] {
    if (entry.seq <= this.#told) return this.#known(entry)
    switch (entry.kind) {
      case 'message.added':
        return entry.body.for === 'model' ? [] : this.#message(entry.body.message)
      case 'message.retracted':
        return this.retract(entry.body.ids)
      case 'state.patched':
        return entry.body.agent === this.#agent ? this.#shared(entry.body.value) : []
      case 'effect.intended':
      case 'effect.done':
      case 'effect.failed':
      case 'effect.unknown':
        return [
          ...this.#meter(entry),
          ...callEvents(entry, this.#thread.state),
          ...(this.#showsOriginal(entry) ? this.snapshot() : []),
        ]
      case 'event':
        return this.#event(entry.body.name, entry.body.value)
      default:
        return [...this.#meter(entry), ...this.#ending(entry)]
    }
  }

  /** Whether the client shows arguments of a call that starts with others, because the approver changed them. */
  #showsOriginal(entry: Known): boolean {
    if (entry.kind !== 'effect.intended') return false
    const { state } = this.#thread
    const { askId, callId = '' } = entry.body
    if (!editOfCall(state, askId)) return false
    return this.#has.has(state.calls.get(callId)?.messageId ?? '')
  }

  #meter(entry: Known): EventText[] {
    const { state } = this.#thread
    return isMeterNow(entry, state)
      ? [custom('handrail:governor', governorView(state.governor))]
      : []
  }

  /** What was begun will not be finished: it is closed, and gone from the list. */
  retract(ids: readonly string[]): EventText[] {
    const thoughts = ids.map(reasoningId).filter((id) => this.#opened.has(id))
    if (thoughts.length === 0 && !ids.some((id) => this.#opened.has(id)) && !this.#opened.calling)
      return [] // nothing of it was told
    const gone = new Set([...ids, ...thoughts])
    // What has no piece any more is not being written any more.
    const pieces = this.#thread.tail.pieces.filter(
      ({ id, messageId = id }) => !gone.has(id) && !gone.has(messageId),
    )
    const live = new Set(pieces.map(openId))
    return [...this.#opened.closeAll((id) => live.has(id)), ...this.snapshot(thoughts)]
  }

  /** `emptied`: thoughts that the client must lose, which a list without any would leave there. */
  snapshot(emptied: readonly string[] = []): EventText[] {
    this.#told = this.#thread.state.seq
    const messages = this.#messages()
    if (!messages.some(({ role }) => role === 'reasoning')) {
      for (const id of emptied) messages.push({ id, role: 'reasoning', content: '' })
    }
    this.#has = placesOf(messages)
    return [messagesSnapshot(messages), ...this.#shared()]
  }

  #messages(): AguiMessage[] {
    const { state, tail } = this.#thread
    const messages = shownMessages(state, this.#to.tools)
    const spoken = firstOf(state, state.line, messages)
    messages.splice(
      spoken,
      0,
      ...partialMessages(tail.pieces, (id) => this.#opened.sent(id), state),
    )
    return messages
  }

  /** Closes what is open and ends the stream as things stand. `entry` is what ended it, if one did. */
  end(entry?: Known): EventText[] {
    this.over = true
    const unfinished = this.#opened.calling
    const closed = [
      ...this.#opened.closeAll(),
      ...[...this.#steps].map((stepName) => event('STEP_FINISHED', { stepName })),
    ]
    this.#steps.clear()
    const { list, last } = finishOf(this.#to, this.#thread.state, this.runId, entry)
    // A call that was cut must not look like one that can be made.
    const again = list || unfinished
    return [...closed, ...(again ? this.snapshot() : []), ...last]
  }

  started(): string {
    const { threadId, runId } = this.#to
    return event('RUN_STARTED', { threadId, runId })
  }

  /** The agent's state, as far as the client has another. */
  #shared(value = this.#thread.state.states.get(this.#agent)): EventText[] {
    if (value === undefined) return []
    const events = stateEvents(this.#state, value)
    this.#state = { value }
    return events
  }

  /** Entries that a snapshot told already: what they close is closed, what they end is over. */
  #known(entry: Known): EventText[] {
    if (entry.kind === 'message.added') {
      const { message } = entry.body
      const ids = [
        message.id,
        reasoningId(message.id),
        ...callsOf(message).map((one) => one.callId),
      ]
      return ids.flatMap((id) => this.#opened.close(id))
    }
    if (isEffect(entry)) return callEvents(entry, this.#thread.state)
    return this.#ending(entry)
  }

  #ending(entry: Known): EventText[] {
    const { kind, runId = '' } = entry
    if (kind === 'ask.raised') {
      const { state } = this.#thread
      const open = runId === this.runId && waitsInside(state, state.runs.get(runId))
      return entry.body.ask.live && open ? this.end(entry) : []
    }
    if (kind === 'run.waiting') {
      // A slow reader may be told of questions that were answered long ago: it reads on.
      return this.#thread.state.runs.get(runId)?.status === 'waiting' ? this.end(entry) : []
    }
    if (kind !== 'run.completed' && kind !== 'run.failed' && kind !== 'run.cancelled') return []
    if (runId === this.runId) return this.end(entry)
    // The client has put its own message before the answer that went first.
    const messages = this.#messages()
    const before = messages.slice(0, firstOf(this.#thread.state, [this.runId], messages))
    return [
      custom('handrail:run_ended', { runId, status: kind.slice('run.'.length) }),
      messagesSnapshot(before),
      ...this.snapshot(),
    ]
  }

  #event(name: string, value: unknown): EventText[] {
    const said = (value ?? {}) as Record<string, unknown>
    if (name === 'step.started') {
      const stepName = String(said.name)
      if (this.#steps.has(stepName)) return []
      this.#steps.add(stepName)
      return [event('STEP_STARTED', { stepName })]
    }
    if (name === 'step.finished') {
      const stepName = String(said.name)
      return this.#steps.delete(stepName) ? [event('STEP_FINISHED', { stepName })] : []
    }
    if (name === 'activity' && this.#thread.state.activities.has(String(said.id))) {
      const { id: messageId, type: activityType, content } = said
      return [event('ACTIVITY_SNAPSHOT', { messageId, activityType, content, replace: true })]
    }
    if (name === returnedEvent) return []
    if (name === 'guardrail') {
      const { where, rule, reason } = said
      return [custom('handrail:guardrail', { where, rule, reason })]
    }
    return [custom(ours.has(name) ? `handrail:${name}` : name, value ?? null)]
  }

  /** A finished message: what was not sent of it yet, and its end. */
  #message(message: Message): EventText[] {
    const { id } = message
    // What is said is known to who says it, and to others by a list; history, to who brought it.
    if (message.role === 'user' || message.role === 'system' || message.imported) return []
    if (message.role === 'tool') {
      const { callId: toolCallId = '' } = message
      if (this.#has.has(resultOf(toolCallId))) return []
      const content = textOf(message)
      return [event('TOOL_CALL_RESULT', { messageId: id, toolCallId, content, role: 'tool' })]
    }
    const events = [
      ...this.#opened.finish({ kind: 'reasoning', id, text: thoughtOf(message) }),
      ...this.#opened.finish({ kind: 'text', id, text: textOf(message) }),
    ]
    for (const { callId, name, input } of callsOf(message)) {
      const piece = { kind: 'input', id: callId, messageId: id, name, text: input } as const
      events.push(...this.#opened.finish(piece))
    }
    return events
  }
}

const isEffect = (entry: Known): entry is Parameters<typeof callEvents>[0] =>
  entry.kind.startsWith('effect.')

/** Events of the runtime itself; others are named by agents. */
const ours = new Set(['retry', 'fallback', 'context', 'policy'])

const isFilled = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0

export type PiecesStep = Extract<Step, { type: 'pieces' }>
