import type { AgentEvent } from '../../../core/agent.ts'
import { RuntimeError } from '../../../core/errors.ts'
import { asText } from '../../../core/messages.ts'
import { remoteCalls } from '../../../core/remote.ts'
import { sha256 } from '../../../lib/canonical.ts'
import { answerSchema } from '../answer-schema.ts'
import { Changes, patched } from '../changes.ts'
import { questionIn } from '../questions.ts'
import type { Interrupt, LegEnd, LegRequest } from '../remote-agent.ts'
import { Scribe, wrong } from '../scribe.ts'
import type { AguiEvent, Chunk, Finished, Snapshot } from './events.ts'

/** What AG-UI's events of one leg become here. */
export class Hearing {
  readonly scribe: Scribe
  readonly #changes: Changes
  readonly #place: string
  readonly #activities = new Map<string, unknown>()
  readonly #subagents = new Map<string, string>()
  readonly #interrupts: Interrupt[] = []
  /** Texts in another role than the agent's. */
  readonly #unheard = new Set<string>()
  /** What pieces without an id belong to. */
  #chunk: { text?: string; call?: string; reasoning?: string } = {}
  #started = false
  /** How it ended, once it has. */
  end: LegEnd['interrupts'] | undefined

  constructor(agent: string, place: string, { ctx }: Pick<LegRequest, 'ctx'>) {
    this.scribe = new Scribe(agent, ctx.messages(), ctx.newId)
    this.#changes = new Changes(ctx.state())
    this.#place = place
  }

