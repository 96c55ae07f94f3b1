import type { InboxQuery } from '../../core/inbox.ts'
import type { Runtime } from '../../core/runtime.ts'
import { decided, decisionOn, keyOf } from '../approve.ts'
import { json, namingCursor, type Route, route } from '../http.ts'
import { type Heartbeats, sse } from '../sse.ts'
import { approvalJson, wholeJson } from './approval.ts'
import * as shapes from './shapes.ts'
import { inboxFrames } from './stream.ts'

/** The inbox: all that the caller may decide, across chats. */
export function approvalsWire(runtime: Runtime, heartbeats: Heartbeats): Route[] {
  const routes: Route[] = [
    route({
      method: 'get',
      path: '/approvals',
      summary: 'What the caller may decide, or might have: the most urgent first',
      query: shapes.listQuery,
      responses: shapes.listResponses,
      async handle({ query, caller }) {
        const page = await runtime.inbox.list(caller, given(query)).catch(namingCursor)
        return json({
          approvals: page.rows.map((row) => approvalJson(row, caller.user)),
          next_cursor: page.next ?? null,
        })
      },
    }),
    route({
      method: 'get',
      path: '/approvals/stream', // before those with an id: no approval is called so
      summary: 'What is open, and then what is raised, settled and expired',
      query: shapes.streamQuery,
      headers: { 'Last-Event-ID': 'The id of the last frame that arrived' },
      responses: shapes.streamResponses,
      async handle({ query, caller, request }) {
        const after = query.after ?? request.headers.get('last-event-id') ?? undefined
        return sse((signal) => inboxFrames(runtime, caller, after, signal), heartbeats, {
          resumes: true,
        })
      },
    }),
    route({
      method: 'get',
      path: '/approvals/{id}',
      summary: 'One approval with its card',
      params: shapes.approvalParams,
      responses: shapes.readResponses,
      async handle({ params, caller }) {
        const { row, record } = await runtime.inbox.read(caller, params.id)
        return json(wholeJson(row, record, caller.user))
      },
    }),
    route({
      method: 'post',
      path: '/approvals/{id}',
      summary: 'Decide: approve, reject, answer, or stop',
      params: shapes.approvalParams,
      body: shapes.decideBody,
      headers: { 'Idempotency-Key': 'The same key again gets the first response again' },
      responses: shapes.decideResponses,
      async handle({ params, body, caller, request }) {
        const key = keyOf(request, ['decide', params.id, body])
        try {
          const asked = await runtime.inbox.read(caller, params.id)
          const said = { ...decisionOn(asked.record.ask, body), ...key }
          const { record, mine } = await runtime.inbox.decide(caller, said)
          return json(decided(record, mine))
        } catch (error) {
          runtime.answers.refused(caller, { ask: params.id }, error)
          throw error
        }
      },
    }),
  ]
  return routes.map((one) => ({ ...one, wire: 'approvals' }))
}

/** Only what was asked for. */
function given(query: { [K in keyof InboxQuery]: InboxQuery[K] | undefined }): InboxQuery {
  const all = Object.entries(query).filter(([, value]) => value !== undefined)
  return Object.fromEntries(all) as unknown as InboxQuery
}
