import { z } from 'zod'
import { RuntimeError } from '../../core/errors.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import type { Page, ThreadRow } from '../../core/store.ts'
import { clientId, json, jsonText, type Route, route } from '../http.ts'
import type { Heartbeats } from '../sse.ts'
import { inspectedMessages, pastEvents } from './inspect.ts'
import { outlineOf } from './outline.ts'
import { watch } from './watch.ts'

const params = z.object({ threadId: clientId })
const anything = z.looseObject({})
const responses = { 200: { description: 'JSON' } }
const listQuery = z.looseObject({
  agentId: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(1_000).optional(),
  cursor: z.string().optional(),
  includeArchived: z.string().optional(),
  /** `true`: those in the archive and no others. */
  archived: z.string().optional(),
  /** Only threads whose name has this in it. */
  search: z.string().max(200).optional(),
})
const head = z.looseObject({ runId: z.string().min(1).max(200) })
const changes = z.looseObject({
  name: z.string().max(200).optional(),
  archived: z.boolean().optional(),
})

/** The thread list and its inspection, as CopilotKit's `useThreads` wants it. */
export function threadRoutes(runtime: Runtime, heartbeats: Heartbeats): Route[] {
  return [
    route({
      method: 'get',
      path: '/threads',
      summary: 'The threads of the caller, newest first',
      query: listQuery,
      responses,
      async handle({ query, caller }) {
        const { limit = 50, cursor, includeArchived, agentId } = query
        const only = query.archived === 'true'
        const archived = includeArchived === 'true' && !only ? {} : { archived: only }
        const agent = agentId === undefined ? undefined : agentNamed(runtime, agentId)
        const search = query.search?.toLowerCase() ?? ''
        const wanted = (row: ThreadRow) =>
          (agent === undefined || row.agent === agent) &&
          (row.title ?? '').toLowerCase().includes(search)
        const page = await pageOf(runtime, caller, { limit, ...archived }, cursor, wanted)
        const threads = page.rows.map((row) => threadJson(row, agentId))
        return json({ threads, nextCursor: page.next ?? null })
      },
    }),
    route({
      method: 'get',
      path: '/threads/{threadId}/messages',
      summary: 'The messages of a thread',
      params,
      query: anything,
      responses,
      async handle({ params: { threadId }, caller }) {
        const thread = await runtime.find(caller, threadId)
        return jsonText(thread ? await inspectedMessages(thread) : '{"messages":[]}')
      },
    }),
    route({
      method: 'get',
      path: '/threads/{threadId}/events',
      summary: 'What happened on a thread lately, as AG-UI events',
      params,
      query: anything,
      responses,
      async handle({ params: { threadId }, caller }) {
        const thread = await runtime.find(caller, threadId)
        return jsonText(`{"events":${thread ? await pastEvents(thread, threadId) : '[]'}}`)
      },
    }),
    route({
      method: 'get',
      path: '/threads/{threadId}/state',
      summary: 'The state that the agent shares',
      params,
      query: anything,
      responses,
      async handle({ params: { threadId }, caller }) {
        const thread = await runtime.find(caller, threadId)
        return json({ state: thread?.state.states.get(thread.state.agent) ?? null })
      },
    }),
    route({
      method: 'get',
      path: '/threads/{threadId}/outline',
      summary: 'Branches, calls and questions of a thread: what a page shows besides its messages',
      params,
      query: anything,
      responses,
      async handle({ params: { threadId }, caller }) {
        const thread = await runtime.find(caller, threadId)
        return json(thread ? outlineOf(thread.state) : null)
      },
    }),
    route({
      method: 'get',
      path: '/threads/{threadId}/watch',
      summary: 'Where a thread stands, now and whenever that changes',
      params,
      query: anything,
      responses: { 200: { description: 'Its standing', stream: 'text/event-stream' } },
      async handle({ params: { threadId }, caller }) {
        const thread = await runtime.open(caller, threadId)
        caller.uses?.end()
        return watch(runtime, thread.threadId, heartbeats)
      },
    }),
    route({
      method: 'put',
      path: '/threads/{threadId}/head',
      summary: 'Show the branch that a run is on',
      params,
      query: anything,
      body: head,
      responses,
      async handle({ params: { threadId }, body: { runId }, caller }) {
        return json({ id: threadId, head: await runtime.show(caller, threadId, runId) })
      },
    }),
    route({
      method: 'patch',
      path: '/threads/{threadId}',
      summary: 'Rename a thread, or take it out of the archive',
      params,
      query: anything,
      body: changes,
      responses,
      async handle({ params: { threadId }, body: { name, archived }, caller }) {
        const thread = await runtime.open(caller, threadId)
        if (name === undefined && archived === undefined) {
          throw new RuntimeError('invalid_request', 'name: send a name or archived', {
            field: 'name',
          })
        }
        if (name !== undefined) await runtime.rename(caller, threadId, name)
        if (archived !== undefined) await runtime.archive(caller, threadId, archived)
        return json({ id: threadId, name: thread.state.title, archived: thread.state.archived })
      },
    }),
    route({
      method: 'post',
      path: '/threads/{threadId}/archive',
      summary: 'Put a thread into the archive',
      params,
      query: anything,
      body: anything,
      bodyOptional: true,
      responses,
      async handle({ params: { threadId }, caller }) {
        await runtime.archive(caller, threadId, true)
        return json({ id: threadId, archived: true })
      },
    }),
    route({
      method: 'delete',
      path: '/threads/{threadId}',
      summary: 'Delete a thread; what runs on it is cancelled first',
      params,
      query: anything,
      body: anything,
      bodyOptional: true,
      responses,
      async handle({ params: { threadId }, caller }) {
        await runtime.erase(caller, threadId)
        return json({ id: threadId, deleted: true })
      },
    }),
  ]
}

/** A page of the threads that are wanted: pages of all are read until it is full, a bounded number. */
async function pageOf(
  runtime: Runtime,
  caller: Caller,
  query: { limit: number; archived?: boolean },
  cursor: string | undefined,
  wanted: (row: ThreadRow) => boolean,
): Promise<Page<ThreadRow>> {
  const rows: ThreadRow[] = []
  let next = cursor
  for (let pages = 0; pages < 20; pages++) {
    const limit = query.limit - rows.length
    const page = await runtime.list(caller, { ...query, limit, ...(next && { cursor: next }) })
    rows.push(...page.rows.filter(wanted))
    next = page.next
    if (next === undefined || rows.length >= query.limit) break
  }
  return { rows, ...(next !== undefined && { next }) }
}

/** An agent under the name or an alias of it; another name is nobody's. */
function agentNamed(runtime: Runtime, name: string): string {
  const found = runtime
    .agents()
    .find(({ agent, aliases }) => [agent.name, ...aliases].includes(name))
  return found?.agent.name ?? name
}

function threadJson(row: ThreadRow, agentId: string | undefined) {
  const updatedAt = new Date(row.updatedAt).toISOString()
  return {
    id: row.clientId,
    name: row.title,
    agentId: agentId ?? row.agent,
    organizationId: row.tenant,
    createdById: row.owner,
    archived: row.archived,
    status: row.status,
    createdAt: new Date(row.createdAt).toISOString(),
    updatedAt,
    lastRunAt: updatedAt,
  }
}
