import { describe, expect, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { type RawRequest, raw } from '../support/raw.ts'
import { type Served, type ServeOptions, serve } from '../support/serve.ts'
import { find, tools } from '../support/tools.ts'

const ann = 'ann-key-0123456789abcdef'
const json = { 'content-type': 'application/json' }

/** A server with the run `hold` on the thread `t`, which stays active until the test ends. */
async function withActiveRun(options: ServeOptions = {}, headers: Record<string, string> = {}) {
  const stands = gate()
  const model = scriptedModel(async function* (_request, n, signal) {
    yield text(`Answer ${n}`)
    await stands.pass(signal)
  })
  const server = await serve({ model, builtIns: false }, options)
  const stream = await server.start('t', 'hold', '', headers)
  await stream.until('answer_delta')
  const run = stream.response.headers.get('x-interaction-id')!
  return { server, run, leave: () => stream.leave() }
}

async function routesOf(url: string) {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
  )
}

const addressOf = (path: string, run: string) =>
  path
    .replace('{chat_id}', 't')
    .replace('{interaction_id}', run)
    .replace('{threadId}', 't')
    .replace('{agentId}', 'default')
    .replace(/\{\w+\}/, 'x')

/** Requests that a browser sends for a page of another site. */
const foreign: [string, Record<string, string>][] = [
  ['Origin: https://evil.test', { origin: 'https://evil.test' }],
  ['Origin: null', { origin: 'null' }],
  ['an Origin that contains the host', { origin: 'http://127.0.0.1.evil.test' }],
  ['Sec-Fetch-Site: cross-site without an Origin', { 'sec-fetch-site': 'cross-site' }],
  ['Sec-Fetch-Site in capitals', { 'sec-fetch-site': 'CROSS-SITE' }],
  ['an empty Origin', { origin: '' }],
  ['an Origin that is not written as browsers write it', { origin: 'http://2130706433' }],
]

const codeOf = (body: string) => JSON.parse(body).error?.code

describe.each([
  ['without keys', {}, {}],
  [
    'with keys',
    { HANDRAIL_API_KEYS: `${ann}=local`, HOST: '127.0.0.1' },
    { authorization: `Bearer ${ann}` },
  ],
] as [string, Record<string, string>, Record<string, string>][])('%s', (_, env, key) => {
  test.each(foreign)('%s is refused with 403 on every state-changing route', async (_, headers) => {
    const { server, run, leave } = await withActiveRun({ env }, key)
    const before = await traces(server, key)
    let refused = 0
    for (const { path, method } of await routesOf(server.url)) {
      if (method === 'GET') continue
      const address = addressOf(path, run)
      for (const more of [{}, json]) {
        const request: RawRequest = {
          method,
          path: address,
          headers: { ...key, ...headers, ...more },
        }
        const response = await raw(server.url, request)
        expect([`${method} ${path}`, response.status, codeOf(response.text)]).toEqual([
          `${method} ${path}`,
          403,
          'origin_not_allowed',
        ])
        expect(response.headers['access-control-allow-origin']).toBeUndefined()
      }
      refused++
    }
    expect(refused).toBeGreaterThan(20)
    expect(await traces(server, key)).toEqual(before)
    leave()
  })
})

/** All that a foreign request could have changed. */
async function traces(server: Served, headers: Record<string, string>) {
  const read = async (path: string) => (await fetch(server.url + path, { headers })).json()
  return { list: await read('/chats'), chat: await read('/chats/t') }
}

test('a POST without a body from another origin cannot create, stop, cancel or archive', async () => {
  const { server, run, leave } = await withActiveRun()
  const before = await server.journal('t')
  const headers = { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }
  for (const path of [
    '/chats',
    '/copilotkit/agent/default/stop/t',
    `/chats/t/interactions/${run}/cancel`,
    '/copilotkit/threads/t/archive',
  ]) {
    const response = await raw(server.url, { method: 'POST', path, headers })
    expect([path, response.status]).toEqual([path, 403])
  }
  expect(await server.journal('t')).toEqual(before)
  const { chats } = (await (await server.request('GET', '/chats')).json()) as { chats: unknown[] }
  expect(chats).toHaveLength(1)
  leave()
})

test('headers and parameters that override the method do not turn a GET into a POST', async () => {
  const server = await serve({ builtIns: false })
  for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override'])
    await raw(server.url, { path: '/chats', headers: { [name]: 'POST' } })
  await raw(server.url, { path: '/chats?_method=POST' })
  expect(await (await server.request('GET', '/chats')).json()).toMatchObject({ chats: [] })
})

test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
  'a body of type %s is refused by every POST route',
  async (type) => {
    const { server, run, leave } = await withActiveRun()
    const before = await traces(server, {})
    for (const { path, method } of await routesOf(server.url)) {
      if (method !== 'POST') continue // forms have no others
      const body = '{"title":"x","user_message":"x","query":"{hello}"}'
      const headers = { 'content-type': type }
      const response = await raw(server.url, { method, path: addressOf(path, run), headers, body })
      expect([`${method} ${path}`, response.status >= 400]).toEqual([`${method} ${path}`, true])
    }
    expect(await traces(server, {})).toEqual(before)
    leave()
  },
)

