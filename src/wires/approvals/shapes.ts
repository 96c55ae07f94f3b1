import { z } from 'zod'
import { askKinds, askStates } from '../../core/entries.ts'
import { decisionFields, saysNothing, saysSomething } from '../approve.ts'
import { clientId } from '../http.ts'

/** What goes over the approvals wire. */
export const approvalParams = z.object({ id: clientId })

const kind = z.enum(askKinds).exclude(['client_tool'])
const state = z.enum(askStates)

const filters = {
  kind: kind.optional(),
  tool: z.string().min(1).max(200).optional(),
  agent: z.string().min(1).max(200).optional(),
  /** A chat of the caller's own. */
  thread: clientId.optional(),
}
export const listQuery = z.strictObject({
  /** `settled` is every state but `pending`. */
  state: z.enum([...askStates, 'settled']).default('pending'),
  ...filters,
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be a number from 1 to 200')
    .transform(Number)
    .refine((value) => value <= 200, 'must be a number from 1 to 200')
    .default(50),
  cursor: z.string().optional(),
})

export const streamQuery = z.strictObject({ after: z.string().max(200).optional() })

export const decideBody = z
  .strictObject({ ...decisionFields, decision: z.enum(['approve', 'reject']).optional() })
  .refine(({ approved, decision }) => approved === undefined || decision === undefined, {
    path: ['decision'],
    message: 'is given beside approved. Give one of them.',
  })
  .transform(({ decision, ...said }) =>
    decision === undefined ? said : { ...said, approved: decision === 'approve' },
  )
  .refine(saysSomething, saysNothing)

export const approval = z.object({
  id: z.string(),
  kind,
  state,
  title: z.string(),
  tool: z.string().nullable(),
  agent: z.string(),
  /** Whose chat it is. */
  owner: z.string(),
  raised_at: z.string(),
  deadline: z.string(),
  decided_at: z.string().nullable(),
  decided_by: z.string().nullable(),
  /** The approver changed the arguments: the title is of those that ran. */
  edited: z.boolean().optional(),
  /** For the owner of the chat alone. */
  chat_id: z.string().optional(),
  interaction_id: z.string().optional(),
})

/** One approval, with all that there is to judge by. */
export const wholeApproval = approval.extend({
  input: z.unknown(),
  at_timeout: z.enum(['reject', 'approve', 'stop']),
  card: z.record(z.string(), z.unknown()),
  /** With `edited`: the arguments and the card that were asked about. `input` and `card` are those that ran. */
  original_input: z.unknown().optional(),
  original_card: z.record(z.string(), z.unknown()).optional(),
  decision: z.record(z.string(), z.unknown()).optional(),
})

const problem = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    field: z.string().optional(),
    retryable: z.boolean(),
  }),
})
const failed = (description: string) => ({ description, schema: problem })
const problems = {
  400: failed('The request is not valid; `field` names what is wrong'),
  401: failed('Nobody is asking: send a valid API key'),
  503: failed('Storage is away or the server is stopping; see Retry-After'),
  504: failed(
    'Storage did not confirm the write: it may still take effect. Check before you retry',
  ),
}
const missing = { 404: failed('There is no such approval, or it is not for the caller') }

export const listResponses = {
  200: {
    description: 'One page, the soonest deadline first; of what is settled, the latest first',
    schema: z.object({ approvals: z.array(approval), next_cursor: z.string().nullable() }),
  },
  ...problems,
}
export const streamResponses = {
  200: { description: 'The inbox as it changes', stream: 'text/event-stream' },
  ...problems,
}
export const readResponses = {
  200: { description: 'The approval and its card', schema: wholeApproval },
  ...problems,
  ...missing,
}
export const decideResponses = {
  200: {
    description: 'The decision is recorded',
    schema: z.object({
      status: z.literal('processed'),
      approval_id: z.string(),
      approved: z.boolean(),
      state: z.string(),
    }),
  },
  ...problems,
  400: failed('The request is not valid, or it was decided before: then `decision` says how'),
  ...missing,
  413: failed('The body is too large'),
  415: failed('The body is not sent as application/json'),
  422: failed('The Idempotency-Key was used with another request'),
}
