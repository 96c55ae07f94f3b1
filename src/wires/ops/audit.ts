import { z } from 'zod'
import { faults } from '../../core/audit-verify.ts'
import type { Runtime } from '../../core/runtime.ts'
import { clientId, json, type Route, route } from '../http.ts'

const verdict = z.object({
  verdict: z.enum(['ok', 'broken', 'unchained', 'erased']),
  seq: z.number().int(),
  since: z.number().int().nullable(),
  head: z.string().nullable(),
  problems: z.array(
    z.object({ seq: z.number(), to: z.number(), fault: z.string(), message: z.string() }),
  ),
})

/** What the audit says of a thread, for its owner. */
export const auditRoute = (runtime: Runtime): Route =>
  route({
    method: 'get',
    path: '/threads/{id}/audit',
    summary: 'Whether anything of a thread was changed since it was written',
    params: z.object({ id: clientId }),
    responses: {
      200: { description: 'The verdict, and the entries it is about', schema: verdict },
      404: { description: 'There is no such thread' },
    },
    async handle({ params, caller }) {
      const { problems, ...rest } = await runtime.audit(caller, params.id)
      const told = problems.map((one) => ({ ...one, message: faults[one.fault] }))
      return json({ ...rest, problems: told })
    },
  })
