import { z } from 'zod'
import { RuntimeError } from '../../core/errors.ts'
import { clientId } from '../http.ts'

/** What AG-UI clients send, both dialects. Liberal: unknown fields are passed over, null is absent. */
const text = z.string()
const maybe = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined)
const anything = z.unknown().optional()

const source = z.looseObject({
  type: z.enum(['data', 'url']),
  value: text.min(1),
  mimeType: maybe(text),
})
const part = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text'), text }),
  z.looseObject({ type: z.enum(['image', 'audio', 'video', 'document']), source }),
  z.looseObject({
    type: z.literal('binary'),
    mimeType: text,
    data: maybe(text),
    url: maybe(text),
    filename: maybe(text),
  }),
])
const toolCall = z.looseObject({
  id: text.min(1).max(200),
  function: z.looseObject({ name: text, arguments: text }),
})
const common = z.looseObject({
  id: text.min(1).max(200),
  role: z.enum(['user', 'assistant', 'tool', 'system', 'developer', 'reasoning', 'activity']),
})
const texts = z.looseObject({ content: maybe(text) })
const parts = z.looseObject({ content: z.array(part) })
const calls = z.looseObject({ toolCalls: maybe(z.array(toolCall)) })
const result = z.looseObject({ toolCallId: text.min(1).max(200) })

export interface ClientMessage {
  id: string
  role: z.infer<typeof common>['role']
  content: string | z.infer<typeof part>[]
  toolCalls: z.infer<typeof toolCall>[]
  toolCallId: string | undefined
}

/** Messages are read one by one, and only those that are news: see `clientList`. */
export function readMessage(raw: unknown, index: number): ClientMessage {
  const read = <T>(schema: z.ZodType<T>): T => {
    const parsed = schema.safeParse(raw)
    if (parsed.success) return parsed.data
    const issue = parsed.error.issues[0]!
    const field = ['body.messages', index, ...issue.path].join('.')
    throw new RuntimeError('invalid_request', `${field}: ${issue.message}`, { field })
  }
  const { id, role, content: given } = read(common)
  const shown = role === 'reasoning' || role === 'activity' // and nothing of it is read
  const content = shown ? '' : Array.isArray(given) ? read(parts).content : read(texts).content
  const toolCalls = role === 'assistant' ? read(calls).toolCalls : undefined
  const toolCallId = role === 'tool' ? read(result).toolCallId : undefined
  return { id, role, content: content ?? '', toolCalls: toolCalls ?? [], toolCallId }
}

const clientTool = z.looseObject({
  name: text.min(1).max(200),
  description: maybe(text),
  parameters: anything,
})

const resumeEntry = z.looseObject({
  interruptId: text.min(1),
  status: z.enum(['resolved', 'cancelled']),
  payload: anything,
})

export const runInput = z.looseObject({
  threadId: clientId,
  runId: text.min(1).max(200),
  messages: maybe(z.array(z.unknown())),
  tools: maybe(z.array(clientTool)),
  context: maybe(z.array(z.looseObject({ description: text, value: text }))),
  state: anything,
  forwardedProps: anything,
  resume: maybe(z.array(resumeEntry)),
  protocolVersion: maybe(text),
})
export type RunInput = z.infer<typeof runInput>

export const agentParams = z.object({ agentId: z.string() })
export const stopParams = z.object({ agentId: z.string(), threadId: clientId })
export const stopBody = z.strictObject({ runId: text.optional() })
