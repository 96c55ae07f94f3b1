import type { AgentContext, AgentEvent } from '../../../core/agent.ts'
import { RuntimeError } from '../../../core/errors.ts'
import { asText } from '../../../core/messages.ts'
import { remoteCalls } from '../../../core/remote.ts'
import { canonical } from '../../../lib/canonical.ts'
import { Changes } from '../changes.ts'
import { questionIn } from '../questions.ts'
import type { Interrupt } from '../remote-agent.ts'
import { Scribe, wrong } from '../scribe.ts'
import {
  chunk,
  type GraphEvent,
  graphEvent,
  known,
  type RuntimeEvent,
  read,
  runtimeEvent,
} from './events.ts'

/** What a leg at a CopilotKit endpoint becomes here. */
export class Hearing {
  readonly scribe: Scribe
  readonly interrupts: Interrupt[] = []
  /** The node that it is in. */
  node: string | undefined
  readonly #changes: Changes
  #shown = ''
  readonly #steps = new Set<string>()
  /** Calls that are being written, by message and place in it. */
  readonly #writing = new Map<string, string>()
  readonly #models = new Set<string>()
  /** What the model has not ended yet. */
  readonly #openNames = new Set<string>()

  constructor(agent: string, ctx: Pick<AgentContext, 'messages' | 'newId' | 'state'>) {
    this.scribe = new Scribe(agent, ctx.messages(), ctx.newId)
    this.#changes = new Changes(ctx.state())
  }

  *take(given: unknown): Generator<AgentEvent> {
    if (!isObject(given)) throw wrong('a line that is not an object')
    if (typeof given.type === 'string') {
      if (known.has(given.type)) yield* this.#runtime(read(runtimeEvent, given))
    } else if (typeof given.event === 'string') yield* this.#graph(read(graphEvent, given))
    else throw wrong('a line that is no event')
  }

