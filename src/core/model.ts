import type { Usage } from './entries.ts'
import type { Message } from './messages.ts'

/** One provider call, and nothing else: no retry, no tool loop, no memory between calls. */
export interface Model {
  /** As it is named in logs, journals and prices: `demo`, `openai/gpt-5`. */
  readonly name: string
  /**
   * Streams one answer. Throws a `RuntimeError` of the provider category for what providers do;
   * when the signal fires it ends or throws, soon, and what it throws then does not matter.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>
}

export interface ModelRequest {
  /** Instructions, the operator's first. */
  system: string[]
  /** Valid for every provider: each call has its result right after it. */
  messages: readonly Message[]
  tools: readonly ToolSpec[]
  parameters?: ModelParameters
}

export interface ModelParameters {
  temperature?: number
  maxOutputTokens?: number
  stop?: string[]
  toolChoice?: 'auto' | 'none' | 'required' | { name: string }
}

export interface ToolSpec {
  name: string
  description: string
  /** JSON Schema of the input object. */
  parameters: unknown
}

export type ModelEvent =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A piece of a call's input while it is being written; `call` follows with the whole. */
  | { type: 'input'; callId: string; name: string; text: string }
  | { type: 'call'; callId: string; name: string; input: string; meta?: Record<string, unknown> }
  | { type: 'usage'; usage: Usage }
