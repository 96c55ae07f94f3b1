import type { Piece } from '../../core/agent.ts'
import { messagesShown } from '../../core/branch.ts'
import type { Known } from '../../core/entries.ts'
import { callsOf, type Message, textOf } from '../../core/messages.ts'
import type { ThreadState } from '../../core/state.ts'
import { interruptOf, openAsks, shownAs, standInCall, standInMessages } from './asks.ts'
import { type AguiMessage, reasoningId, toClient } from './messages.ts'

export interface Listener {
  /** The ids that the client gave, echoed. */
  threadId: string
  runId: string
  protocol: '0' | '1'
  /** Names of the tools that the client offers. */
  tools: ReadonlySet<string>
}

const json = JSON.stringify

/**
 * Tells one client what happens, as AG-UI events in an order its verifier accepts: it remembers
 * what it has opened, and closes all of it before the end.
 */
export class Telling {
  readonly #to: Listener
  readonly #state: ThreadState
  readonly #runId: string
  /** What is open, by its AG-UI id: its kind, and how many characters were sent. */
  readonly #open = new Map<string, { kind: Piece['kind']; sent: number }>()
  /** Reasoning that was closed when its message began to speak, and is complete. */
  readonly #thought = new Set<string>()
  #over = false
  /** Calls whose results the client has sent itself. */
  readonly #own = new Set<string>()
  /** Entries up to here were told by a snapshot. */
  #told = 0

  constructor(to: Listener, state: ThreadState, runId: string) {
    this.#to = to
    this.#state = state
    this.#runId = runId
  }

  has(callIds: Iterable<string>): void {
    for (const callId of callIds) this.#own.add(callId)
  }

  started(): string {
    const { threadId, runId } = this.#to
    return `{"type":"RUN_STARTED","threadId":${json(threadId)},"runId":${json(runId)}}`
  }

