import { z } from 'zod'
import { clientId } from '../http.ts'

/** What AG-UI clients send, both dialects. Liberal: unknown fields are passed over. */
const text = z.string()
const nothing = z.null().transform(() => undefined)
const maybe = <T extends z.ZodType>(schema: T) => z.union([schema, nothing]).optional()

const source = z.looseObject({
  type: z.enum(['data', 'url']),
  value: text,
  mimeType: maybe(text),
})
const part = z.union([
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
  id: text.min(1),
  function: z.looseObject({ name: text, arguments: text }),
})
export const clientMessage = z.looseObject({
  id: text.min(1).max(200),
  role: z.enum(['user', 'assistant', 'tool', 'system', 'developer', 'reasoning', 'activity']),
  content: z.union([text, z.array(part), z.looseObject({})]).nullish(),
  toolCalls: maybe(z.array(toolCall)),
  toolCallId: maybe(text),
  error: maybe(text),
})
export type ClientMessage = z.infer<typeof clientMessage>

export const clientTool = z.looseObject({
  name: text.min(1).max(200),
  description: maybe(text),
  parameters: z.unknown(),
})

export const resumeEntry = z.looseObject({
  interruptId: text.min(1),
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown(),
})

export const runInput = z.looseObject({
  threadId: clientId,
  runId: text.min(1).max(200),
  messages: maybe(z.array(clientMessage)),
  tools: maybe(z.array(clientTool)),
  context: maybe(z.array(z.looseObject({ description: text, value: text }))),
  state: z.unknown(),
  forwardedProps: z.unknown(),
  resume: maybe(z.array(resumeEntry)),
  protocolVersion: maybe(text),
})
export type RunInput = z.infer<typeof runInput>

export const agentParams = z.object({ agentId: z.string() })
export const stopParams = z.object({ agentId: z.string(), threadId: clientId })
export const stopBody = z.strictObject({ runId: text.optional() })
