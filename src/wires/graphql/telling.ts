import type { Piece } from '../../core/agent.ts'
import { editsIn } from '../../core/edited.ts'
import type { Known } from '../../core/entries.ts'
import { asText, callsOf, type Message, textOf } from '../../core/messages.ts'
import type { Run } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import { sameJson } from '../../lib/json-patch.ts'
import { isLong } from '../../lib/json-steps.ts'
import { openAsks, standInCall, waitsInside } from '../asks.ts'
import type { ResponseStatus, RuntimeEvent, ToldEvent } from './events.ts'
import { failedStatus, stoppedStatus } from './failures.ts'
import { interruptEvent } from './interrupts.ts'
import { contentOf, endOf, fullStop, type Growing, startOf } from './making.ts'
import { resultId, toClient } from './messages.ts'

/** Who listens, as its request says. */
export interface Listener {
  threadId: string
  /** The agent that it talks to, as it calls it; it is told of that agent's state. */
  agent: string | undefined
  /** Names of the actions that it offers. */
  tools: ReadonlySet<string>
  /** Tools of ours that it has one of the same name of: it would run what we ran. */
  hidden: ReadonlySet<string>
  /** Ids of what it has. */
  has: ReadonlySet<string>
  /** What it has ends in a call or a result. */
  endsInCall: boolean
  /** Its copy of the agent's state, if it brought one. */
  state: unknown
}

interface Open {
  kind: Growing
  messageId: string
  /** Characters told. */
  sent: number
}

/**
 * Tells one client what a run says, until it ends or waits. What it has begun it ends: a message
 * without a status would be pending to the client for ever.
 */
export class Telling {
  readonly runId: string
  readonly #to: Listener
  readonly #thread: Thread
  /** Whether it lacks something else than this run: then it is given all there is, at the end. */
  readonly #lacks: () => boolean
  readonly #open = new Map<string, Open>()
  /** Calls that were sent with the arguments of the model. */
  readonly #asWritten = new Set<string>()
  /** The agent's state as far as it is told: the thread may be further. */
  #shared: unknown
  #node = ''
  #stays = true
  #endsInCall: boolean
  /** The last event was made. */
  over = false

  /** `shared` is the agent's state where the telling begins. */
  constructor(to: Listener, thread: Thread, runId: string, shared: unknown, lacks: () => boolean) {
    this.#to = to
    this.#shared = shared
    this.#lacks = lacks
    this.#endsInCall = to.endsInCall
    this.#thread = thread
    this.runId = runId
  }

