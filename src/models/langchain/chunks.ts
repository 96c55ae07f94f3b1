import type { AIMessageChunk } from '@langchain/core/messages'
import type { Usage } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { ModelEvent, ModelRequest } from '../../core/model.ts'
import { safeName } from '../safe.ts'

interface OpenCall {
  callId: string
  name: string
  text: string
}

/** Reads the chunks of one answer. `ends`: the model says why it ended, always. */
export function chunkReader({ tools }: Pick<ModelRequest, 'tools'>, ends: boolean) {
  const names = new Map(tools.map(({ name }) => [safeName(name), name]))
  const calls = new Map<string | number, OpenCall>()
  let usage: Usage | undefined
  let reason: string | undefined

  function* take(chunk: string | AIMessageChunk): Generator<ModelEvent> {
    if (typeof chunk === 'string') {
      yield { type: 'text', text: chunk }
      return
    }
    const { reasoning_content: thought } = chunk.additional_kwargs ?? {}
    if (typeof thought === 'string') yield { type: 'reasoning', text: thought }
    if (typeof chunk.content === 'string') yield { type: 'text', text: chunk.content }
    else for (const block of chunk.content) yield* blockEvents(block as Record<string, unknown>)
    const pieces = chunk.tool_call_chunks ?? wholeCalls(chunk)
    for (const [i, { id, name, args, index }] of pieces.entries()) {
      const key = index ?? id ?? i
      let call = calls.get(key)
      if (!call) {
        call = { callId: id ?? `call_${key}`, name: names.get(name ?? '') ?? name ?? '', text: '' }
        calls.set(key, call)
      }
      const text = args ?? ''
      call.text += text
      if (text !== '') yield { type: 'input', callId: call.callId, name: call.name, text }
    }
    usage = usageOf(chunk) ?? usage
    reason = reasonOf(chunk) ?? reason
  }

  function* end(): Generator<ModelEvent> {
    if (usage) yield { type: 'usage', usage }
    const cut = reason === undefined && (ends || [...calls.values()].some(isCut))
    if (cut || failed.has(reason)) throw new RuntimeError('stream_cut')
    for (const { callId, name, text } of calls.values())
      yield { type: 'call', callId, name, input: text }
  }

  return { take, end }
}

/** Reasons that are none: it did not come to its end. */
const failed = new Set<string | undefined>(['error', 'failed'])

function* blockEvents(block: Record<string, unknown>): Generator<ModelEvent> {
  if (block.type === 'text' && typeof block.text === 'string')
    yield { type: 'text', text: block.text }
  const thought = block.thinking ?? block.reasoning
  if (typeof thought === 'string') yield { type: 'reasoning', text: thought }
}

/** A message that is no chunk has its calls whole. */
const wholeCalls = ({ tool_calls = [] }: AIMessageChunk) =>
  tool_calls.map(({ id, name, args }, index) => ({ id, name, args: JSON.stringify(args), index }))

function isCut({ text }: OpenCall): boolean {
  try {
    JSON.parse(text === '' ? '{}' : text)
    return false
  } catch {
    return true
  }
}

function usageOf({ usage_metadata: said }: AIMessageChunk): Usage | undefined {
  if (!said) return undefined
  const cached = said.input_token_details?.cache_read
  const reasoning = said.output_token_details?.reasoning
  return {
    inputTokens: said.input_tokens,
    outputTokens: said.output_tokens,
    ...(cached && { cachedInputTokens: cached }),
    ...(reasoning && { reasoningTokens: reasoning }),
  }
}

function reasonOf(chunk: AIMessageChunk): string | undefined {
  const said = { ...chunk.additional_kwargs, ...chunk.response_metadata } as Record<string, unknown>
  const reason = said.finish_reason ?? said.stop_reason ?? said.finishReason ?? said.status
  return typeof reason === 'string' ? reason : undefined
}
