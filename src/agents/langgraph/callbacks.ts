import { BaseCallbackHandler } from '@langchain/core/callbacks/base'
import type { AIMessage, AIMessageChunk, BaseMessage } from '@langchain/core/messages'
import type { ChatGeneration, LLMResult } from '@langchain/core/outputs'
import type { AgentEvent, Piece } from '../../core/agent.ts'
import { chunkReader } from '../../models/langchain/chunks.ts'
import { emitted } from './emit.ts'
import type { Here } from './here.ts'
import { foreseen, isHidden, type Told } from './hints.ts'
import type { Settled } from './options.ts'
import type { Telling } from './telling.ts'

/** A model call that went past us: it can only be told and counted. */
interface Bypass extends Told {
  model: string
  reader: ReturnType<typeof chunkReader>
  id?: string
  text: string
}

/** Hears of what nodes do through LangChain: model calls that are not governed, and events of their own. */
export class Listener extends BaseCallbackHandler {
  override name = 'handrail'
  override awaitHandlers = true
  /** Models are told to stream, so that there is something to show. */
  lc_prefer_streaming = true
  readonly #here: Here
  readonly #telling: Telling
  readonly #options: Settled
  readonly #calls = new Map<string, Bypass>()

  constructor(here: Here, telling: Telling, options: Settled) {
    super()
    this.#here = here
    this.#telling = telling
    this.#options = options
  }

  override async handleChatModelStart(
    { id = [], kwargs = {} }: { id?: string[]; kwargs?: Record<string, unknown> },
    _messages: BaseMessage[][],
    runId: string,
    _parent?: string,
    extra: Record<string, unknown> = {},
    tags: string[] = [],
    metadata: Record<string, unknown> = {},
  ): Promise<void> {
    const value = foreseen({ metadata })
    if (value) await this.#here.say({ type: 'event', name: 'PredictState', value })
    const { model, model_name } = Object(extra.invocation_params) as Record<string, unknown>
    const named = [metadata.ls_model_name, model_name, model, kwargs.model, id.at(-1)]
    const name = named.find((one) => typeof one === 'string') as string | undefined
    const provider = metadata.ls_provider
    const whole = typeof provider === 'string' ? `${provider}/${name}` : `langchain/${name}`
    const reader = chunkReader({ tools: [] }, false)
    this.#calls.set(runId, { model: whole, reader, text: '', tags, metadata })
  }

  override async handleLLMNewToken(
    _token: string,
    _index: unknown,
    runId: string,
    _parent?: string,
    _tags?: string[],
    fields?: { chunk?: unknown },
  ): Promise<void> {
    const call = this.#bypass(runId)
    const { message } = Object(fields?.chunk) as { message?: AIMessageChunk }
    if (!call || !message) return
    call.id ??= message.id ?? `run-${runId}`
    for (const event of call.reader.take(message)) {
      if (event.type === 'text') call.text += event.text
      if (this.#options.streamMode === 'updates' || isHidden(call)) continue
      if (event.type === 'text' || event.type === 'reasoning')
        this.#show({ kind: event.type, id: call.id, text: event.text })
      if (event.type === 'input') {
        const { callId: id, name, text } = event
        this.#show({ kind: 'input', id, messageId: call.id, name, text })
      }
    }
  }

  override async handleLLMEnd({ generations }: LLMResult, runId: string): Promise<void> {
    const call = this.#bypass(runId)
    this.#calls.delete(runId)
    if (!call) return
    const { message } = (generations[0]?.[0] ?? {}) as ChatGeneration
    const { usage_metadata: usage } = (message ?? {}) as AIMessage
    const used = usage && { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens }
    this.#here.ctx.metered({ model: call.model, ...(used && { usage: used }) })
    if (!message || isHidden(call)) return
    if (call.id !== undefined && message.id !== call.id) message.id = call.id
    for (const event of this.#telling.message(message)) await this.#here.say(event)
  }

  /** What was shown of an answer that broke off stays, as part of one. */
  override async handleLLMError(_error: unknown, runId: string): Promise<void> {
    const call = this.#bypass(runId)
    this.#calls.delete(runId)
    if (call?.id === undefined || call.text === '' || isHidden(call)) return
    const parts = [{ type: 'text' as const, text: call.text }]
    const message = { id: call.id, role: 'assistant' as const, parts, partial: true }
    await this.#here.say({ type: 'message', message, for: 'client' })
  }

  override async handleCustomEvent(name: string, data: unknown): Promise<void> {
    await emitted(name, data, this.#here)
  }

  #bypass(runId: string): Bypass | undefined {
    return this.#here.ours.has(runId) ? undefined : this.#calls.get(runId)
  }

  #show(piece: Piece): void {
    if (piece.text === '') return
    for (const part of inPieces(piece, this.#options.streamChunkSize)) void this.#here.say(part)
  }
}

/** No piece longer than it may be. */
export function* inPieces(piece: Piece, most: number): Generator<AgentEvent> {
  for (let from = 0; from < piece.text.length; ) {
    let to = Math.min(from + most, piece.text.length)
    const last = piece.text.charCodeAt(to - 1)
    if (to < piece.text.length && last >= 0xd800 && last < 0xdc00) to++ // not inside of a character
    yield { type: 'piece', piece: { ...piece, text: piece.text.slice(from, to) } }
    from = to
  }
}
