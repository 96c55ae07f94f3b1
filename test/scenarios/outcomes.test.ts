import { describe, expect, test } from 'vitest'
import { RuntimeError } from '../../src/core/errors.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { find, tools } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

/** Milliseconds after which the server no longer waits for a write. */
const writeLimit = 5_001

/** A server that can be made to wait for its store. */
async function slowServer(settings: Parameters<typeof serve>[0] = {}) {
  const clock = warpClock()
  const model = scriptedModel(() => [text('Hello.')])
  const env = { HANDRAIL_LEASE_MS: '3600000' }
  const server = await serve({ model, ...settings }, { clock, env })
  const { store } = server.server
  const append = store.append.bind(store)
  /** Holds the next write with such an entry; `gate.open()` lets it go on to the store. */
  const hold = (kind: string) => {
    const held = gate()
    let done = () => {}
    const written = new Promise<void>((resolve) => {
      done = resolve
    })
    let armed = true
    store.append = async (threadId, entries, guard) => {
      if (!armed || !entries.some((entry) => entry.kind === kind))
        return await append(threadId, entries, guard)
      armed = false
      await held.pass()
      return await append(threadId, entries, guard).finally(done)
    }
    return { ...held, written }
  }
  /** The answer to a request whose write takes too long. */
  const late = async (kind: string, send: () => Promise<Response>) => {
    const held = hold(kind)
    const sent = send()
    await held.reached
    clock.advance(writeLimit)
    return { response: await sent, ...held }
  }
  return { server, clock, late }
}

const runsOf = async (server: Served, chat = 'c') =>
  (await server.journal(chat)).filter(({ kind }) => kind === 'run.queued')
const post = (server: Served, path: string, body: object, headers: Record<string, string> = {}) =>
  server.request('POST', path, body, headers)
const say = (server: Served, headers: Record<string, string> = {}) =>
  post(server, '/chats/c/interactions', { user_message: 'hi' }, headers)
const orderly = { messages: [], tools: [], context: [], state: {}, forwardedProps: {} }
const agui = (server: Served, id: string) =>
  post(server, '/copilotkit/agent/default/run', {
    ...{ ...orderly, threadId: 'c', runId: 'r' },
    messages: [{ id, role: 'user', content: 'hi' }],
  })

