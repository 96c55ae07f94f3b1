import type { AgentEvent } from '../../core/agent.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { CallPart, Message, Part } from '../../core/messages.ts'
import { toolText } from '../../core/messages.ts'
import { eventShapes } from '../../core/workflow-events.ts'

/** How much a remote may say in one leg. */
export const limits = {
  /** Characters of a message, and of everything that is kept of one leg. */
  message: 4_000_000,
  leg: 32_000_000,
  /** Entries: messages, steps, activities, events. */
  entries: 20_000,
}

const reserved =
  /^(step\.(started|finished)|activity|retry|fallback|context|guardrail|governor|policy|returned|remote\.)/

interface Open {
  message: Message
  /** What the remote calls its text, and its reasoning. */
  text?: string
  /** What of it is still being written, by the remote's names. */
  writing: Set<string>
  size: number
}

/**
 * Writes down what a remote says, as ours: messages and calls get ids of this thread, and the remote's
 * are kept with them. What is said in the wrong order is refused.
 */
export class Scribe {
  readonly #agent: string
  readonly #newId: (prefix: string) => string
  /** Messages that are not written yet, the oldest first. */
  #open: Open[] = []
  readonly #calls = new Map<string, { call: CallPart; in: Open }>()
  /** Everything that was ever heard of, by the remote's names. */
  readonly #known: Set<string>
  readonly #answered = new Set<string>()
  #size = 0
  #entries = 0

  constructor(agent: string, messages: readonly Message[], newId: (prefix: string) => string) {
    this.#agent = agent
    this.#newId = newId
    this.#known = new Set(messages.flatMap((one) => namesOf(one, agent)))
    for (const one of messages)
      for (const part of one.parts)
        if (part.type === 'call') this.#calls.set(remoteIdOf(part), { call: part, in: whole })
    for (const { role, callId } of messages)
      if (role === 'tool' && callId) this.#answered.add(callId)
  }

  /** Whether a message or call of this name was heard of. */
  knows(id: string): boolean {
    return this.#known.has(id)
  }

  isOpen(id: string): boolean {
    return this.#open.some(({ writing }) => writing.has(id))
  }

