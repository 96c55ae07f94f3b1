import { z } from 'zod'

/** What is said on a thread, in our own shape. Wires and models convert at their edge. */
const meta = z.record(z.string(), z.unknown()).optional()

/** Data that is left in the journal: its digest, and how many characters of base64 it has. */
const storedSchema = z.object({ digest: z.string(), length: z.number() })
export type StoredData = z.infer<typeof storedSchema>

export const partSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string(), meta }),
  z.object({ type: z.literal('reasoning'), text: z.string(), meta }),
  /** `input` is the JSON text exactly as the model wrote it; it may be malformed. */
  z.object({
    type: z.literal('call'),
    callId: z.string(),
    name: z.string(),
    input: z.string(),
    meta,
  }),
  /**
   * An image, sound or document: `data` is base64, or `url` says where it is. `stored`: the data is in
   * an earlier message of the thread, or in the journal only; see large-parts.ts.
   */
  z.object({
    type: z.literal('media'),
    mediaType: z.string(),
    data: z.string().optional(),
    url: z.string().optional(),
    stored: storedSchema.optional(),
    name: z.string().optional(),
    meta,
  }),
])

/** Characters of an id that clients send back. */
export const longestId = 200

export const messageSchema = z.object({
  id: z.string(),
  role: z.enum(['user', 'assistant', 'tool', 'system']),
  parts: z.array(partSchema),
  /** Tool messages: the call this is the result of. */
  callId: z.string().optional(),
  name: z.string().optional(),
  /** A tool message that tells of an error, or of a call that was not made. */
  failed: z.boolean().optional(),
  /** Cut short: the run was cancelled while this was being written. */
  partial: z.boolean().optional(),
  /** Brought by a client as the history of a new thread; nobody vouches for it. */
  imported: z.boolean().optional(),
  meta,
})

export type Part = z.infer<typeof partSchema>
export type Message = z.infer<typeof messageSchema>
export type CallPart = Extract<Part, { type: 'call' }>

export function textOf(message: Message): string {
  let text = ''
  for (const part of message.parts) if (part.type === 'text') text += part.text
  return text
}

/** Any value as the text of a result. Throws for what JSON cannot hold. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

export function callsOf(message: Message): CallPart[] {
  return message.parts.filter((part) => part.type === 'call')
}

export function userText(id: string, text: string): Message {
  return { id, role: 'user', parts: [{ type: 'text', text }] }
}

export function toolText(id: string, call: CallPart, text: string, failed?: boolean): Message {
  const message: Message = { id, role: 'tool', callId: call.callId, name: call.name, parts: [] }
  message.parts.push({ type: 'text', text })
  if (failed) message.failed = true
  return message
}
