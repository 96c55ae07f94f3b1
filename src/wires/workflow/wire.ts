import { z } from 'zod'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { clientId, json, type Route, route } from '../http.ts'
import { sessionOf } from './session.ts'

export interface WorkflowWireOptions {
  runtime: Runtime
  basePaths: readonly string[]
  version: string
}

/** The orchestrator's API: what the agents are at, and how a session stands. */
export function workflowWire({ runtime, basePaths, version }: WorkflowWireOptions): Route[] {
  return basePaths.map((base) =>
    route({
      method: 'get',
      path: `${base}/status`,
      summary: 'The agents, and how a session stands',
      query: z.strictObject({ session_id: clientId.optional() }),
      responses: {
        200: { description: 'The status, or the state of the session that is named' },
        404: { description: 'There is no such session' },
      },
      wire: 'workflow',
      async handle({ query, caller }) {
        const { session_id } = query
        if (session_id !== undefined) return json(await runtime.view(caller, session_id, sessionOf))
        return json({ status: 'ok', version, ...(await overview(runtime, caller)) })
      },
    }),
  )
}

async function overview(runtime: Runtime, caller: Caller) {
  const busy = new Set<string>()
  let active = 0
  let cursor: string | undefined
  do {
    const page = await runtime.list(caller, {
      limit: 1_000,
      active: true,
      ...(cursor && { cursor }),
    })
    active += page.rows.length
    for (const { agent } of page.rows) busy.add(agent)
    cursor = page.next
  } while (cursor !== undefined)
  const agents = runtime.agents().map(({ agent, tools }) => ({
    name: agent.name,
    description: agent.description ?? '',
    tools: tools.map(({ name }) => name),
    status: busy.has(agent.name) ? 'running' : 'idle',
  }))
  return { agents, sessions: { active } }
}