  *begin(id: string, kind: 'text' | 'reasoning'): Generator<AgentEvent> {
    const name = kind === 'text' ? id : reasoning(id)
    if (this.isOpen(name)) throw wrong(`${kind} ${id} began twice`)
    const last = this.#open.at(-1)
    // What was thought before it belongs to what is said then.
    const joins = last && kind === 'text' && last.text === undefined && !hasCalls(last)
    const open = joins ? last : this.#begin()
    if (kind === 'text') {
      open.text = id
      open.message.meta = { remote: { agent: this.#agent, id } }
    }
    open.message.parts.push({ type: kind, text: '' })
    open.writing.add(name)
    this.#known.add(name)
    yield* this.#flush()
  }

  *add(id: string, kind: 'text' | 'reasoning', text: string): Generator<AgentEvent> {
    const name = kind === 'text' ? id : reasoning(id)
    const open = this.#open.find(({ writing }) => writing.has(name))
    if (!open) throw wrong(`${kind} of ${id}, which is not open`)
    if (text === '') return
    const part = open.message.parts.findLast(({ type }) => type === kind)
    if (part?.type !== kind) throw wrong(`${kind} of ${id}, which is not open`)
    this.#grow(open, text.length)
    part.text += text
    yield { type: 'piece', piece: { kind, id: open.message.id, text } }
  }

  /** The whole text of a message that is open: pieces of it may have been missed. */
  *settle(id: string, text: string): Generator<AgentEvent> {
    const open = this.#open.find(({ writing }) => writing.has(id))
    const part = open?.message.parts.findLast(({ type }) => type === 'text')
    if (part?.type !== 'text' || part.text === text) return
    if (text.startsWith(part.text)) yield* this.add(id, 'text', text.slice(part.text.length))
    else part.text = text
  }

  *end(id: string, kind: 'text' | 'reasoning' | 'call'): Generator<AgentEvent> {
    const name = kind === 'reasoning' ? reasoning(id) : id
    const open = this.#open.find(({ writing }) => writing.has(name))
    if (!open) throw wrong(`the end of ${kind} ${id}, which is not open`)
    open.writing.delete(name)
    yield* this.#flush()
  }

  /** A call, in the message of this name if there is one. */
  *call(id: string, name: string, parent?: string): Generator<AgentEvent> {
    if (this.#calls.has(id)) throw wrong(`call ${id} began twice`)
    const last = this.#open.at(-1)
    const joins = last && (parent === undefined || last.text === undefined) ? last : undefined
    const open = this.#open.find(({ text }) => text === parent) ?? joins ?? this.#begin()
    open.message.meta ??= { remote: { agent: this.#agent, id: parent ?? id } }
    const callId = this.#newId('call')
    const meta = { remote: { id } }
    const call: CallPart = { type: 'call', callId, name, input: '', meta }
    open.message.parts.push(call)
    open.writing.add(id)
    this.#calls.set(id, { call, in: open })
    this.#known.add(id)
    const { id: messageId } = open.message
    yield { type: 'piece', piece: { kind: 'input', id: callId, messageId, name, text: '' } }
  }

  *input(id: string, text: string): Generator<AgentEvent> {
    const known = this.#calls.get(id)
    if (!known?.in.writing.has(id)) throw wrong(`arguments of call ${id}, which is not open`)
    if (text === '') return
    const { call } = known
    this.#grow(known.in, text.length)
    call.input += text
    const { callId, name } = call
    const messageId = known.in.message.id
    yield { type: 'piece', piece: { kind: 'input', id: callId, messageId, name, text } }
  }

  *result(id: string, text: string, failed = false): Generator<AgentEvent> {
    const known = this.#calls.get(id)
    if (!known) throw wrong(`the result of call ${id}, which was not made`)
    if (known.in.writing.has(id)) throw wrong(`the result of call ${id}, which is not whole`)
    const { call } = known
    if (this.#answered.has(call.callId)) return
    this.#answered.add(call.callId)
    this.#count(text.length)
    yield* this.#flush(known.in)
    const message = toolText(this.#newId('msg'), call, text, failed)
    message.meta = { calledWith: call.input }
    yield { type: 'message', message }
  }

  /** Anything else that is kept. */
  *keep(event: AgentEvent): Generator<AgentEvent> {
    this.#count(sizeOf(event))
    yield event
  }

  /** Names of events that mean something to us are ours: a remote's own get another. */
  *event(name: string, value: unknown): Generator<AgentEvent> {
    const fits = eventShapes.get(name)?.safeParse(value).success ?? true
    const own = reserved.test(name) || !fits ? `remote:${name}` : name
    yield* this.keep({ type: 'event', name: own, value })
  }

  /** The end: all that is open is whole now. */
  *finish(): Generator<AgentEvent> {
    for (const { writing } of this.#open) writing.clear()
    yield* this.#flush('all')
  }

  /** What was whole when it was cut off stays; the rest was not said. */
  *cut(): Generator<AgentEvent> {
    this.#open = this.#open.filter(({ writing }) => writing.size === 0)
    yield* this.#flush('all')
  }

  /** Stopped by the user: what was shown stays as it is. Calls that are not whole were not made. */
  *stop(): Generator<AgentEvent> {
    for (const open of this.#open) {
      if (open.writing.size > 0) open.message.partial = true
      open.message.parts = open.message.parts.filter(
        (part) => part.type !== 'call' || !open.writing.has(remoteIdOf(part)),
      )
      open.writing.clear()
    }
    yield* this.#flush('all')
  }

  #begin(): Open {
    const message: Message = { id: this.#newId('msg'), role: 'assistant', parts: [] }
    const open: Open = { message, writing: new Set(), size: 0 }
    this.#open.push(open)
    return open
  }

  /**
   * Writes messages that are whole, oldest first: the last of them only with what needs it, since more
   * may come that belongs to it.
   */
  *#flush(upTo?: Open | 'all'): Generator<AgentEvent> {
    while (this.#open.length > 0) {
      const [first, ...rest] = this.#open as [Open, ...Open[]]
      const needed = upTo === 'all' || (upTo !== undefined && this.#open.includes(upTo))
      if (first.writing.size > 0 || (rest.length === 0 && !needed)) return
      this.#open = rest
      const { message } = first
      message.parts = message.parts.filter((part) => part.type === 'call' || speaks(part))
      if (message.parts.length === 0) continue
      this.#count(0)
      yield { type: 'message', message }
    }
  }

  #grow(open: Open, by: number): void {
    open.size += by
    if (open.size > limits.message) throw tooMuch(`a message of over ${limits.message} characters`)
    this.#size += by
    if (this.#size > limits.leg) throw tooMuch(`over ${limits.leg} characters`)
  }

  #count(size: number): void {
    this.#size += size
    if (this.#size > limits.leg) throw tooMuch(`over ${limits.leg} characters`)
    if (++this.#entries > limits.entries) throw tooMuch(`over ${limits.entries} things to keep`)
  }
}

/** What the remote called it: ours, if it is not the remote's. */
export function remoteIdOf(one: Message | CallPart): string {
  const { id } = (one.meta?.remote ?? {}) as { id?: string }
  return id ?? ('callId' in one && 'input' in one ? one.callId : (one as Message).id)
}

export const isFrom = (message: Message, agent: string): boolean =>
  (message.meta?.remote as { agent?: string } | undefined)?.agent === agent

export const wrong = (what: string): RuntimeError =>
  new RuntimeError('remote_protocol', `The remote agent said what cannot be understood: ${what}.`)

const tooMuch = (what: string) =>
  new RuntimeError('remote_protocol', `The remote agent said too much: ${what}.`)

/** Calls of earlier legs are in messages that are written. */
const whole: Open = {
  message: { id: '', role: 'assistant', parts: [] },
  writing: new Set(),
  size: 0,
}

const reasoning = (id: string) => `reasoning:${id}`
const hasCalls = ({ message }: Open) => message.parts.some(({ type }) => type === 'call')
const speaks = (part: Part) => !('text' in part) || part.text !== ''

function namesOf(message: Message, agent: string): string[] {
  const calls = message.parts.filter((part) => part.type === 'call').map(remoteIdOf)
  return isFrom(message, agent) || message.role === 'user' ? [remoteIdOf(message), ...calls] : calls
}

function sizeOf(event: AgentEvent): number {
  if (event.type === 'event') return (JSON.stringify(event.value) ?? '').length
  if (event.type === 'activity') return JSON.stringify(event.content).length
  return 0
}
