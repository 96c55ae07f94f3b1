import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'

const list = <T>(length: number, item: (i: number) => T): T[] =>
  Array.from({ length }, (_, i) => item(i))
const said = (i: number) => ({ id: `m${i}`, role: 'user', content: 'hi' })
const large = Object.fromEntries(list(12_600, (i) => [`k${i}`, i]))

const aguiBody = (part: object) => ({
  ...{ threadId: 'c', runId: 'r', messages: [said(0)], tools: [], context: [], state: {} },
  ...part,
})
const query = `mutation ($data: GenerateCopilotResponseInput!, $properties: JSONObject) {
  generateCopilotResponse(data: $data, properties: $properties) { threadId } }`
const gqlSaid = (i: number) => ({
  ...{ id: `m${i}`, createdAt: '2026-01-01T00:00:00.000Z' },
  textMessage: { content: 'hi', role: 'user' },
})
const gqlBody = (data: object, more: object = {}) => ({
  query,
  variables: {
    data: {
      ...{ metadata: {}, frontend: { actions: [] }, threadId: 'c', messages: [gqlSaid(0)] },
      ...data,
    },
    ...more,
  },
})
const action = { name: 'a', description: '', jsonSchema: '{}' }
const context = { description: 'd', value: 'v' }
const gqlState = { agentName: 'x', state: '{}' }

const dense = `{"a":[${'{},'.repeat(30_000)}{}]}`
/** Two calls whose arguments are within the limit of a body each, and beyond it together. */
const calls = list(2, (i) => ({
  ...{ id: `c${i}`, type: 'function', function: { name: 'f', arguments: dense } },
}))
const gqlCalls = list(2, (i) => ({
  ...{ id: `c${i}`, createdAt: '2026-01-01T00:00:00.000Z' },
  actionExecutionMessage: { name: 'f', arguments: dense, parentMessageId: 'a' },
}))

const run = '/copilotkit/agent/default/run'
const graphql = '/copilotkit/graphql'
const chat = '/copilotkit/chat'
const workflowSaid = list(501, () => ({ role: 'user', content: 'hi' }))

// biome-ignore format: a table
const cases: [field: string, path: string, body: object][] = [
  ['body.messages', run, aguiBody({ messages: list(5_001, said) })],
  ['body.messages', run, aguiBody({ messages: list(12_001, said) })],
  ['body.messages', run, aguiBody({ messages: list(501, said) })],
  ['body.messages', run, aguiBody({ messages: [{ ...said(0), content: 'x'.repeat(2_000_001) }] })],
  ['body.messages.0.content', run, aguiBody({ messages: [{ ...said(0), content: list(501, () => ({ type: 'text', text: 'x' })) }] })],
  ['body.messages.0.toolCalls', run, aguiBody({ messages: [{ id: 'a', role: 'assistant', toolCalls: list(501, (i) => ({ id: `c${i}`, type: 'function', function: { name: 'f', arguments: '{}' } })) }, said(1)] })],
  ['body.messages.a', run, aguiBody({ messages: [{ id: 'a', role: 'assistant', toolCalls: calls }, said(1)] })],
  ['body.messages.a', run, aguiBody({ messages: [{ id: 'a', role: 'assistant', toolCalls: [{ ...calls[0], function: { name: 'f', arguments: '['.repeat(65) } }] }, said(1)] })],
  ['data.messages.a', graphql, gqlBody({ messages: [...gqlCalls, gqlSaid(1)] })],
  ['body.tools', run, aguiBody({ tools: list(501, (i) => ({ name: `t${i}`, description: '', parameters: {} })) })],
  ['body.context', run, aguiBody({ context: list(501, () => context) })],
  ['body.resume', run, aguiBody({ resume: list(201, (i) => ({ interruptId: `i${i}`, status: 'resolved' })) })],
  ['body.forwardedProps', run, aguiBody({ forwardedProps: large })],
  ['body', run, aguiBody({ messages: list(62_000, said) })],
  ['body.messages', '/copilotkit', { method: 'agent/run', params: { agentId: 'default' }, body: aguiBody({ messages: list(501, said) }) }],
  ['data.messages', graphql, gqlBody({ messages: list(501, gqlSaid) })],
  ['data.frontend.actions', graphql, gqlBody({ frontend: { actions: list(501, () => action) } })],
  ['data.context', graphql, gqlBody({ context: list(501, () => context) })],
  ['data.agentStates', graphql, gqlBody({ agentStates: list(201, () => gqlState) })],
  ['agentStates.state', graphql, gqlBody({ agentSession: { agentName: 'default' }, agentStates: [{ agentName: 'default', state: JSON.stringify(large) }] })],
  ['data.metaEvents', graphql, gqlBody({ metaEvents: list(201, () => ({ name: 'LangGraphInterruptEvent', value: '' })) })],
  ['properties', graphql, gqlBody({}, { properties: large })],
  ['body', graphql, gqlBody({ messages: list(62_000, gqlSaid) })],
  ['data.frontend.actions', graphql, gqlBody({ frontend: { actions: list(60, () => ({ ...action, jsonSchema: JSON.stringify({ enum: list(2_000, () => 1) }) })) } })],
  ['data.k0', graphql, gqlBody(large)],
  ['data.metadata.requestType', graphql, gqlBody({ metadata: { requestType: 'x'.repeat(3_000_000) } })],
  ['data.messages.1.id', graphql, gqlBody({ messages: [gqlSaid(0), ...list(500, () => ({}))] })],
  ['body.method', '/copilotkit', { method: 'x'.repeat(8_001) }],
  ['params.httpMethod', '/copilotkit', { method: 'resource/request', params: { path: '/threads', httpMethod: { toString: 1, valueOf: 1 } } }],
  ['params.path', '/copilotkit', { method: 'resource/request', params: { path: { toString: 1 } } }],
  ['body.agent', '/chats/c/interactions', { user_message: 'hi', agent: 'x'.repeat(201) }],
  ['body', run, aguiBody(Object.fromEntries(list(15_001, (i) => [`k${i}`, i])))],
  ['body.messages', chat, { session_id: 'c', messages: workflowSaid }],
  ['body.messages', chat, { session_id: 'c', messages: list(5_001, () => ({ role: 'user', content: 'hi' })) }],
  ['body.context', chat, { session_id: 'c', messages: [{ role: 'user', content: 'hi' }], context: large }],
  ['body.user_message', '/chats/c/interactions', { user_message: 'x'.repeat(1_000_001) }],
  ['body', '/chats/c/interactions', { user_message: 'hi', agent: list(100_000, () => 1) }],
]

