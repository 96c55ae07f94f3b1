import type {
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider'
import type { Usage } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { ModelEvent, ModelRequest } from '../../core/model.ts'
import { safeName } from '../safe.ts'

type Part = LanguageModelV3StreamPart

/** What the AI SDK streams, as our events. Throws when the answer does not come to its end. */
export async function* eventsOf(
  stream: ReadableStream<Part>,
  { tools }: Pick<ModelRequest, 'tools'>,
): AsyncGenerator<ModelEvent, void, undefined> {
  const names = new Map(tools.map(({ name }) => [safeName(name), name]))
  const ours = (name: string) => names.get(name) ?? name
  /** Inputs that are being written. */
  const open = new Map<string, { name: string; text: string }>()
  let end: LanguageModelV3FinishReason | undefined
  let said = false
  for await (const part of stream as unknown as AsyncIterable<Part>) {
    const event = pieceOf(part)
    if (event) {
      said ||= event.text !== ''
      yield event
    }
    switch (part.type) {
      case 'tool-input-start':
        open.set(part.id, { name: ours(part.toolName), text: '' })
        break
      case 'tool-input-delta': {
        const call = open.get(part.id)
        if (!call || part.delta === '') break
        call.text += part.delta
        yield { type: 'input', callId: part.id, name: call.name, text: part.delta }
        break
      }
      case 'tool-call': {
        const { toolCallId: callId, input, providerMetadata: meta } = part
        open.delete(callId)
        said = true
        yield { type: 'call', callId, name: ours(part.toolName), input, ...(meta && { meta }) }
        break
      }
      case 'finish':
        end = part.finishReason
        yield { type: 'usage', usage: usageOf(part.usage) }
        break
      case 'error':
        throw part.error
    }
  }
  // A connection may be closed in good order in the middle of an answer.
  const cut = !end || (end.raw === undefined && end.unified === 'other')
  if (cut || end?.unified === 'error' || end?.raw === 'error') throw new RuntimeError('stream_cut')
  if (open.size > 0 && end?.unified !== 'length') throw new RuntimeError('stream_cut')
  // The answer was as long as it may be: the model hears that its input is not whole.
  for (const [callId, { name, text }] of open) yield { type: 'call', callId, name, input: text }
  if (!said && end?.unified === 'content-filter') throw new RuntimeError('model_refused')
}

function pieceOf(part: Part): Extract<ModelEvent, { type: 'text' | 'reasoning' }> | undefined {
  switch (part.type) {
    case 'text-start':
    case 'text-delta':
    case 'text-end':
    case 'reasoning-start':
    case 'reasoning-delta':
    case 'reasoning-end': {
      const type = part.type.startsWith('text') ? 'text' : 'reasoning'
      const text = 'delta' in part ? part.delta : ''
      const { id, providerMetadata: meta } = part
      if (text === '' && !meta) return undefined
      return { type, text, part: id, ...(meta && { meta }) }
    }
    default:
      return undefined
  }
}

function usageOf({ inputTokens, outputTokens }: LanguageModelV3Usage): Usage {
  const { total: input, cacheRead } = inputTokens
  const { total: output, reasoning } = outputTokens
  return {
    ...(input !== undefined && { inputTokens: input }),
    ...(output !== undefined && { outputTokens: output }),
    ...(cacheRead !== undefined && cacheRead > 0 && { cachedInputTokens: cacheRead }),
    ...(reasoning !== undefined && reasoning > 0 && { reasoningTokens: reasoning }),
  }
}