describe('a start whose write takes too long', () => {
  test.each<[string, (server: Served) => Promise<Response>]>([
    ['chats', (server) => say(server)],
    ['workflow', (server) => post(server, '/copilotkit/chat', workflowBody)],
    ['AG-UI', (server) => agui(server, 'm1')],
  ])('has an unknown outcome and the ids to check it on the %s wire', async (_, send) => {
    const { server, late } = await slowServer()
    const { response, open, written } = await late('run.queued', () => send(server))
    expect(response.status).toBe(504)
    expect(response.headers.get('retry-after')).toBeNull()
    // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON
    const body = (await response.json()) as any
    const told = typeof body.error === 'object' ? body.error : body
    expect(told.code).toBe('outcome_unknown')
    expect(told.chat_id ?? told.thread_id).toBe('c')
    const path = `/chats/c/interactions/${told.interaction_id ?? told.run_id}`
    // While the write is under way, nobody says that there is no such run.
    const before = await server.request('GET', path)
    expect(before.status).toBe(504)
    open()
    await written
    const after = await server.request('GET', path)
    expect(after.status).toBe(200)
  })

  test('has an unknown outcome and the ids to check it on the GraphQL wire', async () => {
    const { server, late } = await slowServer()
    let error: Error | undefined
    const { open, written } = await late('run.queued', async () => {
      await generate(server.url, 'm1', 'hi').catch((thrown: Error) => {
        error = thrown
      })
      return new Response()
    })
    const [{ extensions }] = JSON.parse(error!.message)
    expect(extensions).toMatchObject({
      statusCode: 504,
      handrail: { code: 'outcome_unknown', retryable: false, thread_id: 'c' },
    })
    open()
    await written
    const [run] = await runsOf(server)
    expect(extensions.handrail.run_id).toBe(run!.runId)
  })

  test.each<[string, (server: Served) => Promise<unknown>]>([
    ['chats, by its Idempotency-Key', (server) => say(server, { 'idempotency-key': 'k' })],
    [
      'workflow, by its Idempotency-Key',
      (server) => post(server, '/copilotkit/chat', workflowBody, { 'idempotency-key': 'k' }),
    ],
    ['AG-UI, by its message id', (server) => agui(server, 'm1')],
    [
      'GraphQL, by its message id',
      (server) => generate(server.url, 'm1', 'hi').catch((error) => error),
    ],
  ])('starts one run when the request is sent again on %s', async (_, send) => {
    const { server, late } = await slowServer()
    let first: unknown
    const { open } = await late('run.queued', async () => {
      first = await send(server)
      return new Response()
    })
    expect(JSON.stringify(await bodyOf(first))).toContain('outcome_unknown')
    const again = send(server) // while the first write is still under way
    open()
    await bodyOf(await again)
    await bodyOf(await send(server))
    expect(await runsOf(server)).toHaveLength(1)
  })

  test('gives the same run id to the same key again, also while nothing is written', async () => {
    const { server, late } = await slowServer()
    const send = () => say(server, { 'idempotency-key': 'k' })
    const first = await late('run.queued', send)
    const second = await late('run.queued', send)
    const ids = await Promise.all(
      [first, second].map(async ({ response }) => (await response.json()).error.interaction_id),
    )
    expect(ids[0]).toBe(ids[1])
    second.open()
    await second.written
    first.open()
    await first.written
    const runs = await runsOf(server)
    expect(runs.map(({ runId }) => runId)).toEqual([ids[0]])
  })

  test('POST /chats sent again with its key while the first write is under way creates one chat', async () => {
    const { server, late } = await slowServer()
    const make = () => post(server, '/chats', { id: 'c' }, { 'idempotency-key': 'k' })
    const first = await late('thread.created', make)
    expect(first.response.status).toBe(504)
    const again = make()
    first.open()
    await first.written
    expect([(await again).status, (await make()).status]).toEqual([201, 201])
    const kinds = (await server.journal('c')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'thread.created')).toHaveLength(1)
  })

  test('on a chat that exists is found by its run id', async () => {
    const { server, late } = await slowServer()
    await (await server.start('c', 'first')).rest()
    const { response, open, written } = await late('run.queued', () => say(server))
    const { error } = await response.json()
    const path = `/chats/c/interactions/${error.interaction_id}`
    expect((await server.request('GET', path)).status).toBe(504)
    expect((await server.request('GET', '/chats/c/interactions/run_none')).status).toBe(404)
    open()
    await written
    expect((await server.request('GET', path)).status).toBe(200)
  })
})

test('a write that the store refuses is a 503 with Retry-After, and nothing is written', async () => {
  const { server } = await slowServer()
  const { store } = server.server
  const { append } = store
  store.append = async () => {
    throw new RuntimeError('store_unavailable', undefined, { retryAfter: 1 })
  }
  const response = await say(server)
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('1')
  expect((await response.json()).error).toMatchObject({ code: 'store_unavailable' })
  store.append = append
  expect((await server.request('GET', '/chats/c')).status).toBe(404)
})