test('a GraphQL mutation over GET or HEAD is refused', async () => {
  const server = await serve({ builtIns: false })
  const data =
    'data: {metadata: {requestType: Chat}, frontend: {actions: []}, threadId: "t", messages: [{id: "m", createdAt: "2026-01-01T00:00:00.000Z", textMessage: {role: user, content: "hi"}}]}'
  const query = encodeURIComponent(`mutation { generateCopilotResponse(${data}) { threadId } }`)
  for (const base of ['/copilotkit', '/api/copilotkit'])
    for (const method of ['GET', 'HEAD']) {
      const path = `${base}/graphql?query=${query}`
      const { status } = await raw(server.url, { method, path })
      expect([path.slice(0, 20), method, status]).toEqual([path.slice(0, 20), method, 405])
    }
  expect(await (await server.request('GET', '/chats')).json()).toMatchObject({ chats: [] })
})

describe('allowed origins', () => {
  const create = (server: Served, headers: Record<string, string>) =>
    raw(server.url, { method: 'POST', path: '/chats', headers }).then(({ status }) => status)

  test('clients without an Origin, the own origin and pages of this machine may change state', async () => {
    const server = await serve({ builtIns: false })
    const { host, port } = new URL(server.url)
    for (const headers of [
      {},
      { 'sec-fetch-site': 'none' },
      { origin: server.url, 'sec-fetch-site': 'same-origin' },
      { origin: `http://app.localhost:${port}`, host: `app.localhost:${port}` },
      { origin: 'http://localhost:3000', 'sec-fetch-site': 'cross-site' },
      { origin: 'http://[::1]:5173', 'sec-fetch-site': 'same-site', host },
    ] as Record<string, string>[])
      expect([headers, await create(server, headers)]).toEqual([headers, 201])
  })

  test('HANDRAIL_CORS_ORIGINS allows a listed origin, and none refuses pages of other local ports', async () => {
    const env = { HANDRAIL_CORS_ORIGINS: 'none, https://app.example.org' }
    const server = await serve({ builtIns: false }, { env })
    const listed = { origin: 'https://app.example.org', 'sec-fetch-site': 'cross-site' }
    expect(await create(server, listed)).toBe(201)
    expect(await create(server, { origin: server.url })).toBe(201)
    const local = { origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' }
    expect(await create(server, local)).toBe(403)
    const answer = await raw(server.url, { path: '/chats', headers: local })
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, undefined])
  })

  test('HANDRAIL_PUBLIC_URL is the own origin of a server behind a proxy', async () => {
    const env = {
      HANDRAIL_API_KEYS: `${ann}=local`,
      HOST: '127.0.0.1',
      HANDRAIL_PUBLIC_URL: 'https://agents.example.org/handrail',
    }
    const server = await serve({ builtIns: false }, { env })
    const key = { authorization: `Bearer ${ann}` }
    expect(await create(server, { ...key, origin: 'https://agents.example.org' })).toBe(201)
    const behind = { ...key, host: 'proxy.test', origin: 'https://proxy.test' }
    expect(await create(server, behind)).toBe(201)
    expect(await create(server, { ...key, origin: 'https://other.example.org' })).toBe(403)
  })

  test('the refusal names the origin and the setting', async () => {
    const server = await serve({ builtIns: false })
    const headers = { origin: 'https://app.test' }
    const { text: body } = await raw(server.url, { method: 'POST', path: '/chats', headers })
    expect(JSON.parse(body).error.message).toContain('https://app.test')
    expect(JSON.parse(body).error.message).toContain('HANDRAIL_CORS_ORIGINS')
  })
})

test('no GET or HEAD route writes to the journal while a run is active', async () => {
  const { server, run, leave } = await withActiveRun()
  await getsWriteNothing(server, run)
  leave()
})

test('no GET or HEAD route writes to the journal while a run waits for an approval', async () => {
  const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })]])
  const server = await serve({ model, tools: tools().all, builtIns: false })
  const stream = await server.start('t', 'pay ann')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  stream.leave()
  await server.recorded('t', 'run.waiting')
  await getsWriteNothing(server, stream.response.headers.get('x-interaction-id')!, [
    `/approvals/${approval_id}`,
  ])
})

async function getsWriteNothing(server: Served, run: string, more: string[] = []) {
  const before = await server.journal('t')
  const state = `{ loadAgentState(data: {threadId: "t", agentName: "default"}) { threadExists } }`
  const graphql = `/copilotkit/graphql?query=${encodeURIComponent(state)}`
  const addresses = (await routesOf(server.url))
    .filter(({ method }) => method === 'GET')
    .map(({ path }) => addressOf(path, run))
  const withQuery = ['/agent-orchestrator', '/copilotkit/chat', '/copilotkit/status'].map(
    (path) => `${path}?session_id=t`,
  )
  for (const path of [graphql, ...addresses, ...withQuery, ...more])
    for (const method of ['GET', 'HEAD']) {
      const gone = new AbortController()
      const response = await fetch(server.url + path, {
        method,
        signal: gone.signal,
        headers: { accept: 'application/json' },
      })
      if (path === graphql && method === 'GET')
        expect(await response.json()).toEqual({ data: { loadAgentState: { threadExists: true } } })
      gone.abort()
    }
  expect(await server.journal('t')).toEqual(before)
}
