import type {
  JSONSchema7,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
} from '@ai-sdk/provider'
import type { ModelRequest } from '../../core/model.ts'
import { safeName, safeText } from '../safe.ts'
import { type Habits, settle, type Turn } from '../settle.ts'

/** A request in the words of the AI SDK. */
export function promptOf(request: ModelRequest, habits: Habits): LanguageModelV3Prompt {
  const { system, turns } = settle(request, habits)
  const first: LanguageModelV3Message[] = system === '' ? [] : [{ role: 'system', content: system }]
  return [...first, ...turns.map(messageOf)]
}

function messageOf(turn: Turn): LanguageModelV3Message {
  switch (turn.role) {
    case 'user':
      return {
        role: 'user',
        content: turn.parts.map((part) => {
          if (part.type === 'text') return { type: 'text', text: part.text }
          const { mediaType, data, url = '', name } = part
          const file = { type: 'file' as const, mediaType, data: data || new URL(url) }
          return name === undefined ? file : { ...file, filename: safeText(name) }
        }),
      }
    case 'assistant':
      return {
        role: 'assistant',
        content: turn.parts.map((part) => {
          const own = part.meta && { providerOptions: part.meta }
          if (part.type !== 'call') return { type: part.type, text: part.text, ...own }
          const { callId: toolCallId, name: toolName, input } = part
          return { type: 'tool-call', toolCallId, toolName, input, ...own }
        }),
      }
    case 'tool':
      return {
        role: 'tool',
        content: turn.results.map(({ callId: toolCallId, name: toolName, text, failed }) => ({
          type: 'tool-result',
          toolCallId,
          toolName,
          output: { type: failed ? 'error-text' : 'text', value: text },
        })),
      }
  }
}

export const toolsOf = ({ tools }: ModelRequest): LanguageModelV3FunctionTool[] =>
  tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name: safeName(name),
    description: safeText(description),
    inputSchema: schemaOf(parameters),
  }))

/** Providers want the schema of an object, whatever a client sent. */
export function schemaOf(parameters: unknown): JSONSchema7 {
  const given = parameters as JSONSchema7 | null | undefined
  if (typeof given === 'object' && given !== null && given.type === 'object') return given
  return { type: 'object', properties: {} }
}
