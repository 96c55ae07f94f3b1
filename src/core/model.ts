import { z } from 'zod'
import { isBase64 } from '../lib/base64.ts'
import type { Usage } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { Message } from './messages.ts'

/** One provider call, and nothing else: no retry, no tool loop, no memory between calls. */
export interface Model {
  /** As it is named in logs, journals and prices: `demo`, `openai/gpt-5`. */
  readonly name: string
  /** Media types it reads besides text, `image/*` for all of a kind. */
  readonly accepts?: readonly string[]
  /** Tokens that a request and its answer may have together, where it is known. */
  readonly window?: number
  /** Whose limits and outages it shares; without it, only its own. */
  readonly provider?: string
  /** Digest of the key and the address that it is called with: an outage of one is not one of the others. */
  readonly account?: string
  /**
   * Streams one answer. Throws a `RuntimeError` of the provider category for what providers do;
   * when the signal fires it ends or throws, soon, and what it throws then does not matter.
   */
  stream(request: ModelRequest, signal: AbortSignal, use?: ModelUse): AsyncIterable<ModelEvent>
}

/** Before anything is recorded: what a model cannot read would be in its way with every call to come. */
export function refuseMedia(messages: readonly Message[], { name, accepts = [] }: Model): void {
  for (const { id, parts } of messages) {
    for (const [j, part] of parts.entries()) {
      if (part.type !== 'media') continue
      const { mediaType, data, url, stored } = part
      const field = `messages.${id}.content.${j}`
      const refuse = (problem: string): never => {
        throw new RuntimeError('media_unsupported', problem, { field })
      }
      const reads = accepts.length > 0 ? `It reads ${accepts.join(', ')}.` : 'It reads text only.'
      if (!accepts.some((one) => covers(one, mediaType)))
        refuse(`The model ${name} cannot read ${mediaType}. ${reads}`)
      if (!data && !url && !stored)
        refuse(`There is nothing of ${mediaType} here. Send its data or its url.`)
      if (data && !isBase64(data)) refuse(`The data of ${mediaType} is not base64. Encode it.`)
    }
  }
}

/** Whether one that accepts `image/*` or the like takes this type. */
export const covers = (accepted: string, given: string): boolean =>
  accepted === '*/*' ||
  accepted === given ||
  (accepted.endsWith('/*') && given.startsWith(accepted.slice(0, -1)))

/** What a call brings besides its request; no part of any record. */
export interface ModelUse {
  /** The client's own key, for this call alone. */
  apiKey?: string
}

export interface ModelRequest {
  /** Instructions, the operator's first. */
  system: string[]
  /** Valid for every provider: each call has its result right after it. */
  messages: readonly Message[]
  tools: readonly ToolSpec[]
  parameters?: ModelParameters
}

/** The same, told to write no more than this. */
export function withMaxOutput(request: ModelRequest, most: number | undefined): ModelRequest {
  const { maxOutputTokens = Number.POSITIVE_INFINITY } = request.parameters ?? {}
  if (most === undefined || maxOutputTokens <= most) return request
  return { ...request, parameters: { ...request.parameters, maxOutputTokens: most } }
}

export const parametersSchema = z.object({
  /** Another model of the same provider, where the operator lets clients choose. */
  model: z.string().optional(),
  temperature: z.number().optional(),
  maxOutputTokens: z.number().optional(),
  stop: z.array(z.string()).optional(),
  toolChoice: z
    .union([z.enum(['auto', 'none', 'required']), z.object({ name: z.string() })])
    .optional(),
})
export type ModelParameters = z.infer<typeof parametersSchema>

export interface ToolSpec {
  name: string
  description: string
  /** JSON Schema of the input object. */
  parameters: unknown
}

export type ModelEvent =
  /** `part` tells parts of one kind apart; `meta` is kept with the part and given back to the model. */
  | { type: 'text' | 'reasoning'; text: string; part?: string; meta?: Record<string, unknown> }
  /** A piece of a call's input while it is being written; `call` follows with the whole. */
  | { type: 'input'; callId: string; name: string; text: string }
  | { type: 'call'; callId: string; name: string; input: string; meta?: Record<string, unknown> }
  | { type: 'usage'; usage: Usage }
  /** Something about the whole message, kept with it. */
  | { type: 'meta'; meta: Record<string, unknown> }
