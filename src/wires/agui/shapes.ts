import { z } from 'zod'
import { RuntimeError } from '../../core/errors.ts'
import { clientId } from '../http.ts'
import {
  limitedList,
  limitedValue,
  maxAnswers,
  maxContextItems,
  maxListed,
  maxParts,
  maxTools,
} from '../limits.ts'

/** What AG-UI clients send, both dialects. Liberal: unknown fields are passed over, null is absent. */
const text = z.string()
const maybe = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined)

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
const parts = z.looseObject({ content: limitedList(part, maxParts) })
const calls = z.looseObject({ toolCalls: maybe(limitedList(toolCall, maxParts)) })
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
  const as = <T>(schema: z.ZodType<T>): T => read(schema, raw, ['body.messages', index])
  const { id, role, content: given } = as(common)
  const shown = role === 'reasoning' || role === 'activity' // and nothing of it is read
  const content = shown ? '' : Array.isArray(given) ? as(parts).content : as(texts).content
  const toolCalls = role === 'assistant' ? as(calls).toolCalls : undefined
  const toolCallId = role === 'tool' ? as(result).toolCallId : undefined
  return { id, role, content: content ?? '', toolCalls: toolCalls ?? [], toolCallId }
}

function read<T>(schema: z.ZodType<T>, value: unknown, at: readonly PropertyKey[]): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  const field = [...at, ...issue.path].join('.')
  throw new RuntimeError('invalid_request', `${field}: ${issue.message}`, { field })
}

const clientTool = z.looseObject({
  name: text.min(1).max(200),
  description: maybe(text),
  parameters: limitedValue,
})

const resumeEntry = z.looseObject({
  interruptId: text.min(1),
  status: z.enum(['resolved', 'cancelled']),
  payload: limitedValue,
})

const handrail = z.looseObject({
  /** The user message that a new one replaces. */
  branchFrom: maybe(text),
  /** What is done with a message while the thread works. */
  whenBusy: maybe(z.enum(['reject', 'queue', 'cancel'])),
  /** Nobody attends the run. */
  unattended: maybe(z.boolean()),
})

/** What is ours in what a page forwards; the rest is the agent's. */
export function readHandrail(forwardedProps: unknown): z.infer<typeof handrail> {
  const { handrail: ours } = Object(forwardedProps) as { handrail?: unknown }
  return read(handrail, ours ?? {}, ['body.forwardedProps.handrail'])
}

export const runInput = z.object({
  threadId: clientId,
  runId: text.min(1).max(200),
  messages: maybe(limitedList(z.unknown(), maxListed)),
  tools: maybe(limitedList(clientTool, maxTools)),
  context: maybe(limitedList(z.looseObject({ description: text, value: text }), maxContextItems)),
  state: limitedValue,
  forwardedProps: limitedValue,
  resume: maybe(limitedList(resumeEntry, maxAnswers)),
  protocolVersion: maybe(text),
})
export type RunInput = z.infer<typeof runInput>

export const agentParams = z.object({ agentId: z.string() })
export const stopParams = z.object({ agentId: z.string(), threadId: clientId })
export const stopBody = z.strictObject({ runId: text.optional() })