  /** All there is, and what is being written with its text so far, open for more. */
  snapshot(pieces: readonly Piece[]): string[] {
    const state = this.#state
    this.#told = state.seq
    const messages = shownMessages(state, this.#to.tools)
    const partial = new Map<string, AguiMessage>()
    const events: string[] = []
    for (const piece of pieces) {
      if (piece.kind === 'output') continue
      events.push(...this.#openFor(piece))
      this.#open.get(openId(piece))!.sent += piece.text.length
      include(partial, piece)
    }
    const all = [...messages, ...partial.values()]
    const shared = state.states.get(state.agent)
    return [
      `{"type":"MESSAGES_SNAPSHOT","messages":${json(all)}}`,
      ...(shared === undefined ? [] : [`{"type":"STATE_SNAPSHOT","snapshot":${json(shared)}}`]),
      ...events,
    ]
  }

  /** By hand: this runs for every delta of every stream. */
  piece(piece: Piece): string[] {
    if (piece.kind === 'output') return []
    const id = openId(piece)
    const opening = this.#open.has(id) ? [] : this.#openFor(piece)
    this.#open.get(id)!.sent += piece.text.length
    return [...opening, contentOf(piece.kind, id, piece.text)]
  }

  entry(entry: Known): string[] {
    if (entry.runId !== this.#runId || entry.seq <= this.#told) return []
    switch (entry.kind) {
      case 'message.added':
        return entry.body.for === 'model' ? [] : this.#message(entry.body.message)
      case 'message.retracted':
        return [...this.#closeAll(), ...this.snapshot([])]
      case 'state.patched':
        return [`{"type":"STATE_SNAPSHOT","snapshot":${json(entry.body.value)}}`]
      case 'event':
        return [
          `{"type":"CUSTOM","name":${json(`handrail:${entry.body.name}`)},"value":${json(entry.body.value ?? null)}}`,
        ]
      case 'run.waiting':
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        return this.end(entry)
      default:
        return []
    }
  }

  /** The last event was sent. */
  get over(): boolean {
    return this.#over
  }

  /** Closes what is open and ends the run as it stands now. */
  end(entry?: Known): string[] {
    this.#over = true
    const state = this.#state
    const run = state.runs.get(this.#runId)
    const closed = this.#closeAll()
    if (entry?.kind === 'run.failed') {
      const { code, message } = entry.body.error
      return [...closed, `{"type":"RUN_ERROR","message":${json(message)},"code":${json(code)}}`]
    }
    if (entry?.kind === 'run.cancelled') {
      const outcome = this.#to.protocol === '1' ? ',"outcome":{"type":"cancelled"}' : ''
      return [
        ...closed,
        this.#finished(`${outcome},"metadata":{"handrail":{"status":"cancelled"}}`),
      ]
    }
    const { tools } = this.#to
    const { calls, interrupts } = run ? openAsks(state, run, tools) : { calls: [], interrupts: [] }
    if (interrupts.length > 0) {
      const list = interrupts.map((record) => interruptOf(record, this.#to.protocol))
      const outcome = `,"outcome":{"type":"interrupt","interrupts":${json(list)}}`
      const before = entry ? this.snapshot([]) : []
      return [...closed, ...before, this.#finished(outcome)]
    }
    const standIns = entry ? calls.filter(({ ask }) => ask.kind !== 'client_tool') : []
    const events = standIns.flatMap((record) => {
      const { id, name, arguments: text } = standInCall(record, tools)
      const message = `${id}-call`
      return [
        `{"type":"TOOL_CALL_START","toolCallId":${json(id)},"toolCallName":${json(name)},"parentMessageId":${json(message)}}`,
        contentOf('input', id, text),
        `{"type":"TOOL_CALL_END","toolCallId":${json(id)}}`,
      ]
    })
    return [...closed, ...events, this.#finished('')]
  }

  #finished(more: string): string {
    const { threadId, runId } = this.#to
    return `{"type":"RUN_FINISHED","threadId":${json(threadId)},"runId":${json(runId)}${more}}`
  }

  /** A finished message: what was not shown of it yet, and its end. */
  #message(message: Message): string[] {
    if (message.role === 'user') return []
    if (message.role === 'tool') {
      const { id, callId = '' } = message
      if (this.#own.has(callId)) return []
      const content = json(textOf(message))
      return [
        `{"type":"TOOL_CALL_RESULT","messageId":${json(id)},"toolCallId":${json(callId)},"content":${content},"role":"tool"}`,
      ]
    }
    const { id } = message
    const thought = message.parts
      .map((part) => (part.type === 'reasoning' ? part.text : ''))
      .join('')
    const events = [
      ...this.#rest({ kind: 'reasoning', id, text: thought }),
      ...this.#rest({ kind: 'text', id, text: textOf(message) }),
    ]
    for (const { callId, name, input } of callsOf(message)) {
      const piece: Piece = { kind: 'input', id: callId, messageId: id, name, text: input }
      events.push(
        ...(input === '' ? [...this.#openFor(piece), ...this.#close(callId)] : this.#rest(piece)),
      )
    }
    return events
  }

  #rest(piece: Piece): string[] {
    const id = openId(piece)
    const { sent = 0 } = this.#open.get(id) ?? {}
    if ((piece.text === '' && !this.#open.has(id)) || this.#thought.has(id)) return []
    const left = piece.text.slice(sent)
    return [...(left === '' ? [] : this.piece({ ...piece, text: left })), ...this.#close(id)]
  }

  #openFor(piece: Piece): string[] {
    const id = openId(piece)
    if (this.#open.has(id)) return []
    // A message is thought first and said then: what was thought is over when it speaks or calls.
    const before = piece.kind === 'reasoning' ? [] : this.#closeReasoning()
    this.#open.set(id, { kind: piece.kind, sent: 0 })
    const name = json(id)
    if (piece.kind === 'text') {
      return [...before, `{"type":"TEXT_MESSAGE_START","messageId":${name},"role":"assistant"}`]
    }
    if (piece.kind === 'reasoning') {
      return [
        `{"type":"REASONING_START","messageId":${name}}`,
        `{"type":"REASONING_MESSAGE_START","messageId":${name},"role":"reasoning"}`,
      ]
    }
    const parent =
      piece.messageId === undefined ? '' : `,"parentMessageId":${json(piece.messageId)}`
    return [
      ...before,
      `{"type":"TOOL_CALL_START","toolCallId":${name},"toolCallName":${json(piece.name ?? '')}${parent}}`,
    ]
  }

  #closeReasoning(): string[] {
    const open = [...this.#open].filter(([, { kind }]) => kind === 'reasoning')
    for (const [id] of open) this.#thought.add(id)
    return open.flatMap(([id]) => this.#close(id))
  }

  #closeAll(): string[] {
    return [...this.#open.keys()].flatMap((id) => this.#close(id))
  }

  #close(id: string): string[] {
    const kind = this.#open.get(id)?.kind
    this.#open.delete(id)
    const name = json(id)
    if (kind === 'text') return [`{"type":"TEXT_MESSAGE_END","messageId":${name}}`]
    if (kind === 'input') return [`{"type":"TOOL_CALL_END","toolCallId":${name}}`]
    if (kind !== 'reasoning') return []
    return [
      `{"type":"REASONING_MESSAGE_END","messageId":${name}}`,
      `{"type":"REASONING_END","messageId":${name}}`,
    ]
  }
}

const openId = ({ kind, id }: Piece) => (kind === 'reasoning' ? reasoningId(id) : id)

function contentOf(kind: Piece['kind'], id: string, text: string): string {
  const rest = `${json(id)},"delta":${json(text)}}`
  if (kind === 'text') return `{"type":"TEXT_MESSAGE_CONTENT","messageId":${rest}`
  if (kind === 'reasoning') return `{"type":"REASONING_MESSAGE_CONTENT","messageId":${rest}`
  return `{"type":"TOOL_CALL_ARGS","toolCallId":${rest}`
}

/** What a client has on its screen: the branch, with the questions that were put to it. */
export function shownMessages(state: ThreadState, tools: ReadonlySet<string>): AguiMessage[] {
  return messagesShown(state).flatMap((one) =>
    'ask' in one
      ? shownAs(one.ask, tools) === undefined
        ? []
        : standInMessages(one, tools)
      : toClient(one.message),
  )
}

function include(
  partial: Map<string, AguiMessage>,
  { kind, id, messageId, name, text }: Piece,
): void {
  if (kind === 'reasoning') {
    const known = partial.get(reasoningId(id))
    const content = `${known?.content ?? ''}${text}`
    partial.set(reasoningId(id), { id: reasoningId(id), role: 'reasoning', content })
    return
  }
  const owner = messageId ?? id
  const known = partial.get(owner) ?? { id: owner, role: 'assistant' as const, content: '' }
  partial.set(owner, known)
  if (kind === 'text') known.content = `${known.content}${text}`
  else if (kind === 'input') {
    known.toolCalls ??= []
    const call = known.toolCalls.find((one) => one.id === id)
    if (call) call.function.arguments += text
    else
      known.toolCalls.push({
        id,
        type: 'function',
        function: { name: name ?? '', arguments: text },
      })
  }
}
