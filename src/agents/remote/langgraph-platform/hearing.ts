import { z } from 'zod'
import type { AgentContext, AgentEvent } from '../../../core/agent.ts'
import { RuntimeError } from '../../../core/errors.ts'
import { remoteCalls } from '../../../core/remote.ts'
import { canonical, digestOf } from '../../../lib/canonical.ts'
import { Changes } from '../changes.ts'
import { questionIn } from '../questions.ts'
import type { Interrupt } from '../remote-agent.ts'
import { Scribe, wrong } from '../scribe.ts'

const none = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined)

const part = z.looseObject({ type: z.string(), text: none(z.string()) })
const messageSchema = z.looseObject({
  type: z.string(),
  id: none(z.string()),
  content: z.union([z.string(), z.array(z.union([z.string(), part]))]).nullish(),
  tool_call_id: none(z.string()),
  status: none(z.string()),
  tool_calls: none(
    z.array(z.looseObject({ id: none(z.string()), name: z.string(), args: z.unknown() })),
  ),
  tool_call_chunks: none(
    z.array(
      z.looseObject({
        id: none(z.string()),
        name: none(z.string()),
        args: none(z.string()),
        index: none(z.union([z.number(), z.string()])),
      }),
    ),
  ),
  usage_metadata: none(z.record(z.string(), z.unknown())),
})
type Said = z.output<typeof messageSchema>

const interruptSchema = z.looseObject({ id: none(z.string()), value: z.unknown() })
const errorSchema = z.looseObject({ error: none(z.string()), message: none(z.string()) })

/** What a run of a LangGraph server becomes here. */
export class Hearing {
  readonly scribe: Scribe
  readonly #changes: Changes
  readonly #steps = new Set<string>()
  /** Calls that are being written, by message and place in it. */
  readonly #writing = new Map<string, string>()
  readonly #interrupts = new Map<string, Interrupt>()
  readonly #calls = new Map<string, Record<string, unknown> | undefined>()
  #state: Record<string, unknown> | undefined
  #shown = ''
  /** Pieces were missed: only what is whole can be trusted. */
  missed = false

  constructor(agent: string, ctx: Pick<AgentContext, 'messages' | 'newId' | 'state'>) {
    this.scribe = new Scribe(agent, ctx.messages(), ctx.newId)
    this.#changes = new Changes(ctx.state())
  }

