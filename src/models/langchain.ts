import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import type { AIMessageChunk, BaseMessage } from '@langchain/core/messages'
import { RuntimeError } from '../core/errors.ts'
import type { Model, ModelRequest } from '../core/model.ts'
import { schemaOf } from './ai-sdk/prompt.ts'
import { chunkReader } from './langchain/chunks.ts'
import { messagesOf } from './langchain/messages.ts'
import { providerError } from './provider-errors.ts'
import { safeName, safeText } from './safe.ts'

/** What a chain may answer with: all of it, or piece by piece. */
export type ChainOutput = string | BaseMessage | AsyncIterable<string | BaseMessage>

export interface ChainInput {
  messages: BaseMessage[]
  /** The tools that are offered, in OpenAI's form, for `bindTools`. */
  tools: FunctionTool[]
  signal: AbortSignal
}

export type Chain = (input: ChainInput) => ChainOutput | Promise<ChainOutput>

export interface FunctionTool {
  type: 'function'
  function: { name: string; description: string; parameters: Record<string, unknown> }
}

export interface LangChainOptions {
  /** As it is named in journals and prices. */
  name?: string
  accepts?: readonly string[]
  window?: number
}

/**
 * Any LangChain chat model, or a function that streams. One call is one attempt: a chat model's own
 * retries are turned off, since nobody could count them.
 */
export function langchain(from: BaseChatModel | Chain, options: LangChainOptions = {}): Model {
  const chain = typeof from === 'function' ? from : chainOf(from)
  const kind = typeof from === 'function' ? 'chain' : from._llmType()
  const { name = `langchain/${kind}`, accepts = ['image/*'], window } = options
  return {
    name,
    provider: name,
    accepts,
    ...(window !== undefined && { window }),
    async *stream(request, signal) {
      const own = new AbortController()
      const stop = () => own.abort()
      signal.addEventListener('abort', stop, { once: true })
      let begun = false
      try {
        signal.throwIfAborted()
        const tools = toolsOf(request)
        const messages = await messagesOf(request, { accepts, flat: tools.length === 0 })
        const output = await chain({ messages, tools, signal: own.signal })
        const reader = chunkReader(request, endings.has(kind))
        for await (const chunk of piecesOf(output)) {
          for (const event of reader.take(chunk)) {
            begun = true
            yield event
          }
        }
        signal.throwIfAborted()
        yield* reader.end()
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw providerError(error, begun)
      } finally {
        signal.removeEventListener('abort', stop)
      }
    },
  }
}

/** Kinds that always say why they ended: without that, the answer was cut. */
const endings = new Set(['openai', 'anthropic', 'google', 'googlegenerativeai', 'vertexai'])

/** Turns a model's own retries off. Some are a shell around others that do the work, each with a caller. */
export function triesOnce(model: BaseChatModel): void {
  for (const one of [model, ...Object.values(model)]) {
    if (typeof one === 'function') continue // asked for its caller, a function throws
    const { caller } = Object(one) as { caller?: { maxRetries?: number } }
    if (caller) caller.maxRetries = 0
  }
}

/** As it is named in journals and prices: `openai/gpt-5`. */
export function nameOf(model: BaseChatModel): string {
  const { model: name, modelName = name } = Object(model) as Record<string, unknown>
  return typeof modelName === 'string'
    ? `${model._llmType()}/${modelName}`
    : `langchain/${model._llmType()}`
}

function chainOf(model: BaseChatModel): Chain {
  triesOnce(model)
  return async ({ messages, tools, signal }) => {
    if (tools.length === 0) return await model.stream(messages, { signal })
    if (!model.bindTools)
      throw new RuntimeError('model_request', `The chat model ${model._llmType()} takes no tools.`)
    return await model.bindTools(tools).stream(messages, { signal })
  }
}

async function* piecesOf(output: ChainOutput): AsyncIterable<string | AIMessageChunk> {
  if (typeof output === 'object' && Symbol.asyncIterator in output)
    yield* output as AsyncIterable<string | AIMessageChunk>
  else yield output as string | AIMessageChunk
}

const toolsOf = ({ tools, parameters }: ModelRequest): FunctionTool[] =>
  parameters?.toolChoice === 'none'
    ? []
    : tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: {
          name: safeName(name),
          description: safeText(description),
          parameters: schemaOf(parameters) as Record<string, unknown>,
        },
      }))
