import type { Agent, AgentContext, AgentEvent } from '../../core/agent.ts'
import { RuntimeError } from '../../core/errors.ts'
import { asText, type Message, type Part, textOf } from '../../core/messages.ts'
import { sha256 } from '../../lib/canonical.ts'
import { readFenced } from '../../lib/fenced.ts'
import type { ApprovalResponse, EventAgent, WrappedContext, WrappedEvent } from './events.ts'

export interface WrappedOptions {
  name: string
  description?: string
  /** First messages that a page offers to users. */
  suggestions?: readonly string[]
  /** Running it again after it failed is worth trying. */
  supportsRetry?: boolean
  /** Milliseconds that a person has to approve. Default five minutes. */
  approvalTimeout?: number
}

/**
 * Makes an agent of an object that tells of its work in events. What it does inside is its own: only what
 * it tells is kept. Its questions are durable; after the answer it is resumed, or run again from its start
 * with the answers, and what it says a second time is not said twice.
 */
export function wrapped(object: EventAgent, options: WrappedOptions): Agent {
  const { name, description, suggestions, supportsRetry } = options
  return {
    name,
    ...(description !== undefined && { description }),
    ...(suggestions && { suggestions }),
    ...(supportsRetry && { supportsRetry }),
    run: (ctx) => new Hearing(object, options, ctx).run(),
  }
}

class Hearing {
  readonly #object: EventAgent
  readonly #options: WrappedOptions
  readonly #ctx: AgentContext
  readonly #answers: ApprovalResponse[]
  readonly #resumed: boolean
  #asked = 0
  #said = 0
  /** A message that is being written. */
  #open = { id: '', text: '' }
  /** The text that was streamed last. */
  #streamed: string | undefined

  constructor(object: EventAgent, options: WrappedOptions, ctx: AgentContext) {
    this.#object = object
    this.#options = options
    this.#ctx = ctx
    this.#answers = answersTo(ctx)
    this.#resumed = this.#answers.length > 0 && object.resume_with_events !== undefined
    if (this.#resumed) this.#asked = this.#answers.length
  }

  async *run(): AsyncGenerator<AgentEvent> {
    for await (const event of this.#begin()) {
      this.#ctx.signal.throwIfAborted()
      yield* this.#heard(event)
    }
    yield* this.#close()
  }

  #begin(): AsyncIterable<WrappedEvent> {
    const object = this.#object
    const context = contextFor(this.#ctx, this.#answers)
    if (this.#resumed) return object.resume_with_events!(context)
    const events = object.execute_with_events?.(context) ?? object.executeWithEvents?.(context)
    if (events) return events
    throw new RuntimeError('agent_failed', `${this.#options.name} has no execute_with_events.`)
  }

  async *#heard({ event, data = {} }: WrappedEvent): AsyncGenerator<AgentEvent> {
    const { name } = this.#options
    if (event === 'agent_stream') return yield* this.#stream(asText(data.content ?? ''))
    if (event === 'agent_completed') return yield* this.#complete(data)
    yield* this.#close()
    switch (event) {
      case 'agent_started':
        yield { type: 'step', name, done: false }
        return
      case 'thinking':
        return yield* this.#say([{ type: 'reasoning', text: asText(data.content ?? '') }])
      case 'tool_call':
        return yield* this.#say([callOf(data)])
      case 'tool_result':
        return yield* this.#result(data)
      case 'approval_required':
        return await this.#ask(data)
      case 'agent_error':
        throw new RuntimeError('agent_failed', asText(data.error_message ?? 'The agent failed.'))
      default:
        // It was told when it first came this far.
        if (this.#asked >= this.#answers.length) yield { type: 'event', name: event, value: data }
    }
  }

  /** The same for the same place in what it says: what an earlier leg has said is known by it. */
  #nextId(): string {
    const { runId } = this.#ctx
    const first = this.#ctx.messages()[0]?.id ?? ''
    const stage = this.#resumed ? this.#answers.length : 0
    return `msg_${sha256(`${runId}/${first}/${stage}/${this.#said++}`).slice(0, 26)}`
  }

  #known(id: string): Message | undefined {
    return this.#ctx.messages().find((one) => one.id === id)
  }

  #isKnown(id: string): boolean {
    return this.#known(id) !== undefined
  }

