import type {
  BaseChatModel,
  BaseChatModelCallOptions,
} from '@langchain/core/language_models/chat_models'
import type { AIMessage, AIMessageChunk, BaseMessage } from '@langchain/core/messages'
import type { ChatGenerationChunk, ChatResult } from '@langchain/core/outputs'
import { validHistory } from '../../core/history.ts'
import { callsOf, type Message } from '../../core/messages.ts'
import type { Model, ToolSpec } from '../../core/model.ts'
import { chunkReader } from '../../models/langchain/chunks.ts'
import { nameOf, triesOnce } from '../../models/langchain.ts'
import { providerError } from '../../models/provider-errors.ts'
import { findHere } from './here.ts'
import { isHidden, type Told } from './hints.ts'

type Options = BaseChatModelCallOptions & { tools?: unknown }

export interface GovernedOptions {
  /** As it is named in journals and prices. */
  name?: string
  /** Tokens that it takes, where it is known. */
  window?: number
}

/**
 * The same chat model, of which every call inside of a node goes through the ledger: the governor stops before it,
 * readers see it being written, it is retried by the table, and a node that is run again gets the recorded answer.
 * What is made of it (`bindTools`, `withConfig`, `withStructuredOutput`) is governed too.
 */
export function governed<T extends BaseChatModel>(model: T, options: GovernedOptions = {}): T {
  const wrap = (made: BaseChatModel & { bound?: BaseChatModel }): unknown =>
    made.bound
      ? Object.assign(made, { bound: governed(made.bound, options) })
      : governed(made, options)
  return new Proxy(model, {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver)
      if (key === '_generate')
        return async (...call: Call): Promise<ChatResult> => {
          const message = await answer(target, call, options)
          return { generations: [{ text: message.text, message }] }
        }
      if (key === '_streamResponseChunks')
        return async function* (...call: Call): AsyncGenerator<ChatGenerationChunk> {
          yield await wholeChunk(await answer(target, call, options))
        }
      if ((key === 'bindTools' || key === 'withConfig') && typeof value === 'function')
        return (...given: unknown[]) => wrap(value.apply(target, given))
      return value
    },
  })
}

type Call = [messages: BaseMessage[], options?: Options, manager?: Told & { runId: string }]

async function answer(
  model: BaseChatModel,
  [messages, options = {} as Options, manager]: Call,
  given: GovernedOptions,
): Promise<AIMessage> {
  const here = findHere('A governed model')
  const { fromLangChain, toLangChain } = await import('./messages.ts')
  if (manager) here.ours.add(manager.runId)
  const at = await here.place()
  const said = messages.flatMap((one, i) => fromLangChain(one, `given_${i}`) ?? [])
  const sound = mended(messages, said, toLangChain)
  const by = modelOf(model, sound, options, given)
  const hidden = isHidden(manager) && { hidden: true }
  const call = { messages: said, tools: toolsOf(options), by, path: at, ...hidden }
  const message = here.answers.get(at) ?? (await here.through(() => here.ctx.model(call))).message
  here.answers.set(at, message)
  return toLangChain(message) as AIMessage
}

/** A run that was stopped may have left calls without a result, which no provider takes (I8). */
function mended(
  messages: BaseMessage[],
  said: readonly Message[],
  toLangChain: (message: Message) => BaseMessage,
): BaseMessage[] {
  const results = new Set(said.map(({ callId }) => callId))
  if (said.flatMap(callsOf).every(({ callId }) => results.has(callId))) return messages
  const given = new Map(messages.map((one, i) => [one.id ?? `given_${i}`, one]))
  return validHistory(said).map((one) => given.get(one.id) ?? toLangChain(one))
}

/** One call of the model with just these messages, as core makes calls. */
function modelOf(
  model: BaseChatModel,
  messages: BaseMessage[],
  options: Options,
  { name = nameOf(model), window }: GovernedOptions,
): Model {
  triesOnce(model)
  return {
    name,
    provider: name,
    accepts: ['*/*'],
    ...(window !== undefined && { window }),
    async *stream(request, signal) {
      const { asideOf } = await import('./messages.ts')
      const reader = chunkReader(request, false)
      let whole: AIMessageChunk | undefined
      try {
        const asked = await withInstructions(messages, request.system)
        for await (const chunk of chunksOf(model, asked, { ...options, signal })) {
          whole = whole?.concat(chunk) ?? chunk
          yield* reader.take(chunk)
        }
        signal.throwIfAborted()
        if (whole) yield { type: 'meta', meta: { langchain: asideOf(whole) } }
        yield* reader.end()
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw providerError(error, whole !== undefined)
      }
    },
  }
}

async function* chunksOf(model: BaseChatModel, messages: BaseMessage[], options: Options) {
  const { BaseChatModel: Base } = await import('@langchain/core/language_models/chat_models')
  const { AIMessageChunk } = await import('@langchain/core/messages')
  if (
    model._streamResponseChunks !== Base.prototype._streamResponseChunks &&
    !model.disableStreaming
  ) {
    for await (const { message } of model._streamResponseChunks(messages, options))
      yield message as AIMessageChunk
    return
  }
  const { generations } = await model._generate(messages, options)
  const message = generations[0]!.message as AIMessage
  const tool_call_chunks = (message.tool_calls ?? []).map(({ id, name, args }, index) => {
    return { id, name, args: JSON.stringify(args), index, type: 'tool_call_chunk' as const }
  })
  const { content, additional_kwargs, response_metadata, usage_metadata } = message
  const about = { content, additional_kwargs, response_metadata, usage_metadata }
  yield new AIMessageChunk({ ...about, tool_call_chunks })
}

/** What the client asks for in this run comes after what the graph says itself. */
async function withInstructions(messages: BaseMessage[], instructions: readonly string[]) {
  if (instructions.length === 0) return messages
  const { SystemMessage } = await import('@langchain/core/messages')
  const first = messages.findIndex((one) => one.type !== 'system')
  const at = first < 0 ? messages.length : first
  const said = [...messages.slice(0, at).map(({ text }) => text), ...instructions].join('\n\n')
  return [new SystemMessage(said), ...messages.slice(at)]
}

async function wholeChunk(message: AIMessage): Promise<ChatGenerationChunk> {
  const { AIMessageChunk } = await import('@langchain/core/messages')
  const { ChatGenerationChunk: Chunk } = await import('@langchain/core/outputs')
  const {
    id,
    content,
    additional_kwargs,
    response_metadata,
    usage_metadata,
    tool_calls = [],
  } = message
  const about = { id, content, additional_kwargs, response_metadata, usage_metadata }
  const tool_call_chunks = tool_calls.map((call, index) => {
    return { ...call, args: JSON.stringify(call.args), index, type: 'tool_call_chunk' as const }
  })
  const chunk = new AIMessageChunk({ ...about, tool_call_chunks })
  return new Chunk({ text: message.text, message: chunk })
}

/** The tools that were bound, as far as they say what they are. */
function toolsOf({ tools }: Options): ToolSpec[] {
  if (!Array.isArray(tools)) return []
  return tools.flatMap((one) => {
    const {
      name,
      description = '',
      parameters,
      schema,
      input_schema,
    } = Object(one?.function ?? one)
    if (typeof name !== 'string') return []
    return [{ name, description, parameters: plain(parameters ?? input_schema ?? schema) }]
  })
}

function plain(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? {}))
  } catch {
    return {}
  }
}