  *finish(): Generator<AgentEvent> {
    yield* this.scribe.finish()
    for (const name of this.#steps) yield { type: 'step', name, done: true }
    if (this.#models.size === 0) return
    yield { type: 'event', name: remoteCalls, value: { calls: this.#models.size, usage: [] } }
  }

  *#runtime(event: RuntimeEvent): Generator<AgentEvent> {
    const { scribe } = this
    switch (event.type) {
      case 'TextMessageStart':
        yield* scribe.begin(event.messageId, 'text')
        return
      case 'TextMessageContent':
        yield* scribe.add(event.messageId, 'text', event.content)
        return
      case 'TextMessageEnd':
        yield* scribe.end(event.messageId, 'text')
        return
      case 'ActionExecutionStart':
        yield* scribe.call(event.actionExecutionId, event.actionName, event.parentMessageId)
        return
      case 'ActionExecutionArgs':
        yield* scribe.input(event.actionExecutionId, event.args)
        return
      case 'ActionExecutionEnd':
        yield* scribe.end(event.actionExecutionId, 'call')
        return
      case 'ActionExecutionResult':
        yield* scribe.result(event.actionExecutionId, asText(event.result))
        return
      case 'AgentStateMessage': {
        if (event.nodeName !== undefined) this.node = event.nodeName
        const { state } = event
        yield* this.#state(typeof state === 'string' ? parsed(state) : state)
        return
      }
      case 'MetaEvent':
        if (event.name.endsWith('InterruptEvent')) this.#ask(event.value ?? event.data)
        else yield* scribe.event(event.name, event.value)
        return
      case 'RunError':
        throw failed(asText(event.error))
      case 'NodeStarted':
        yield* this.#step(event.node_name, false)
        return
      case 'NodeFinished':
        yield* this.#step(event.node_name, true)
    }
  }

  *#graph(event: GraphEvent): Generator<AgentEvent> {
    const data = isObject(event.data) ? event.data : {}
    switch (event.event) {
      case 'on_chat_model_stream':
        yield* this.#piece(data.chunk, event.metadata ?? {})
        return
      case 'on_chat_model_end':
        for (const one of [...this.#openNames]) yield* this.#end(one)
        return
      case 'on_tool_end':
        yield* this.#toolEnd(data)
        return
      case 'on_copilotkit_state_sync':
        if (event.node_name !== undefined) {
          this.node = event.node_name
          yield* this.#step(event.node_name, event.active === false)
        }
        yield* this.#state(event.state)
        return
      case 'on_interrupt':
        this.#ask(event.value)
        return
      case 'on_copilotkit_interrupt':
        this.#ask(data.value)
        return
      case 'on_copilotkit_error': {
        const { error } = data
        throw failed(isObject(error) ? asText(error.message) : asText(error))
      }
      case 'on_custom_event':
        yield* this.#custom(event.name ?? 'custom', event.data)
        return
      default: // chains, tools and retrievers that begin and end: nobody is told of them
    }
  }

  /** A piece of what a model writes; its message comes as it is, or wrapped as Python wraps it. */
  *#piece(given: unknown, about: Record<string, unknown>): Generator<AgentEvent> {
    const bare = isObject(given) && isObject(given.kwargs) ? given.kwargs : given
    const { id: messageId, content, tool_call_chunks: calls = [] } = read(chunk, bare)
    if (messageId === undefined) return
    const { scribe } = this
    this.#models.add(messageId)
    const text = textOf(content)
    if (text !== '' && about['copilotkit:emit-messages'] !== false) {
      if (!scribe.isOpen(messageId) && !scribe.knows(messageId)) {
        yield* scribe.begin(messageId, 'text')
        this.#openNames.add(messageId)
      }
      if (scribe.isOpen(messageId)) yield* scribe.add(messageId, 'text', text)
    }
    for (const call of calls) {
      const place = `${messageId}/${String(call.index ?? 0)}`
      if (call.id !== undefined && call.name !== undefined && !scribe.knows(call.id)) {
        if (!mayTell(about['copilotkit:emit-tool-calls'], call.name)) continue
        yield* scribe.call(call.id, call.name, messageId)
        this.#writing.set(place, call.id)
        this.#openNames.add(call.id)
      }
      const callId = this.#writing.get(place)
      if (callId !== undefined) yield* scribe.input(callId, call.args ?? '')
    }
  }

  *#end(name: string): Generator<AgentEvent> {
    this.#openNames.delete(name)
    const isCall = [...this.#writing.values()].includes(name)
    if (this.scribe.isOpen(name)) yield* this.scribe.end(name, isCall ? 'call' : 'text')
  }

  *#toolEnd({ output }: Record<string, unknown>): Generator<AgentEvent> {
    const bare = isObject(output) && isObject(output.kwargs) ? output.kwargs : output
    if (!isObject(bare) || typeof bare.tool_call_id !== 'string') return
    const { tool_call_id: callId, content } = bare
    if (this.scribe.isOpen(callId)) yield* this.#end(callId)
    if (this.scribe.knows(callId)) yield* this.scribe.result(callId, textOf(content))
  }

  *#custom(name: string, data: unknown): Generator<AgentEvent> {
    const { scribe } = this
    const said = isObject(data) ? data : {}
    const given = said.message_id ?? said.id
    const own = typeof given === 'string' && !scribe.knows(given) ? given : undefined
    if (name === 'copilotkit_manually_emit_message' && own !== undefined) {
      yield* scribe.begin(own, 'text')
      yield* scribe.add(own, 'text', asText(said.message ?? ''))
      yield* scribe.end(own, 'text')
    } else if (name === 'copilotkit_manually_emit_tool_call' && own !== undefined) {
      yield* scribe.call(own, asText(said.name ?? ''))
      yield* scribe.input(own, asText(said.args ?? {}))
      yield* scribe.end(own, 'call')
    } else if (name === 'copilotkit_manually_emit_intermediate_state') yield* this.#state(data)
    else if (!name.startsWith('copilotkit_')) yield* scribe.event(name, data)
  }

  *#state(given: unknown): Generator<AgentEvent> {
    if (!isObject(given)) return
    const { messages: _, copilotkit: __, ...state } = given
    const text = canonical(state)
    if (text === this.#shown || text === '{}') return
    this.#shown = text
    yield* this.#changes.set(state)
  }

  *#step(name: string, done: boolean): Generator<AgentEvent> {
    if (name.startsWith('__') || this.#steps.has(name) !== done) return
    if (done) this.#steps.delete(name)
    else this.#steps.add(name)
    yield* this.scribe.keep({ type: 'step', name, done })
  }

  #ask(value: unknown): void {
    this.interrupts.push(questionIn(`interrupt-${this.interrupts.length}`, value))
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw wrong('a state that is not JSON')
  }
}

function mayTell(setting: unknown, name: string): boolean {
  if (typeof setting === 'boolean') return setting
  if (Array.isArray(setting)) return setting.includes(name)
  return setting === undefined || setting === name
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((one) => (isObject(one) && typeof one.text === 'string' ? one.text : ''))
    .join('')
}

const failed = (told: string) =>
  new RuntimeError('remote_failed', `The remote agent failed: ${told}`.slice(0, 1_000))

const isObject = (one: unknown): one is Record<string, unknown> =>
  typeof one === 'object' && one !== null && !Array.isArray(one)
