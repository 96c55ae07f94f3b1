import { z } from 'zod'
import type { BudgetChange } from '../../core/budget-set.ts'
import type { Runtime } from '../../core/runtime.ts'
import { keyOf } from '../approve.ts'
import { budgetLimits } from '../decisions.ts'
import { clientId, json, type Route, route } from '../http.ts'

const params = z.object({ id: clientId })
const measure = z.object({
  limit: z.number().nullable(),
  used: z.number(),
  total: z.number(),
  hard: z.boolean(),
  why: z.string().optional(),
})
const governor = z.object({
  isHitlEnabled: z.boolean(),
  actionLimit: z.number(),
  actionsUsed: z.number(),
  remaining: z.number().nullable(),
  total: z.number(),
  tokens: measure,
  money: measure,
  remote: z.object({ legs: z.number(), reported: z.boolean() }).optional(),
  cheaper: z.boolean().optional(),
  policy: z.literal('in force'),
  mode: z.enum(['off', 'auto', 'asking']),
  pending: z.string().nullable(),
})
const change = z
  .strictObject({
    isHitlEnabled: z.boolean().optional(),
    actionLimit: budgetLimits.calls.optional(),
    tokenLimit: budgetLimits.tokens.nullable().optional(),
    moneyLimit: budgetLimits.money.nullable().optional(),
    reset: z.boolean().optional(),
  })
  .refine((said) => Object.values(said).some((one) => one !== undefined), {
    path: ['actionLimit'],
    message: 'is missing. Send actionLimit, isHitlEnabled, tokenLimit, moneyLimit or reset.',
  })
const responses = {
  200: { description: 'The budget as it is now', schema: governor },
  400: { description: 'The request is not valid; `field` names what is wrong' },
  404: { description: 'There is no such thread, or it is not yours' },
}

/** A thread's budget: to read, and to set; where the thread waits for more, that is the answer. */
export const governorRoutes = (runtime: Runtime): Route[] => [
  route({
    method: 'get',
    path: '/threads/{id}/governor',
    summary: 'What a thread may still do before a person is asked',
    params,
    responses,
    wire: 'ops',
    handle: async ({ params: { id }, caller }) => json(await runtime.governor(caller, id)),
  }),
  route({
    method: 'put',
    path: '/threads/{id}/governor',
    summary: 'Set the budget of a thread; a run that waits for more goes on',
    params,
    body: change,
    headers: { 'Idempotency-Key': 'The same key again changes nothing' },
    responses,
    wire: 'ops',
    async handle({ params: { id }, body, caller, request }) {
      const named = { input: 'body', value: 'body', limit: 'body.actionLimit' }
      const { key } = keyOf(request, ['governor', id, body])
      return json(await runtime.setGovernor(caller, id, body as BudgetChange, named, key))
    },
  }),
]