  /** What the graph has left: digests of the parts of its state, to know later which were changed. */
  get state(): Record<string, string> {
    const parts = Object.entries(this.#state ?? {})
    return Object.fromEntries(parts.map(([name, value]) => [name, digestOf(value ?? null)]))
  }

  get interrupts(): Interrupt[] {
    return [...this.#interrupts.values()]
  }

  /** Model calls that were heard of. */
  *calls(): Generator<AgentEvent> {
    const usage = [...this.#calls.values()].filter((one) => one !== undefined)
    if (this.#calls.size === 0) return
    yield { type: 'event', name: remoteCalls, value: { calls: this.#calls.size, usage } }
  }

  *take(event: string, data: unknown): Generator<AgentEvent> {
    const [kind] = event.split('|') // a subgraph's have its path behind
    switch (kind) {
      case 'messages': {
        const [given, about] = Array.isArray(data) ? data : [data]
        yield* this.#piece(read(messageSchema, given, 'a message'), isObject(about) ? about : {})
        return
      }
      case 'updates':
        if (event === kind && isObject(data)) yield* this.#updates(data)
        return
      case 'values':
        if (event === kind && isObject(data)) yield* this.values(data)
        return
      case 'custom':
        yield* this.#custom(data)
        return
      case 'error': {
        const { error, message } = read(errorSchema, data, 'an error')
        const told = `The remote agent failed: ${message ?? error ?? 'it does not say why'}`
        throw new RuntimeError('remote_failed', told.slice(0, 1_000))
      }
      default: // metadata, heartbeats, and modes that we did not ask for
    }
  }

  /** The graph's whole state: messages that were not told piece by piece, and the rest. */
  *values(values: Record<string, unknown>): Generator<AgentEvent> {
    const { messages, __interrupt__: asked, ...state } = values
    if (asked !== undefined) this.ask(asked)
    if (Object.keys(values).every((name) => name === '__interrupt__')) return
    yield* this.#whole(messages)
    delete state.copilotkit // what we gave it
    this.#state = state
    const text = canonical(state)
    if (text === this.#shown || text === '{}') return
    this.#shown = text
    yield* this.#changes.set(state)
  }

  ask(given: unknown): void {
    for (const one of Array.isArray(given) ? given : []) {
      const { id, value } = read(interruptSchema, one, 'an interrupt')
      const key = id ?? `interrupt-${this.#interrupts.size}`
      this.#interrupts.set(key, questionIn(key, value))
    }
  }

  *#piece(said: Said, about: Record<string, unknown>): Generator<AgentEvent> {
    const node = about.langgraph_node
    if (typeof node === 'string') yield* this.#step(node)
    const { id } = said
    if (!isAi(said) || id === undefined || about['copilotkit:emit-messages'] === false) return
    if (this.missed) return
    const { scribe } = this
    const before = this.#calls.get(id)
    this.#calls.set(id, said.usage_metadata ?? before)
    const isNew = !scribe.knows(id)
    for (const [kind, text] of textsOf(said)) {
      if (text === '') continue
      if (kind === 'reasoning') {
        if (!scribe.isOpen(`reasoning:${id}`)) {
          if (scribe.knows(`reasoning:${id}`)) continue
          yield* scribe.begin(id, 'reasoning')
        }
        yield* scribe.add(id, 'reasoning', text)
        continue
      }
      if (isNew && !scribe.isOpen(id) && !scribe.knows(id)) yield* scribe.begin(id, 'text')
      if (scribe.isOpen(id)) yield* scribe.add(id, 'text', text)
    }
    for (const chunk of said.tool_call_chunks ?? []) {
      const key = `${id}/${chunk.index ?? 0}`
      if (chunk.id !== undefined && !scribe.knows(chunk.id)) {
        yield* scribe.call(chunk.id, chunk.name ?? '', id)
        this.#writing.set(key, chunk.id)
      }
      const callId = this.#writing.get(key)
      if (callId !== undefined && scribe.isOpen(callId))
        yield* scribe.input(callId, chunk.args ?? '')
    }
  }

  *#updates(data: Record<string, unknown>): Generator<AgentEvent> {
    for (const [node, update] of Object.entries(data)) {
      if (node === '__interrupt__') {
        this.ask(update)
        continue
      }
      yield* this.#step(node)
      for (const one of Array.isArray(update) ? update : [update])
        if (isObject(one)) yield* this.#whole(one.messages)
      this.#steps.delete(node)
      yield* this.scribe.keep({ type: 'step', name: node, done: true })
    }
  }

  *#step(name: string): Generator<AgentEvent> {
    if (this.#steps.has(name)) return
    this.#steps.add(name)
    yield* this.scribe.keep({ type: 'step', name, done: false })
  }

  *#custom(data: unknown): Generator<AgentEvent> {
    const said = isObject(data) ? data : {}
    const named = typeof said.name === 'string' && 'value' in said
    const name = named ? String(said.name) : 'langgraph'
    yield* this.scribe.event(name, named ? said.value : data)
  }

  /** Messages as they are now whole. What stands before the user's last words was there before. */
  *#whole(given: unknown): Generator<AgentEvent> {
    const list = Array.isArray(given) ? given : given === undefined || given === null ? [] : [given]
    const from = list.findLastIndex((one) => isObject(one) && one.type === 'human') + 1
    for (const one of list.slice(from)) {
      if (!isObject(one) || typeof one.type !== 'string') continue
      yield* this.#message(read(messageSchema, one, 'a message'))
    }
  }

  *#message(said: Said): Generator<AgentEvent> {
    const { scribe } = this
    const { id, tool_call_id: callId, tool_calls: calls = [] } = said
    if (said.type === 'tool' && callId !== undefined) {
      if (scribe.isOpen(callId)) yield* scribe.end(callId, 'call')
      const text = textsOf(said).map(([, one]) => one)
      if (scribe.knows(callId)) yield* scribe.result(callId, text.join(''), said.status === 'error')
      return
    }
    if (!isAi(said) || id === undefined) return
    if (scribe.isOpen(`reasoning:${id}`)) yield* scribe.end(id, 'reasoning')
    const text = textsOf(said)
      .map(([kind, one]) => (kind === 'text' ? one : ''))
      .join('')
    if (!scribe.knows(id) && text !== '') yield* scribe.begin(id, 'text')
    if (scribe.isOpen(id)) {
      yield* scribe.settle(id, text)
      yield* scribe.end(id, 'text')
    }
    for (const call of calls) {
      if (call.id === undefined) continue
      if (!scribe.knows(call.id)) {
        yield* scribe.call(call.id, call.name, id)
        yield* scribe.input(call.id, JSON.stringify(call.args ?? {}))
      }
      if (scribe.isOpen(call.id)) yield* scribe.end(call.id, 'call')
    }
  }
}

const isAi = ({ type }: Said) => type === 'ai' || type === 'AIMessageChunk'

function textsOf({ content }: Said): ['text' | 'reasoning', string][] {
  if (typeof content === 'string') return [['text', content]]
  return (content ?? []).map((one) => {
    if (typeof one === 'string') return ['text', one]
    if (one.type === 'text' || one.type === 'text_delta') return ['text', one.text ?? '']
    const thought = one.thinking ?? one.reasoning
    return ['reasoning', typeof thought === 'string' ? thought : '']
  })
}

const isObject = (one: unknown): one is Record<string, unknown> =>
  typeof one === 'object' && one !== null && !Array.isArray(one)

function read<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]!
  throw wrong(`${what}: ${path.join('.')}: ${message}`)
}
