import { z } from 'zod'
import { decisionFields, saysNothing, saysSomething } from '../approve.ts'
import { clientId, spoken } from '../http.ts'

/** What goes over the chats wire; requests are strict, so that a typo is not silently ignored. */
export const chatParams = z.object({ chat_id: clientId })
export const interactionParams = z.object({ chat_id: clientId, interaction_id: clientId })

const agent = z.string().max(200).optional()
export const startBody = z.strictObject({ user_message: spoken, agent })
export const editBody = z.strictObject({ new_user_message: spoken })
export const emptyBody = z.strictObject({})
export const createBody = z.strictObject({
  id: clientId.optional(),
  title: z.string().max(200).optional(),
  agent,
})

export const approveBody = z
  .strictObject({ approval_id: z.string().min(1), ...decisionFields })
  .refine(saysSomething, saysNothing)

export const startQuery = z.strictObject({
  when_busy: z.enum(['reject', 'queue', 'cancel']).optional(),
  on_disconnect: z.enum(['continue', 'cancel']).optional(),
  unattended: z.enum(['true', 'false']).optional(),
})
export const eventsQuery = z.strictObject({ after: z.string().optional() })
const limit = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be a number from 1 to 1000')
  .transform(Number)
  .refine((value) => value <= 1_000, 'must be a number from 1 to 1000')
  .optional()
export const chatQuery = z.strictObject({
  limit,
  before: z.string().optional(),
  include: z.enum(['superseded']).optional(),
})
export const listQuery = z.strictObject({ limit, cursor: z.string().optional() })

const status = z.enum(['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'WAITING_APPROVAL'])
const agentEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('TOOL_CALL'),
    id: z.string(),
    tool_name: z.string(),
    tool_input: z.string(),
    edited: z.boolean().optional(),
    original_tool_input: z.string().optional(),
    grant_id: z.string().optional(),
  }),
  z.object({
    type: z.literal('TOOL_RESULT'),
    id: z.string(),
    tool_name: z.string(),
    tool_output: z.string(),
  }),
  z.object({ type: z.literal('THINKING'), content: z.string() }),
  z.object({ type: z.literal('ANSWER'), content: z.string() }),
])
const usage = z.object({
  calls: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cached_input_tokens: z.number().optional(),
  reasoning_tokens: z.number().optional(),
  /** In the money of the operator's price table. */
  cost: z.number().optional(),
})
export const interaction = z.object({
  id: z.string(),
  status,
  user_message: z.string(),
  agent_events: z.array(agentEvent),
  /** How the agents of a workflow stand, by their names. */
  agents: z.record(z.string(), z.unknown()).optional(),
  /** What the agent gives besides its words: of a workflow all that came of it, also where it failed. */
  output: z.unknown().optional(),
  final_agent_state: z.object({ messages: z.array(z.unknown()) }).nullable(),
  created_at: z.string(),
  completed_at: z.string().nullable(),
  queued: z.boolean().optional(),
  superseded: z.boolean().optional(),
  parent_id: z.string().nullable().optional(),
  final_agent_state_omitted: z.boolean().optional(),
  usage: usage.optional(),
})
export const chat = z.object({
  id: z.string(),
  title: z.string().nullable(),
  interactions: z.array(interaction),
  usage: usage.optional(),
  created_at: z.string(),
})
export const problem = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    field: z.string().optional(),
    retryable: z.boolean(),
  }),
})

const failed = (description: string) => ({ description, schema: problem })

export const problems = {
  400: failed('The request is not valid; `field` names what is wrong'),
  401: failed('Nobody is asking: send a valid API key'),
  404: failed('There is no such thing, or it is not yours'),
  409: failed('Not in this state; the answer names what stands in the way'),
  503: failed('Storage is away or the server is stopping; see Retry-After'),
  504: failed(
    'Storage did not confirm the write: it may still take effect. Check before you retry',
  ),
}
const bodyProblems = {
  ...problems,
  413: failed('The body is too large'),
  415: failed('The body is not sent as application/json'),
  422: failed('A rule forbids it, or the Idempotency-Key was used with another request'),
}
const streamed = { description: 'The interaction as it happens', stream: 'text/event-stream' }
export const eventsResponses = { 200: streamed, ...problems }
export const streamResponses = { 200: streamed, ...bodyProblems }
const processed = z.object({
  status: z.literal('processed'),
  approval_id: z.string(),
  approved: z.boolean(),
  state: z.string(),
})
export const approveResponses = {
  200: { description: 'The decision is recorded', schema: processed },
  ...bodyProblems,
}
const cancelling = z.object({
  status: z.literal('cancelling'),
  interaction_id: z.string(),
  message: z.string(),
})
export const cancelResponses = {
  200: { description: 'It will stop', schema: cancelling },
  ...bodyProblems,
}
export const interactionResponses = {
  200: { description: 'The interaction', schema: interaction, stream: 'text/event-stream' },
  ...problems,
}
export const chatResponses = { 200: { description: 'The chat', schema: chat }, ...problems }
export const createResponses = { 201: { description: 'The chat', schema: chat }, ...bodyProblems }
const summary = z.object({
  id: z.string(),
  title: z.string().nullable(),
  agent: z.string(),
  status: z.enum(['idle', 'running', 'waiting']),
  created_at: z.string(),
  updated_at: z.string(),
})
const list = z.object({ chats: z.array(summary), next_cursor: z.string().nullable() })
const used = z.object({
  usage: usage.optional(),
  chats: z.array(z.object({ id: z.string(), usage: usage.optional() })),
  next_cursor: z.string().nullable(),
})
export const usageResponses = { 200: { description: 'One page', schema: used }, ...problems }
export const listResponses = { 200: { description: 'One page', schema: list }, ...problems }
