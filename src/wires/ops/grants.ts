import { z } from 'zod'
import { isBy, isOf, isOpen } from '../../core/grants.ts'
import { ruleDigest } from '../../core/policy.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { Grant } from '../../core/state.ts'
import { clientId, json, type Route, route } from '../http.ts'

const threadParams = z.object({ threadId: clientId })
const grantParams = threadParams.extend({ grantId: clientId })

const grant = z.object({
  id: z.string(),
  tool: z.string(),
  server: z.string().optional(),
  /** Who was allowed to. */
  agent: z.string().optional(),
  /** The rule that asked. */
  rule: z.string().optional(),
  givenBy: z.string(),
  givenAt: z.string(),
  /** Absent: for as long as the chat is there. */
  until: z.string().optional(),
  askId: z.string().optional(),
  /** False once the tool or the rule is another: it is asked about again. */
  inForce: z.boolean(),
})
const problem = (description: string) => ({ description })
const problems = { 404: problem('There is no such thread or grant, or it is not yours') }

/** What need not be asked about on a thread, and the way to take it back. */
export function grantRoutes(runtime: Runtime): Route[] {
  return [
    route({
      method: 'get',
      path: '/threads/{threadId}/grants',
      summary: 'What was allowed for more than once on a thread, by whom and until when',
      params: threadParams,
      responses: {
        200: { description: 'The grants', schema: z.object({ grants: z.array(grant) }) },
        ...problems,
      },
      async handle({ params, caller }) {
        const { state } = await runtime.open(caller, params.threadId)
        const now = runtime.clock.now()
        const open = [...state.grants.values()].filter((one) => isOpen(one, now))
        return json({ grants: open.map((one) => grantJson(one, runtime)) })
      },
    }),
    route({
      method: 'delete',
      path: '/threads/{threadId}/grants/{grantId}',
      summary: 'Take a grant back: nothing begins by it any more',
      params: grantParams,
      responses: { 204: problem('It is taken back'), ...problems },
      async handle({ params, caller }) {
        await runtime.revoke(caller, params.threadId, params.grantId)
        return new Response(null, { status: 204 })
      },
    }),
  ]
}

function grantJson(given: Grant, runtime: Runtime) {
  const { grantId: id, tool, server, agent, rule, by, at, until, askId } = given
  const iso = (time: number) => new Date(time).toISOString()
  const all = runtime.agents()
  const own = all.filter(({ agent }) => agent.name === given.agent)
  // One that stands in a workflow alone is in no list: it has the tools and rules of the others.
  const inForce = (own.length > 0 ? own : all).some(
    ({ tools, policy }) =>
      tools.some((one) => isOf(given, one)) &&
      policy.some((rule) => isBy(given, { ...rule, ruleDigest: ruleDigest(rule) })),
  )
  return {
    ...{ id, tool },
    ...(server !== undefined && { server }),
    ...(agent !== undefined && { agent }),
    ...(rule !== undefined && { rule }),
    ...{ givenBy: by.id, givenAt: iso(at) },
    ...(until !== undefined && { until: iso(until) }),
    ...(askId !== undefined && { askId }),
    inForce,
  }
}