  piece(piece: Piece, at: number): RuntimeEvent[] {
    const { kind, id, messageId = id, name = '', text } = piece
    if (kind !== 'text' && kind !== 'input') return []
    if (this.#to.has.has(id) || (kind === 'input' && this.#to.hidden.has(name))) return []
    const open = this.#open.get(id)
    const begun = open ?? { kind, messageId, sent: 0 }
    const events = open ? [] : [startOf(kind, id, messageId, name, at)]
    if (!open) this.#endsInCall = kind === 'input'
    this.#open.set(id, begun)
    begun.sent += text.length
    if (text !== '') events.push(contentOf(kind, id, text))
    return events
  }

  entry(entry: Known): ToldEvent[] {
    if (entry.runId !== this.runId) return []
    switch (entry.kind) {
      case 'message.added':
        return entry.body.for === 'model' ? [] : this.#message(entry.body.message, entry.at)
      case 'message.retracted':
        return this.#endAll(({ id, messageId }) => {
          return entry.body.ids.includes(id) || entry.body.ids.includes(messageId)
        }, again)
      case 'state.patched':
        if (entry.body.agent !== this.#run?.agent) return []
        this.#shared = entry.body.value
        return isOwn(entry, this.#to) ? [] : this.#state(entry, true)
      case 'event':
        return this.#event(entry, entry.body.name, entry.body.value)
      case 'ask.raised': {
        const open = entry.body.ask.live && waitsInside(this.#thread.state, this.#run)
        return open ? this.#end(entry) : []
      }
      case 'run.waiting': {
        // A slow reader may be told of questions that were answered long ago: it reads on.
        const { asks } = this.#thread.state
        return entry.body.askIds.some((id) => !asks.get(id)?.answer) ? this.#end(entry) : []
      }
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        return entry.seq === this.#run?.endSeq ? this.#end(entry) : []
      default:
        return []
    }
  }

  /** The thread is no more. */
  gone(): RuntimeEvent[] {
    this.over = true
    const why = 'The thread was deleted.'
    const status = stoppedStatus(why)
    return [...this.#endAll(() => true, why), { type: 'ResponseEnd', status }]
  }

  get #run(): Run | undefined {
    return this.#thread.state.runs.get(this.runId)
  }

  /** A finished message: what was not told of it yet, and its end. */
  #message(message: Message, at: number): RuntimeEvent[] {
    const { id, role } = message
    if (message.imported || role === 'system') return []
    if (role === 'tool') return this.#result(message, at)
    const text = textOf(message)
    if (role === 'user') {
      if (this.#to.has.has(id) || text === '') return []
      this.#endsInCall = false
      const start = { type: 'TextMessageStart', messageId: id, role, at } as const
      return [start, contentOf('text', id, text), { type: 'TextMessageEnd', messageId: id }]
    }
    const events: RuntimeEvent[] = []
    const failed = message.partial ? 'The answer was stopped.' : undefined
    if (text !== '') events.push(...this.#finish({ kind: 'text', id, text }, at, failed))
    const calls = callsOf(message)
    const edits = calls.length > 0 ? editsIn(this.#thread.state) : none
    for (const { callId, name, input } of calls) {
      // A call whose arguments were sent in part ends as the model wrote it.
      const edit = this.#open.has(callId) ? undefined : edits.get(callId)
      if (!edit && !this.#to.has.has(callId)) this.#asWritten.add(callId)
      const text = edit ? asText(edit.input) : input
      const piece = { kind: 'input', id: callId, messageId: id, name, text } as const
      events.push(...this.#finish(piece, at, failed))
    }
    return [...events, ...this.#endAll(({ messageId }) => messageId === id, again)]
  }

  #finish(piece: Piece, at: number, failed: string | undefined): RuntimeEvent[] {
    const { id } = piece
    const sent = this.#open.get(id)?.sent
    const rest = { ...piece, text: piece.text.slice(sent ?? 0) }
    const events = sent !== undefined && rest.text === '' ? [] : this.piece(rest, at)
    const open = this.#open.get(id)
    if (!open) return []
    this.#open.delete(id)
    return [...events, endOf(open.kind, id, failed)]
  }

  #result(message: Message, at: number): RuntimeEvent[] {
    const { callId = '', name = '' } = message
    const { has, tools, hidden } = this.#to
    // Told of a result of its own action, a client would run it once more.
    if (has.has(resultId(callId)) || tools.has(name) || hidden.has(name)) return []
    const about = { actionExecutionId: callId, actionName: name }
    this.#endsInCall = true
    return [{ type: 'ActionExecutionResult', ...about, result: textOf(message), at }]
  }

  #endAll(which: (one: { id: string; messageId: string }) => boolean, why: string) {
    const events: RuntimeEvent[] = []
    for (const [id, { kind, messageId }] of this.#open) {
      if (!which({ id, messageId })) continue
      this.#open.delete(id)
      events.push({ ...endOf(kind, id, why), retracted: true } as RuntimeEvent)
    }
    return events
  }

  #event(entry: Known, name: string, value: unknown): ToldEvent[] {
    if (name === 'Exit') this.#stays = false
    if (name !== 'step.started' && name !== 'step.finished') return []
    this.#node = String((value as { name?: unknown } | null)?.name ?? '')
    return this.#state(entry, name === 'step.started')
  }

  /** The agent's whole state: what a client is told takes the place of what it has. */
  #state(entry: Known, active: boolean, more?: { messages: object[] }): ToldEvent[] {
    const { agent, threadId } = this.#to
    if (agent === undefined && !more) return []
    const agentName = agent ?? this.#run?.agent ?? ''
    const about = { threadId, agentName, nodeName: this.#node, runId: this.runId }
    const value = { ...stateWithoutMessages(this.#shared), ...more }
    const state = isLong(value) ? value : JSON.stringify(value)
    const id = `${this.runId}-state-${entry.seq}${active ? '' : '-end'}`
    const running = agent !== undefined && this.#stays
    return [{ type: 'AgentStateMessage', id, ...about, active, running, state, at: entry.at }]
  }

  #end(entry: Known): ToldEvent[] {
    this.over = true
    const status = statusOf(entry)
    const failed = status.code === 'Failed' ? 'The run has ended before this was whole.' : again
    return [
      ...this.#endAll(() => true, failed),
      ...(waits(entry) ? this.#questions(entry) : this.#full(entry)),
      ...this.#last(entry),
      { type: 'ResponseEnd', status },
    ]
  }

  #full = ({ seq, at }: Known) => (this.#endsInCall ? fullStop(`${this.runId}-${seq}`, at) : [])

  /** Calls that stand for what is asked; where the client has none for it, the oldest interrupt. */
  #questions(entry: Known): RuntimeEvent[] {
    const run = this.#run
    if (!run) return []
    const { at } = entry
    const { tools, has } = this.#to
    const { calls, interrupts } = openAsks(this.#thread.state, run, tools)
    const [first] = interrupts
    if (first) return [...this.#full(entry), interruptEvent(first)]
    return calls
      .filter(({ ask }) => ask.kind !== 'client_tool' && !has.has(ask.askId))
      .flatMap((record) => {
        const {
          id: actionExecutionId,
          name: actionName,
          arguments: args,
        } = standInCall(record, tools)
        return [
          { type: 'ActionExecutionStart', actionExecutionId, actionName, at } as const,
          { type: 'ActionExecutionArgs', actionExecutionId, args } as const,
          { type: 'ActionExecutionEnd', actionExecutionId } as const,
        ]
      })
  }

  /** Whether the client was sent arguments that an approver has changed since. */
  #sentOriginals(): boolean {
    if (this.#asWritten.size === 0) return false
    const edits = editsIn(this.#thread.state)
    return [...this.#asWritten].some((callId) => edits.has(callId))
  }

  /** The state at the end; to a client that lacks something, with all that the thread holds. */
  #last(entry: Known): ToldEvent[] {
    const { agent } = this.#to
    if (entry.kind === 'run.completed' && (this.#lacks() || this.#sentOriginals()))
      return this.#state(entry, false, { messages: toClient(this.#thread.state) })
    const silent = this.#node === '' && this.#shared === undefined
    return agent === undefined || silent ? [] : this.#state(entry, false)
  }
}

const none: ReturnType<typeof editsIn> = new Map()

const waits = ({ kind }: Known) => kind === 'run.waiting' || kind === 'ask.raised'

const again = 'This was cut off and is given again.'

/** A client need not be told of the state that it brought itself. */
const isOwn = ({ actor, body }: Known<'state.patched'>, { state }: Listener): boolean =>
  actor.type === 'user' && sameJson(body.value, state)

function statusOf(entry: Known): ResponseStatus {
  if (entry.kind === 'run.failed') return failedStatus(entry.body.error)
  if (entry.kind !== 'run.cancelled') return { code: 'Success' }
  return stoppedStatus(entry.body.reason ?? 'The run was stopped.')
}

/** The messages of a state are the thread's, and clients load them as such. */
export function stateWithoutMessages(value: unknown): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  const { messages: _, ...rest } = value as { messages?: unknown }
  return rest
}
