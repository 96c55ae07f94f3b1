import type { z } from 'zod'
import { RuntimeError } from '../../core/errors.ts'
import { type Cursor, cursorAt, parseCursor } from '../../core/follow.ts'
import { userText } from '../../core/messages.ts'
import type { Caller, Runtime, StartRequest } from '../../core/runtime.ts'
import type { Run } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import type { UsageLine } from '../../core/usage.ts'
import { decided, decisionOn, idByKey, keyOf } from '../approve.ts'
import { errorResponse, headerOptions, json, namingCursor, type Route, route } from '../http.ts'
import { resumedBy, unknownPlace } from '../resume.ts'
import { frames, type Heartbeats, sse } from '../sse.ts'
import {
  chatJson,
  chatSummary,
  currentRuns,
  interactionJson,
  statusOf,
  usageJson,
} from './interaction.ts'
import { interactionView } from './projection.ts'
import * as shapes from './shapes.ts'

const streamHeaders = {
  'Idempotency-Key': 'The same key again streams the same interaction',
  'Last-Event-ID': 'Continues the stream after this frame, and starts nothing',
}

/** The chats API: REST for commands and reads, event streams for what happens. */
export function chatsWire(runtime: Runtime, heartbeats: Heartbeats): Route[] {
  const stream = (
    thread: Thread,
    runId: string,
    from: Cursor,
    options?: { left?: () => void; headers?: Record<string, string> },
  ) =>
    sse((signal) => frames(thread, from, interactionView(thread, runId), signal), heartbeats, {
      resumes: true,
      ...options,
    })

  /** Where an interaction's stream begins, unless the reader says how far it got. */
  const cursorFor = async (
    request: Request,
    after: string | undefined,
    run: Run,
    thread: Thread,
  ): Promise<Cursor> => {
    const last = after ?? request.headers.get('last-event-id') ?? ''
    if (last === '') return cursorAt(run.firstSeq - 1)
    const field = after === undefined ? 'header.last-event-id' : 'query.after'
    const cursor = parseCursor(last, field)
    if (cursor.seq > thread.state.seq) await thread.sync()
    if (cursor.seq <= thread.state.seq) return cursor
    throw new RuntimeError('invalid_cursor', undefined, { field })
  }

  async function begin(
    caller: Caller,
    chatId: string,
    query: z.infer<typeof shapes.startQuery>,
    request: Request,
    start: StartRequest,
  ): Promise<Response> {
    const resumed = await resumedBy(request, runtime, caller, chatId)
    if (resumed) return reply(caller, chatId, query, resumed.thread, resumed.run, resumed.cursor)
    const whenBusy = query.when_busy
    const more: StartRequest = { ...start, ...headerOptions(request) }
    if (query.unattended === 'true') more.options = { ...more.options, unattended: true }
    const { thread, runId } = await runtime.start(caller, chatId, {
      ...more,
      ...(whenBusy && { whenBusy }),
    })
    const run = thread.state.runs.get(runId)!
    return reply(caller, chatId, query, thread, run, cursorAt(run.firstSeq - 1))
  }

  function reply(
    caller: Caller,
    chatId: string,
    query: z.infer<typeof shapes.startQuery>,
    thread: Thread,
    { runId }: Run,
    from: Cursor,
  ): Response {
    const left =
      query.on_disconnect === 'cancel'
        ? () => void runtime.cancel(caller, chatId, runId).catch(() => {})
        : undefined
    const headers = { 'x-interaction-id': runId }
    return stream(thread, runId, from, { ...(left && { left }), headers })
  }

  async function find(caller: Caller, chatId: string, interactionId: string) {
    const thread = await runtime.open(caller, chatId)
    return { thread, run: thread.run(interactionId), state: thread.state }
  }

  const routes: Route[] = [
    route({
      method: 'post',
      path: '/chats/{chat_id}/interactions',
      summary: 'Start an interaction and stream what the agent does',
      params: shapes.chatParams,
      query: shapes.startQuery,
      body: shapes.startBody,
      headers: streamHeaders,
      responses: shapes.streamResponses,
      async handle({ params, query, body, caller, request }) {
        const key = keyOf(request, ['start', params.chat_id, body])
        const message = userText(runtime.newId('msg'), body.user_message)
        const agent = body.agent === undefined ? {} : { agent: body.agent }
        return await begin(caller, params.chat_id, query, request, {
          messages: [message],
          ...key,
          ...agent,
        })
      },
    }),
    route({
      method: 'post',
      path: '/chats/{chat_id}/interactions/{interaction_id}/edit',
      summary: 'Edit a user message and run again from there, on a new branch',
      params: shapes.interactionParams,
      query: shapes.startQuery,
      body: shapes.editBody,
      headers: streamHeaders,
      responses: shapes.streamResponses,
      async handle({ params, query, body, caller, request }) {
        const { chat_id, interaction_id: replaces } = params
        const { run } = await find(caller, chat_id, replaces)
        const key = keyOf(request, ['edit', params, body])
        const message = userText(runtime.newId('msg'), body.new_user_message)
        const { agent } = run
        return await begin(caller, chat_id, query, request, {
          messages: [message],
          ...key,
          agent,
          replaces,
        })
      },
    }),
    route({
      method: 'post',
      path: '/chats/{chat_id}/interactions/{interaction_id}/approve',
      summary: 'Decide what the agent asked: approve, reject, answer, or stop',
      params: shapes.interactionParams,
      body: shapes.approveBody,
      headers: { 'Idempotency-Key': 'The same key again gets the first response again' },
      responses: shapes.approveResponses,
      async handle({ params, body, caller, request }) {
        try {
          const { state, run } = await find(caller, params.chat_id, params.interaction_id)
          const { approval_id, ...said } = body
          if (!run.askIds.includes(approval_id)) throw new RuntimeError('ask_not_found')
          const { key } = keyOf(request, ['approve', params, body])
          const decisions = [decisionOn(state.asks.get(approval_id)!.ask, said)]
          const answering = { decisions, ...headerOptions(request), ...(key && { key }) }
          const { settled } = await runtime.answer(caller, params.chat_id, answering)
          const again = key !== undefined && state.keys.get(key.key)?.ref === `ask:${approval_id}`
          return json(decided(state.asks.get(approval_id)!, settled.has(approval_id) || again))
        } catch (error) {
          const meant = { thread: params.chat_id, ask: body.approval_id }
          runtime.answers.refused(caller, meant, error)
          throw error
        }
      },
    }),
    route({
      method: 'post',
      path: '/chats/{chat_id}/interactions/{interaction_id}/cancel',
      summary: 'Cancel an interaction',
      params: shapes.interactionParams,
      body: shapes.emptyBody,
      bodyOptional: true,
      responses: shapes.cancelResponses,
      async handle({ params, caller }) {
        const { chat_id, interaction_id } = params
        await find(caller, chat_id, interaction_id)
        await runtime.cancel(caller, chat_id, interaction_id)
        const message = 'Interaction will stop at next checkpoint'
        return json({ status: 'cancelling', interaction_id, message })
      },
    }),
    route({
      method: 'post',
      path: '/chats/{chat_id}/interactions/{interaction_id}/retry',
      summary: 'Run a failed interaction again from where it failed',
      params: shapes.interactionParams,
      body: shapes.emptyBody,
      bodyOptional: true,
      headers: streamHeaders,
      responses: shapes.streamResponses,
      async handle({ params, caller, request }) {
        const { chat_id, interaction_id } = params
        const { key } = keyOf(request, ['retry', params])
        const { state, run } = await find(caller, chat_id, interaction_id)
        const resumed = await resumedBy(request, runtime, caller, chat_id)
        if (resumed && resumed.run.runId !== interaction_id) throw unknownPlace()
        if (resumed) return stream(resumed.thread, interaction_id, resumed.cursor)
        const again = key !== undefined && state.keys.has(key.key)
        const from = again ? run.retriedSeq - 1 : state.seq
        const retrying = { ...headerOptions(request), ...(key && { key }) }
        const thread = await runtime.retry(caller, chat_id, interaction_id, retrying)
        return stream(thread, interaction_id, cursorAt(from))
      },
    }),
    route({
      method: 'get',
      path: '/chats/{chat_id}/interactions/{interaction_id}/events',
      summary: 'Join an interaction: its stream from the start, or from a cursor',
      params: shapes.interactionParams,
      query: shapes.eventsQuery,
      headers: { 'Last-Event-ID': 'The id of the last frame that arrived' },
      responses: shapes.eventsResponses,
      async handle({ params, query, caller, request }) {
        const { thread, run } = await find(caller, params.chat_id, params.interaction_id)
        return stream(thread, run.runId, await cursorFor(request, query.after, run, thread))
      },
    }),
    route({
      method: 'get',
      path: '/chats/{chat_id}/interactions/{interaction_id}',
      summary: 'One interaction as JSON, or its stream for Accept: text/event-stream',
      params: shapes.interactionParams,
      query: shapes.eventsQuery,
      responses: shapes.interactionResponses,
      async handle({ params, query, caller, request }) {
        const { thread, run, state } = await find(caller, params.chat_id, params.interaction_id)
        if (request.headers.get('accept')?.includes('text/event-stream')) {
          return stream(thread, run.runId, await cursorFor(request, query.after, run, thread))
        }
        return json(interactionJson(state, run, currentRuns(state).includes(run)))
      },
    }),
    route({
      method: 'get',
      path: '/chats/{chat_id}',
      summary: 'A chat with its interactions',
      params: shapes.chatParams,
      query: shapes.chatQuery,
      responses: shapes.chatResponses,
      async handle({ params, query, caller }) {
        const { state } = await runtime.open(caller, params.chat_id)
        const { limit, before, include } = query
        const page = { ...(limit && { limit }), ...(before !== undefined && { before }) }
        return json(await chatJson(state, { ...page, all: include === 'superseded' }))
      },
    }),
    route({
      method: 'delete',
      path: '/chats/{chat_id}',
      summary: 'Delete a chat; what runs in it is cancelled first',
      params: shapes.chatParams,
      responses: { 204: { description: 'It is gone' }, ...shapes.problems },
      async handle({ params, caller }) {
        await runtime.erase(caller, params.chat_id)
        return new Response(null, { status: 204 })
      },
    }),
    route({
      method: 'get',
      path: '/chats',
      summary: 'The chats of the caller, newest first',
      query: shapes.listQuery,
      responses: shapes.listResponses,
      async handle({ query, caller }) {
        const { limit = 50, cursor } = query
        const page = await runtime
          .list(caller, { limit, ...(cursor !== undefined && { cursor }) })
          .catch(namingCursor)
        return json({ chats: page.rows.map(chatSummary), next_cursor: page.next ?? null })
      },
    }),
    route({
      method: 'get',
      path: '/usage',
      summary: 'What the chats of the caller used, newest first, in pages',
      query: shapes.listQuery,
      responses: shapes.usageResponses,
      async handle({ query, caller }) {
        const { limit = 50, cursor } = query
        const page = await runtime
          .list(caller, { limit, ...(cursor !== undefined && { cursor }) })
          .catch(namingCursor)
        const chats: { id: string; lines: UsageLine[] }[] = []
        for (const { clientId: id } of page.rows) {
          const thread = await runtime.find(caller, id) // it may have gone meanwhile
          const runs = [...(thread?.state.runs.values() ?? [])]
          chats.push({ id, lines: runs.flatMap(({ usage }) => usage) })
        }
        return json({
          ...usageJson(chats.flatMap(({ lines }) => lines)),
          chats: chats.map(({ id, lines }) => ({ id, ...usageJson(lines) })),
          next_cursor: page.next ?? null,
        })
      },
    }),
    route({
      method: 'post',
      path: '/chats',
      summary: 'Create an empty chat',
      body: shapes.createBody,
      bodyOptional: true,
      headers: { 'Idempotency-Key': 'The same key again gets the same chat' },
      responses: shapes.createResponses,
      async handle({ body, caller, request }) {
        const { key } = keyOf(request, ['create', body])
        const byKey = body.id === undefined ? idByKey('chat', caller, key) : undefined
        const { id = byKey ?? runtime.newId('chat'), ...rest } = body
        const creating = { ...rest, ...(key && { key }) }
        const { thread, fresh, again } = await runtime.create(caller, id, creating)
        // A chat that an older server created with a key has no entry for the key.
        if (!(fresh || again || byKey)) throw new RuntimeError('thread_exists')
        return json(await chatJson(thread.state, { all: false }), 201)
      },
    }),
  ]
  return routes.map((one) => ({ ...one, fail }))
}

/** Core names threads and runs; this wire's clients know them as chats and interactions. */
function fail(error: RuntimeError): Response {
  const { code, message, field, retryAfter, data } = error
  const { thread_id, run_id, asks, status, ...rest } = data ?? {}
  const named = {
    ...rest,
    ...(thread_id !== undefined && { chat_id: thread_id }),
    ...(run_id !== undefined && { interaction_id: run_id }),
    ...(status !== undefined && { status: statusOf({ status } as Run) }),
    ...(asks !== undefined && { approval_ids: asks }),
  }
  const more = { ...(field !== undefined && { field }), ...(retryAfter && { retryAfter }) }
  return errorResponse(new RuntimeError(code, message, { ...more, data: named }))
}