describe('an unknown outcome', () => {
  /** A chat whose run waits for an approval. */
  async function waiting() {
    const box = tools()
    const model = scriptedModel((request) =>
      request.messages.some(({ role }) => role === 'tool')
        ? [text('Sent.')]
        : [call('1', 'send', { to: 'ann', amount: 5 })],
    )
    const slow = await slowServer({ model, tools: box.all, builtIns: false })
    const { server } = slow
    const stream = await server.start('c', 'send it')
    const asked = find(await stream.until('approval_required'), 'approval_required')
    stream.leave()
    await server.recorded('c', 'run.waiting')
    const run = stream.response.headers.get('x-interaction-id')!
    return { ...slow, box, run, approval: asked.approval_id as string }
  }
  type Waiting = Awaited<ReturnType<typeof waiting>>

  const decision = { decision: 'approve' }
  test.each<[string, string, (at: Waiting) => Promise<Response>]>([
    [
      'a decision on the chats wire',
      'ask.answered',
      ({ server, run, approval }) =>
        server.approve('c', run, { approval_id: approval, approved: true }),
    ],
    [
      'a decision on the approvals wire',
      'ask.answered',
      ({ server, approval }) => post(server, `/approvals/${approval}`, decision),
    ],
    [
      'a decision on the workflow wire',
      'ask.answered',
      ({ server, approval }) =>
        post(server, `/copilotkit/approval/${approval}`, { action: 'approve', user_id: 'u' }),
    ],
    [
      'a decision on the AG-UI wire',
      'ask.answered',
      ({ server, approval }) =>
        post(server, '/copilotkit/agent/default/run', {
          ...{ ...orderly, threadId: 'c', runId: 'r2' },
          resume: [{ interruptId: approval, status: 'resolved', payload: { approved: true } }],
        }),
    ],
    [
      'an archived thread',
      'thread.archived',
      ({ server }) => post(server, '/copilotkit/threads/c/archive', {}),
    ],
    ['a cancel', 'run.cancelling', ({ server, run }) => server.cancel('c', run)],
    [
      'a budget',
      'governor.set',
      ({ server }) => server.request('PUT', '/threads/c/governor', { actionLimit: 7 }),
    ],
    [
      'a new title',
      'thread.renamed',
      ({ server }) => server.request('PATCH', '/copilotkit/threads/c', { name: 'New' }),
    ],
  ])('of %s names the chat, and invites nobody to try again', async (_, kind, send) => {
    const at = await waiting()
    const { response, open, written } = await at.late(kind, () => send(at))
    expect(response.status).toBe(504)
    expect(response.headers.get('retry-after')).toBeNull()
    expect(await response.text()).toMatch(/"outcome_unknown".*"(thread|chat)_id":"c"/)
    open()
    await written
  })

  test('of a retry names the run, and the same key retries it once', async () => {
    let calls = 0
    const model = scriptedModel(() => {
      if (++calls === 1) throw new RuntimeError('model_request', 'told to fail')
      return [text('Hello.')]
    })
    const { server, late } = await slowServer({ model })
    const stream = await server.start('c', 'go')
    await stream.rest()
    const run = stream.response.headers.get('x-interaction-id')!
    const path = `/chats/c/interactions/${run}/retry`
    const send = () => server.request('POST', path, undefined, { 'idempotency-key': 'k' })
    const { response, open, written } = await late('run.queued', send)
    expect(response.status).toBe(504)
    expect((await response.json()).error).toMatchObject({ chat_id: 'c', interaction_id: run })
    const again = send()
    open()
    await written.catch(() => {})
    expect((await again).status).toBe(200)
    await (await send()).text()
    expect(
      (await runsOf(server)).filter((one) => one.kind === 'run.queued' && one.body.why === 'retry'),
    ).toHaveLength(1)
    expect(calls).toBe(2)
  })

  test('of an approval: the call runs once, whoever decides again (I2, I3)', async () => {
    const at = await waiting()
    const { server, run, approval, box } = at
    const body = { approval_id: approval, approved: true }
    const { response, open, written } = await at.late('ask.answered', () =>
      server.approve('c', run, body, { 'idempotency-key': 'k' }),
    )
    expect((await response.json()).error).toMatchObject({ interaction_id: run, retryable: false })
    const again = server.approve('c', run, body, { 'idempotency-key': 'k' })
    open()
    await written
    expect((await again).status).toBe(200)
    const other = await server.approve('c', run, { approval_id: approval, approved: false })
    expect(other.status).toBe(400)
    await server.recorded('c', 'run.completed')
    expect(box.sent).toHaveLength(1)
  })
})

const workflowBody = { session_id: 'c', messages: [{ role: 'user', content: 'hi' }] }
const bodyOf = async (given: unknown): Promise<unknown> => {
  if (given !== null && typeof given === 'object' && 'text' in given)
    return await (given as Response).text()
  return given instanceof Error ? given.message : given
}
