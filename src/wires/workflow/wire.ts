import { RuntimeError, toRuntimeError } from '../../core/errors.ts'
import { type Cursor, cursorAt, parseCursor } from '../../core/follow.ts'
import { type Message, userText } from '../../core/messages.ts'
import type { Caller, Runtime, StartRequest } from '../../core/runtime.ts'
import type { ThreadState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import type { Log } from '../../core/worker.ts'
import { decided, decisionOn, idByKey, keyOf } from '../approve.ts'
import { headerId, headerOptions, json, type Route, route } from '../http.ts'
import { refuseManyNew } from '../limits.ts'
import { resumedBy } from '../resume.ts'
import { frames, type Heartbeats, sse } from '../sse.ts'
import { workflowView } from './projection.ts'
import { sessionOf } from './session.ts'
import * as shapes from './shapes.ts'

export interface WorkflowWireOptions {
  runtime: Runtime
  heartbeats: Heartbeats
  basePaths: readonly string[]
  version: string
  /** Milliseconds for which a session is kept at hand. */
  sessionTtl: number
  log: Log
}

const streamHeaders = {
  'Idempotency-Key': 'The same key again streams the same run',
  'Last-Event-ID': 'Continues the stream after this frame, and starts nothing',
}

/** The orchestrator's API: runs as its events, decisions, and how sessions stand. */
export function workflowWire(options: WorkflowWireOptions): Route[] {
  const { runtime, heartbeats, basePaths, version, sessionTtl, log } = options

  const stream = (thread: Thread, runId: string, from: Cursor): Response => {
    const { agent: name } = thread.state.runs.get(runId)!
    const orchestrates = runtime.agent(name)?.orchestrates === true
    const view = workflowView(thread, runId, { orchestrates, now: runtime.clock.now })
    const headers = { 'x-session-id': headerId(thread.state.clientId), 'x-run-id': runId }
    return sse((signal) => frames(thread, from, view, signal), heartbeats, {
      resumes: true,
      headers,
    })
  }

  async function begin(
    { caller, request }: { caller: Caller; request: Request },
    sessionId: string | undefined,
    start: StartRequest,
    forwarded: Record<string, unknown>,
  ): Promise<Response> {
    const resumed = await resumedBy(request, runtime, caller, sessionId)
    if (resumed) return stream(resumed.thread, resumed.run.runId, resumed.cursor)
    const session_id =
      sessionId ?? idByKey('session', caller, start.key) ?? runtime.newId('session')
    const { options: brought } = headerOptions(request)
    const more = { ...start, options: { ...brought, forwarded: { ...forwarded, session_id } } }
    const { thread, runId } = await runtime.start(caller, session_id, more)
    const { firstSeq } = thread.state.runs.get(runId)!
    return stream(thread, runId, cursorAt(firstSeq - 1))
  }

  const follow = (path: string) =>
    route({
      method: 'get',
      path,
      summary: 'Join a run of a session: its events from the start, or from a cursor',
      query: shapes.followQuery,
      headers: { 'Last-Event-ID': 'The id of the last frame that arrived' },
      responses: shapes.streamResponses,
      async handle({ query, caller, request }) {
        const thread = await runtime.open(caller, query.session_id)
        const { state } = thread
        const runId = query.run_id ?? state.active ?? state.head ?? ''
        const run = thread.run(runId)
        const last = query.after ?? request.headers.get('last-event-id')
        const field = query.after === undefined ? 'header.last-event-id' : 'query.after'
        const cursor = last ? parseCursor(last, field) : cursorAt(run.firstSeq - 1)
        if (cursor.seq > state.seq) await thread.sync()
        if (cursor.seq > state.seq) throw new RuntimeError('invalid_cursor', undefined, { field })
        return stream(thread, runId, cursor)
      },
    })

  const chat = (base: string) =>
    route({
      method: 'post',
      path: `${base}/chat`,
      summary: 'Say something to an agent and stream what it does, as events of the workflow API',
      body: shapes.chatBody,
      headers: streamHeaders,
      responses: shapes.streamResponses,
      async handle({ body, caller, request }) {
        const { messages, context = {}, session_id, agent } = body
        const said = messages.map((one): Message => {
          const id = one.id ?? runtime.newId('msg')
          return { id, role: one.role, parts: [{ type: 'text', text: one.content }] }
        })
        const known = session_id !== undefined && (await runtime.find(caller, session_id))
        if (!known || known.state.runs.size === 0) refuseManyNew(said, 'body.messages')
        const start = {
          messages: said.slice(-1),
          imported: said.slice(0, -1).map((one) => ({ ...one, imported: true })),
          ...keyOf(request, ['chat', body]),
          ...(agent !== undefined && { agent }),
        }
        return await begin({ caller, request }, session_id, start, context)
      },
    })

  const approval = (base: string) =>
    route({
      method: 'post',
      path: `${base}/approval/{approval_id}`,
      summary: 'Approve or reject',
      params: shapes.approvalParams,
      body: shapes.approvalBody,
      headers: { 'Idempotency-Key': 'The same key again gets the first response again' },
      responses: shapes.approvalResponses,
      async handle({ params: { approval_id }, body, caller, request }) {
        const { action, user_id, reason, answer } = body
        try {
          const { record: asked } = await runtime.inbox.read(caller, approval_id)
          const approved = action === 'approve'
          const why = reason ?? (approved ? undefined : 'No reason provided')
          if (answer !== undefined && !(approved && asked.ask.kind === 'input')) throw notAnswered
          const answered = answer === undefined ? { approved } : { answer }
          const said = { ...answered, ...(why !== undefined && { reason: why }) }
          const key = keyOf(request, ['decide', approval_id, body])
          const decision = { ...decisionOn(asked.ask, said), ...key }
          const { record, mine } = await runtime.inbox.decide(caller, decision)
          decided(record, mine)
          log.info({ approval_id, by: caller.user, user_id, action }, 'approval decided')
          return json({ success: true })
        } catch (error) {
          runtime.answers.refused(caller, { ask: approval_id }, error)
          const { code, message, status, field, data } = toRuntimeError(error)
          if (status >= 500) throw error
          const more = { ...(field !== undefined && { field }), ...data }
          return json({ success: false, error: { code, message, ...more } }, status)
        }
      },
    })

  const status = (base: string) =>
    route({
      method: 'get',
      path: `${base}/status`,
      summary: 'The agents, and how a session stands',
      query: shapes.statusQuery,
      responses: shapes.statusResponses,
      async handle({ query, caller }) {
        const { session_id } = query
        const make = (state: ThreadState) => sessionOf(state, sessionTtl / 1_000)
        if (session_id !== undefined) return json(await runtime.view(caller, session_id, make))
        return json({ status: 'ok', version, ...(await overview(runtime, caller)) })
      },
    })

  const orchestrate = route({
    method: 'post',
    path: '/agent-orchestrator',
    summary: 'Analyse an account and stream what the agents do',
    body: shapes.orchestrateBody,
    headers: streamHeaders,
    responses: shapes.streamResponses,
    async handle({ body, caller, request }) {
      const { account_id, session_id, user_message } = body
      const messages = [userText(runtime.newId('msg'), user_message)]
      const key = keyOf(request, ['orchestrate', body])
      const start = { messages, agent: 'orchestrator', ...key }
      return await begin({ caller, request }, session_id, start, { account_id })
    },
  })

  const routes = [
    orchestrate,
    follow('/agent-orchestrator'),
    ...basePaths.flatMap((base) => [
      chat(base),
      follow(`${base}/chat`),
      approval(base),
      status(base),
    ]),
  ]
  return routes.map((one) => ({ ...one, wire: 'workflow' as const }))
}

const notAnswered = new RuntimeError(
  'invalid_request',
  'body.answer: only questions of kind input take one, when they are approved.',
  { field: 'body.answer' },
)

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
  const agents = runtime.agents().map(({ agent, tools, description, version }) => ({
    name: agent.name,
    description: description ?? '',
    version,
    tools: tools.map(({ name }) => name),
    status: busy.has(agent.name) ? 'running' : 'idle',
  }))
  return { agents, sessions: { active } }
}
