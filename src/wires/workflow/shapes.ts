import { z } from 'zod'
import { decisionFields } from '../approve.ts'
import { clientId, clientText, spoken } from '../http.ts'
import { limitedRecord, maxMessages } from '../limits.ts'

const session_id = clientId.optional()

export const orchestrateBody = z.strictObject({
  account_id: z.string().min(1).max(64),
  session_id,
  user_message: spoken,
})

export const chatBody = z.strictObject({
  /** The last one is what the user says now; those before it are kept where the session is new. */
  messages: z
    .array(
      z.object({
        id: clientId.optional(),
        role: z.enum(['user', 'assistant', 'system']),
        content: clientText,
      }),
    )
    .min(1)
    .max(maxMessages, `has more than ${maxMessages} items. Send fewer.`)
    .refine((list) => list.at(-1)?.role === 'user', 'the last one must be of the user')
    .refine((list) => list.at(-1)?.content.trim() !== '', 'the last one must not be empty')
    .refine((list) => {
      const ids = list.flatMap(({ id }) => id ?? [])
      return new Set(ids).size === ids.length
    }, 'two of them have the same id'),
  context: limitedRecord.optional(),
  session_id,
  agent: z.string().min(1).max(200).optional(),
})

export const followQuery = z.strictObject({
  session_id: clientId,
  /** Default: the last one. */
  run_id: z.string().min(1).max(200).optional(),
  after: z.string().optional(),
})

export const approvalParams = z.strictObject({ approval_id: z.string().min(1).max(200) })

export const approvalBody = z.strictObject({
  action: z.enum(['approve', 'reject']),
  /** A label for the log: who decides is who calls. */
  user_id: z.string().max(200).optional(),
  reason: z.string().max(10_000).nullish(),
  /** Approving a question of kind `input`: what it asks for. */
  answer: decisionFields.answer,
})

export const statusQuery = z.strictObject({ session_id })

const problem = (description: string) => ({ description })

export const streamResponses = {
  200: { description: 'Events of the run, as they happen' },
  400: problem('The request is not valid'),
  404: problem('There is no such session or agent'),
  409: problem('The session is busy, or waits for a decision'),
}

export const approvalResponses = {
  200: { description: '{ success: true }' },
  400: problem('The request is not valid, or it was decided before'),
  403: problem('It is not for the caller to decide'),
  404: problem('There is no such approval'),
}

export const statusResponses = {
  200: { description: 'The status, or the state of the session that is named' },
  404: problem('There is no such session'),
}