  /**
   * Says the output. If it repeats the text that was streamed last, the text is not sent again: the output is put on
   * the streamed message, or on a message without text if the streamed one is already recorded.
   */
  *#complete({ output = null }: Record<string, unknown>): Generator<AgentEvent> {
    const text = asText(output)
    const { id } = this.#open
    if (id !== '') this.#streamed = this.#open.text
    const repeats = text.trim() === this.#streamed?.trim()
    const known = this.#known(id)
    const joins = id !== '' && repeats && (!known || known.meta?.output !== undefined)
    yield* this.#close(joins ? { meta: { output } } : {})
    // Later messages keep the ids that they have where the output is a message of its own.
    if (joins) this.#said++
    else yield* this.#say(repeats ? [] : [{ type: 'text', text }], { meta: { output } })
    yield { type: 'step', name: this.#options.name, done: true }
  }

  *#say(parts: Part[], more: Partial<Message> = {}): Generator<AgentEvent> {
    const id = this.#nextId()
    if (this.#isKnown(id)) return
    yield { type: 'message', message: { id, role: 'assistant', parts, ...more } }
  }

  *#stream(text: string): Generator<AgentEvent> {
    if (this.#open.id === '') this.#open.id = this.#nextId()
    this.#open.text += text
    const { id } = this.#open
    if (!this.#isKnown(id)) yield { type: 'piece', piece: { kind: 'text', id, text } }
  }

  *#close(more: Partial<Message> = {}): Generator<AgentEvent> {
    const { id, text } = this.#open
    this.#open = { id: '', text: '' }
    if (id === '') return
    this.#streamed = text
    if (this.#isKnown(id)) return
    const parts = [{ type: 'text' as const, text }]
    yield { type: 'message', message: { id, role: 'assistant', parts, ...more } }
  }

  /** It made the call itself: the result is told, not made. */
  *#result(data: Record<string, unknown>): Generator<AgentEvent> {
    const { tool_call_id, tool_name, result, error, success = true } = data
    const id = this.#nextId()
    if (this.#isKnown(id)) return
    const parts = [{ type: 'text' as const, text: asText((success ? result : error) ?? '') }]
    const about = { callId: String(tool_call_id), name: String(tool_name) }
    const failed = success ? {} : { failed: true }
    yield { type: 'message', message: { id, role: 'tool', parts, ...about, ...failed } }
  }

  async #ask(data: Record<string, unknown>): Promise<void> {
    const key = keyOf(this.#asked++)
    const { recommendation = data, title, timeout_seconds, timeout_hours } = data
    const given = seconds(timeout_seconds) ?? seconds(timeout_hours, 3_600)
    await this.#ctx.ask({
      key,
      kind: 'approval',
      title: typeof title === 'string' ? title : `${this.#options.name} asks for approval`,
      input: recommendation,
      timeout: given ?? this.#options.approvalTimeout ?? 300_000,
    })
  }
}

const keyOf = (n: number) => `approval:${n}`

const seconds = (value: unknown, of = 1) =>
  typeof value === 'number' && value > 0 ? value * of * 1_000 : undefined

function answersTo(ctx: AgentContext): ApprovalResponse[] {
  const answers: ApprovalResponse[] = []
  for (;;) {
    const answer = ctx.asked(keyOf(answers.length))?.answer
    if (!answer) return answers
    const { state: status, reason = null, value } = answer
    answers.push({ status, reason, ...(value !== undefined && { value }) })
  }
}

function contextFor(ctx: AgentContext, answers: ApprovalResponse[]): WrappedContext {
  const messages = ctx.messages().map((one) => ({ role: one.role, content: textOf(one) }))
  const asked = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  const given = readFenced(asked)
  const { session_id = ctx.threadId, ...forwarded } = ctx.options.forwarded ?? {}
  return {
    session_id: String(session_id),
    run_id: ctx.runId,
    messages,
    context: { ...forwarded, ...(typeof given === 'object' ? given : {}) },
    approval_responses: answers,
    approval_response: answers.at(-1) ?? null,
    signal: ctx.signal,
  }
}

function callOf(data: Record<string, unknown>): Part {
  const { tool_call_id, tool_name, tool_args = {} } = data
  const input = JSON.stringify(tool_args)
  return { type: 'call', callId: String(tool_call_id), name: String(tool_name), input }
}