/** The field that the error names, whatever the wire writes it into. */
function fieldOf(told: Record<string, never>): string | undefined {
  const { errors, error, field } = told as never as {
    errors?: { extensions: { handrail: { field?: string } } }[]
    error?: { field?: string } | string
    field?: string
  }
  return errors?.[0]?.extensions.handrail.field ?? (error as { field?: string }).field ?? field
}

describe('a request beyond a limit gets an error that names the field, and writes nothing', () => {
  test.each(cases)('%s of a POST to %s', async (field, path, body) => {
    const model = scriptedModel([])
    const server = await serve({ model }, { env: { HANDRAIL_MAX_BODY: '16000000' } })
    const response = await server.request('POST', path, body)
    const told = (await response.json()) as Record<string, never>
    expect(fieldOf(told)).toBe(field)
    if (path !== graphql) expect(response.status).toBe(400)
    expect(await threads(server)).toEqual([])
    expect(model.requests).toEqual([])
  })
})

const threads = async (server: Served) =>
  (await (await server.request('GET', '/chats')).json()).chats

test('large bodies of one user wait or get 503 while another user is active, whose large body is read at once', async () => {
  const [ann, eve] = ['key-of-ann-0123456789', 'key-of-eve-0123456789']
  const env = { HANDRAIL_MAX_BODY: '16000000', HANDRAIL_API_KEYS: `${ann}=t/ann,${eve}=t/eve` }
  const server = await serve({ model: scriptedModel([]) }, { env })
  const body = JSON.stringify({ user_message: 'x'.repeat(14 * 1024 * 1024) })
  const send = (key: string) =>
    fetch(`${server.url}/chats/c/interactions`, {
      ...{ method: 'POST', body },
      headers: { 'content-type': 'application/json', 'x-api-key': key },
    })
  expect((await send(ann)).status).toBe(400) // too long, once it is read
  // Each takes 2.8 s of the user's time: the second waits, the third would wait for too long.
  const responses = await Promise.all(list(3, () => send(eve)))
  expect(responses.map(({ status }) => status).sort()).toEqual([400, 400, 503])
  const refused = responses.find(({ status }) => status === 503)!
  expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await send(ann)).status).toBe(400)
})

/** Starts a run with a body of `length` bytes, most of them spaces, in chunks of `size` bytes. Returns the response. */
async function postInChunks(url: string, length: number, size: number): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let response = ''
  socket.on('data', (data) => {
    response += data
  })
  socket.on('error', () => {}) // the server closes the connection while the client still sends
  const ended = once(socket, 'close')
  socket.write(
    'POST /chats/c/interactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
      'Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  const chunk = `${size.toString(16)}\r\n${' '.repeat(size)}\r\n`
  for (let sent = 0; sent < length && response === ''; sent += 1_000 * size)
    if (!socket.write(chunk.repeat(1_000))) await Promise.race([once(socket, 'drain'), ended])
  const body = JSON.stringify({ user_message: 'Hello' })
  socket.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
  await ended
  return response
}