  *take(event: AguiEvent): Generator<AgentEvent> {
    if (!this.#started && event.type !== 'RUN_STARTED' && event.type !== 'RUN_ERROR')
      throw wrong(`${event.type} before RUN_STARTED`)
    if (!isPiece(event)) {
      yield* this.#closeChunk(event.type)
      if (!event.type.startsWith('STATE_')) yield* this.#changes.written()
    }
    yield* this.#take(event)
  }

  *#take(event: AguiEvent): Generator<AgentEvent> {
    const { scribe } = this
    switch (event.type) {
      case 'RUN_STARTED':
        if (this.#started) throw wrong('it started twice')
        this.#started = true
        return
      case 'RUN_ERROR': {
        const code = event.code === undefined ? '' : ` (${event.code})`
        const told = `The remote agent failed${code}: ${event.message}`
        throw new RuntimeError('remote_failed', told.slice(0, 1_000))
      }
      case 'RUN_FINISHED':
        yield* this.#finish(event)
        return
      case 'TEXT_MESSAGE_START':
        // A user's words are not the remote's to say.
        if (event.role !== undefined && event.role !== 'assistant')
          this.#unheard.add(event.messageId)
        else yield* scribe.begin(event.messageId, 'text')
        return
      case 'TEXT_MESSAGE_CONTENT':
        if (!this.#unheard.has(event.messageId))
          yield* scribe.add(event.messageId, 'text', event.delta)
        return
      case 'TEXT_MESSAGE_END':
        if (!this.#unheard.delete(event.messageId)) yield* scribe.end(event.messageId, 'text')
        return
      case 'REASONING_MESSAGE_START':
        yield* scribe.begin(event.messageId, 'reasoning')
        return
      case 'REASONING_MESSAGE_CONTENT':
        yield* scribe.add(event.messageId, 'reasoning', event.delta)
        return
      case 'REASONING_MESSAGE_END':
        yield* scribe.end(event.messageId, 'reasoning')
        return
      case 'TOOL_CALL_START':
        yield* scribe.call(event.toolCallId, event.toolCallName, event.parentMessageId)
        return
      case 'TOOL_CALL_ARGS':
        yield* scribe.input(event.toolCallId, event.delta)
        return
      case 'TOOL_CALL_END':
        yield* scribe.end(event.toolCallId, 'call')
        return
      case 'TOOL_CALL_RESULT':
        yield* scribe.result(event.toolCallId, asText(event.content))
        return
      case 'TEXT_MESSAGE_CHUNK':
      case 'REASONING_MESSAGE_CHUNK':
      case 'TOOL_CALL_CHUNK':
        yield* this.#takeChunk(event)
        return
      case 'STATE_SNAPSHOT':
        yield* this.#changes.set(event.snapshot)
        return
      case 'STATE_DELTA':
        yield* this.#changes.patch(event.delta as Parameters<Changes['patch']>[0])
        return
      case 'MESSAGES_SNAPSHOT':
        yield* this.#snapshot(event.messages)
        return
      case 'ACTIVITY_SNAPSHOT':
        yield* this.#activity(event.messageId, event.activityType, event.content)
        return
      case 'ACTIVITY_DELTA': {
        const before = this.#activities.get(event.messageId)
        const patch = event.patch as Parameters<Changes['patch']>[0]
        if (before !== undefined)
          yield* this.#activity(event.messageId, event.activityType, patched(before, patch))
        return
      }
      case 'STEP_STARTED':
      case 'STEP_FINISHED': {
        const done = event.type === 'STEP_FINISHED'
        yield* scribe.keep({ type: 'step', name: event.stepName, done })
        return
      }
      case 'SUBAGENT_STARTED':
        this.#subagents.set(event.subagentRunId, event.name)
        yield* scribe.keep({ type: 'step', name: event.name, done: false })
        return
      case 'SUBAGENT_FINISHED':
      case 'SUBAGENT_ERROR': {
        const name = this.#subagents.get(event.subagentRunId)
        if (name !== undefined) yield* scribe.keep({ type: 'step', name, done: true })
        return
      }
      case 'CUSTOM':
        yield* this.#custom(event.name, event.value)
        return
      default: // brackets around reasoning, sealed thoughts, raw events: nobody here is told of them
    }
  }

  *#finish(event: Finished): Generator<AgentEvent> {
    yield* this.scribe.finish()
    if (event.usage && event.usage.length > 0) {
      const value = { calls: event.usage.length, usage: event.usage }
      yield { type: 'event', name: remoteCalls, value }
    }
    const { outcome } = event
    const asked = outcome?.type === 'interrupt' ? outcome.interrupts.map(interruptOf) : []
    this.end = asked.length > 0 ? asked : this.#interrupts // some tell both ways
  }

  *#activity(id: string, activity: string, content: unknown): Generator<AgentEvent> {
    if (typeof content !== 'object' || content === null || Array.isArray(content)) return
    this.#activities.set(id, content)
    const own = `act_${sha256(`${this.#place}/${id}`).slice(0, 24)}`
    yield* this.scribe.keep({ type: 'activity', id: own, activity, content })
  }

  *#custom(name: string, value: unknown): Generator<AgentEvent> {
    if (name === 'on_interrupt') {
      this.#interrupts.push(legacyInterrupt(this.#interrupts.length, value))
      return
    }
    yield* this.scribe.event(name, value)
  }

  /** Pieces that begin and end by themselves. */
  *#takeChunk(event: Chunk): Generator<AgentEvent> {
    const { scribe } = this
    yield* this.#closeChunk(event.type)
    if (event.type === 'TOOL_CALL_CHUNK') {
      const { toolCallId: id = this.#chunk.call, toolCallName, parentMessageId, delta } = event
      if (id === undefined) throw wrong('the first piece of a call has no id')
      if (id !== this.#chunk.call) {
        yield* this.#closeChunk()
        yield* scribe.call(id, toolCallName ?? '', parentMessageId)
      }
      this.#chunk.call = id
      yield* scribe.input(id, delta ?? '')
      return
    }
    const kind = event.type === 'TEXT_MESSAGE_CHUNK' ? 'text' : 'reasoning'
    const { messageId: id = this.#chunk[kind], delta } = event
    if (id === undefined) throw wrong('the first piece of a message has no id')
    if (id !== this.#chunk[kind]) {
      yield* this.#closeChunk()
      yield* scribe.begin(id, kind)
    }
    this.#chunk[kind] = id
    yield* scribe.add(id, kind, delta ?? '')
  }

  /** Something else is said: what is written in pieces is whole. */
  *#closeChunk(by = ''): Generator<AgentEvent> {
    const { text, call, reasoning } = this.#chunk
    if (text !== undefined && by !== 'TEXT_MESSAGE_CHUNK') {
      delete this.#chunk.text
      yield* this.scribe.end(text, 'text')
    }
    if (reasoning !== undefined && by !== 'REASONING_MESSAGE_CHUNK') {
      delete this.#chunk.reasoning
      yield* this.scribe.end(reasoning, 'reasoning')
    }
    if (call !== undefined && by !== 'TOOL_CALL_CHUNK') {
      delete this.#chunk.call
      yield* this.scribe.end(call, 'call')
    }
  }

  /**
   * The remote's whole list: what this leg added to it and was not told piece by piece. Nothing is taken
   * away, and what stands before the user's last words was there before.
   */
  *#snapshot(messages: Snapshot['messages']): Generator<AgentEvent> {
    const { scribe } = this
    const from = messages.findLastIndex(({ role }) => role === 'user') + 1
    for (const message of messages.slice(from)) {
      if (message.role === 'tool') {
        const heard = scribe.knows(message.toolCallId) && !scribe.isOpen(message.toolCallId)
        if (heard) yield* scribe.result(message.toolCallId, asText(message.content))
      }
      if (message.role !== 'assistant' || scribe.knows(message.id)) continue
      const { id, content = '', toolCalls = [] } = message
      const calls = toolCalls.filter((call) => !scribe.knows(call.id))
      if (toolCalls.length > 0 && calls.length === 0) continue // told as calls without a message
      const text = asText(content)
      if (text !== '') {
        yield* scribe.begin(id, 'text')
        yield* scribe.add(id, 'text', text)
        yield* scribe.end(id, 'text')
      }
      for (const call of calls) {
        yield* scribe.call(call.id, call.function.name, id)
        yield* scribe.input(call.id, call.function.arguments)
        yield* scribe.end(call.id, 'call')
      }
    }
  }
}

const isPiece = ({ type }: AguiEvent): boolean => type.endsWith('_CHUNK')

type Asked = Extract<Finished['outcome'], { type: 'interrupt' }>['interrupts'][number]

function interruptOf({
  id,
  reason,
  message,
  responseSchema,
  expiresAt,
  metadata,
}: Asked): Interrupt {
  const expires = Date.parse(expiresAt ?? '')
  return {
    id,
    kind: reason === 'confirmation' || reason === 'tool_call' ? 'approval' : 'input',
    title: message ?? `The remote agent asks (${reason})`,
    ...(responseSchema !== undefined && { schema: answerSchema(responseSchema) }),
    input: metadata?.input ?? metadata,
    ...(!Number.isNaN(expires) && { expires }),
  }
}

export const legacyPrefix = 'on_interrupt:'

/** CopilotKit's older way to ask: an event, and the answer beside the messages of the next run. */
const legacyInterrupt = (index: number, value: unknown): Interrupt =>
  questionIn(`${legacyPrefix}${index}`, value)