test('a body of 100,000 chunks of one byte is refused', async () => {
  const server = await serve({ model: scriptedModel([]) })
  const response = await postInChunks(server.url, 100_000, 1)
  expect(response).toContain('HTTP/1.1 400')
  expect(response).toContain('body_too_complex')
  expect((await server.request('GET', '/healthz')).status).toBe(200)
})

test('a body of 100,000 chunks of eight bytes is read', async () => {
  const server = await serve({ model: scriptedModel([[text('Yes.')]]) })
  expect(await postInChunks(server.url, 800_000, 8)).toContain('HTTP/1.1 200')
})

test('unfinished bodies of one user beyond 64 MiB get 503, and those of another user are read', async () => {
  const [ann, eve] = ['key-of-ann-0123456789', 'key-of-eve-0123456789']
  const server = await serve(
    { model: scriptedModel(() => [text('Yes.')]) },
    { env: { HANDRAIL_API_KEYS: `${ann}=t/ann,${eve}=t/eve` } },
  )
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  /** Sends 4,000,000 bytes of a body that does not end. */
  const unfinished = () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(4_000_000).fill(32))
      },
    })
    const headers = { 'content-type': 'application/json', 'x-api-key': eve }
    const { signal } = stop
    const init = { method: 'POST', body, headers, signal, duplex: 'half' }
    return fetch(`${server.url}/chats/c/interactions`, init as RequestInit)
  }
  const responses = list(17, () => unfinished().catch(() => undefined))
  const first = await Promise.race(responses)
  expect(first?.status).toBe(503)
  expect(await first?.json()).toMatchObject({ error: { code: 'overloaded' } })
  const other = await fetch(`${server.url}/chats/c/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': ann },
    body: JSON.stringify({ user_message: 'x'.repeat(100_000) }),
  })
  expect(other.status).toBe(200)
  await other.text()
})

test('a client may send up to 5,000 messages that the thread has', async () => {
  const model = scriptedModel(() => [text('Yes.')])
  const server = await serve({ model })
  const known = list(400, said)
  await agui(server.url, { messages: known })
  const padding = list(4_599, (i) => ({ id: `a${i}`, role: 'assistant', content: 'Yes.' }))
  const events = await agui(server.url, {
    ...{ runId: 'r2', messages: [...known, ...padding, { ...said(0), id: 'new' }] },
  })
  expect(events.at(-1).type).toBe('RUN_FINISHED')
  expect(model.requests).toHaveLength(2)
})

test('context that the system message contains is not sent to the model twice', async () => {
  const model = scriptedModel([[text('Yes.')]])
  const server = await serve({ model })
  const system = { ...gqlSaid(1), textMessage: { content: 'Page: the cart', role: 'system' } }
  await generate(server.url, 'm0', 'hi', {
    messages: [system, gqlSaid(0)],
    context: [
      { description: 'cart', value: 'the cart' },
      { description: 'more', value: 'a wish' },
    ],
  })
  const told = JSON.stringify(model.requests[0]!.system)
  expect(told.match(/the cart/g)).toHaveLength(1)
  expect(told).toContain('more: a wish')
})

const variants = list(4_000, (i) =>
  [...'defaultvalue'].map((letter, at) => ((i >> at) & 1 ? letter.toUpperCase() : letter)).join(''),
)
const hostile: [string, Record<string, unknown>][] = [
  ['9,900 secrets', Object.fromEntries(list(9_900, (i) => [`token${i}`, `abcdef${i}`]))],
  ['9,900 secrets in a list', { list: list(9_900, (i) => `Bearer abcdef${i}`) }],
  [
    '4,000 spellings of defaultValue',
    Object.fromEntries([
      ...list(5_800, (i) => [`field${i}`, 1]),
      ...variants.map((name) => [name, 1]),
    ]),
  ],
]

// src/core/secrets.test.ts counts the work on such properties.
describe('properties with thousands of secrets or value names reach the agent', () => {
  test.each(hostile)('%s', async (_, properties) => {
    const seen: unknown[] = []
    const keeper: Agent = {
      name: 'keeper',
      // biome-ignore lint/correctness/useYield: it has nothing to say
      async *run(ctx) {
        seen.push(ctx.options.forwarded)
      },
    }
    const server = await serve({ model: scriptedModel([]), agents: [keeper] })
    const send = async (path: string, body: unknown) =>
      (await server.request('POST', path, body)).text()
    await send('/copilotkit/agent/keeper/run', aguiBody({ forwardedProps: properties }))
    await send(
      graphql,
      gqlBody({ agentSession: { agentName: 'keeper' }, threadId: 'g' }, { properties }),
    )
    expect(seen).toEqual([expect.objectContaining(properties), expect.objectContaining(properties)])
  })
})
