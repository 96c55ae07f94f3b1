import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { raw } from '../support/raw.ts'
import { serve } from '../support/serve.ts'

const ann = 'ann-key-0123456789abcdef'
const keys = { HANDRAIL_API_KEYS: `${ann}=local`, HOST: '127.0.0.1' }

async function routesOf(url: string) {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
  )
}

/** The headers of a response; a stream is left as soon as they are there. */
async function headersOf(
  url: string,
  init: RequestInit = {},
): Promise<{ status: number; [name: string]: unknown }> {
  const gone = new AbortController()
  const response = await fetch(url, { ...init, signal: gone.signal, redirect: 'manual' })
  gone.abort()
  return { status: response.status, ...Object.fromEntries(response.headers) }
}

/** A query whose result is sent in parts. */
function streamed(accept: string): RequestInit {
  const query = '{ availableAgents { agents @stream { id } } }'
  return { method: 'POST', headers: { accept }, body: JSON.stringify({ query }) }
}

function aguiRun(accept: string): RequestInit {
  const messages = [{ id: 'u1', role: 'user', content: 'go' }]
  const more = { state: {}, tools: [], context: [], forwardedProps: {} }
  const body = JSON.stringify({ threadId: 't', runId: 'r', messages, ...more })
  return { method: 'POST', headers: { accept }, body }
}

const common = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
}

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`
const host = 'Host: localhost'

test.each([
  ['400', 'a malformed Host', lines('GET /healthz HTTP/1.1', 'Host: a b')],
  ['400', 'no Host', lines('GET /healthz HTTP/1.1', 'Accept: */*')],
  ['400', 'an unknown method', lines('BREW /healthz HTTP/1.1', host)],
  ['400', 'an address that is a star', lines('OPTIONS * HTTP/1.1', host)],
  ['417', 'an unknown expectation', lines('GET /healthz HTTP/1.1', host, 'Expect: more')],
  [
    '431',
    'headers of 20 KB',
    lines('GET /healthz HTTP/1.1', host, `X-Long: ${'x'.repeat(20_000)}`),
  ],
  [
    '400',
    'a chunk without a size',
    `${lines('POST /chats HTTP/1.1', host, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}2\r\n{}\r\nzz\r\n`,
  ],
])('the response %s to a request with %s has the safe headers', async (status, _, request) => {
  const server = await serve({ builtIns: false })
  const response = await exchange(server.url, request)
  expect(response).toMatch(`HTTP/1.1 ${status} `)
  const safe = ['x-content-type-options', 'x-frame-options', 'content-security-policy']
  for (const name of [...safe, 'cache-control: no-store']) expect(response).toContain(name)
})

test('bytes that are not HTTP after a request add no response to its stream', async () => {
  const server = await serve({ builtIns: false })
  const stream = lines('GET /approvals/stream HTTP/1.1', host)
  const response = await exchange(server.url, `${stream}garbage\r\n\r\n`)
  expect(response.match(/HTTP\/1\.1/g) ?? []).toHaveLength(response === '' ? 0 : 1)
  expect(response).not.toContain(' 400 ')
})

test('bytes that are not HTTP add no response to the stream of the second of two requests sent at once', async () => {
  const server = await serve({ builtIns: false })
  const both = ['/healthz', '/approvals/stream'].map((path) => lines(`GET ${path} HTTP/1.1`, host))
  const response = await exchange(server.url, both.join(''), async (socket) => {
    await sleep(300) // the stream has begun
    socket.write('garbage\r\n\r\n')
  })
  expect(response.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
  expect(response).not.toContain(' 400 ')
})

test('a stream whose client asks to close the connection says that it will be closed', async () => {
  const server = await serve({ model: scriptedModel([[text('Yes.')]]) })
  const body = JSON.stringify({ user_message: 'Hello' })
  const post = lines(
    'POST /chats/c/interactions HTTP/1.1',
    ...[host, 'Content-Type: application/json', `Content-Length: ${body.length}`],
    'Connection: close',
  )
  const response = await exchange(server.url, post + body)
  expect(response.toLowerCase()).toContain('connection: close')
  expect(response).toContain('interaction_complete')
})

/** Sends bytes, and what `then` sends. Returns what the server sends until it closes the connection, or for a second. */
async function exchange(
  url: string,
  bytes: string,
  then: (socket: Socket) => Promise<void> = async () => {},
): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let received = ''
  socket.on('data', (data) => {
    received += data
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.write(bytes)
  void then(socket)
  const late = setTimeout(() => socket.destroy(), 1_000)
  await closed
  clearTimeout(late)
  return received
}

test('every response says that it must not be sniffed, framed or stored', async () => {
  const server = await serve({ builtIns: false })
  await server.request('POST', '/chats', { id: 'x' })
  const addresses = (await routesOf(server.url)).map(({ path, method }) => ({
    path: path.replace(/\{\w+\}/g, 'x'),
    method,
  }))
  for (const { path, method } of [...addresses, { path: '/nowhere', method: 'GET' }]) {
    const headers = await headersOf(server.url + path, { method })
    const isPublic = path === '/docs' || path === '/openapi.json'
    const wanted = {
      ...common,
      'cache-control': expect.stringMatching(isPublic ? /no-cache/ : /no-store/),
    }
    expect({ path, method, ...headers }).toMatchObject({ path, method, ...wanted })
  }
  const stored = await headersOf(`${server.url}/chats`)
  expect(stored).toMatchObject({ status: 200, 'cache-control': 'no-store' })
  const refused = await raw(server.url, { path: '/chats', headers: { host: 'evil.test' } })
  expect(refused).toMatchObject({ status: 421, headers: common })
})

test('a stream must not be stored either', async () => {
  const server = await serve({ builtIns: false })
  const headers = await headersOf(`${server.url}/approvals/stream`)
  expect(headers).toMatchObject({
    ...{ status: 200, 'cache-control': 'no-cache, no-store', 'x-content-type-options': 'nosniff' },
    'content-type': expect.stringContaining('text/event-stream'),
  })
})

test.each<[string, string, RequestInit, number]>([
  ['an unknown address', '/nowhere', {}, 404],
  ['an unknown address with a broken escape', '/chats/%E0%A4%A', {}, 400],
  ['a method that the address does not take', '/chats', { method: 'DELETE' }, 405],
  ['a method that no address takes', '/chats', { method: 'PROPFIND' }, 405],
  ['broken JSON', '/chats', { method: 'POST', body: '{' }, 400],
  ['a body that is too large', '/chats', { method: 'POST', body: 'x'.repeat(5_000_000) }, 413],
  ['broken GraphQL', '/copilotkit/graphql', { method: 'POST', body: '{"query":"{"}' }, 200],
  [
    'a page of another site',
    '/chats',
    { method: 'POST', headers: { origin: 'https://a.test' } },
    403,
  ],
  ['a preflight', '/chats', { method: 'OPTIONS', headers: { origin: 'http://localhost:1' } }, 204],
  ['HEAD', '/chats', { method: 'HEAD' }, 200],
  ['a GraphQL stream', '/copilotkit/graphql', streamed('multipart/mixed'), 200],
  ['GraphQL over SSE', '/copilotkit/graphql', streamed('text/event-stream'), 200],
  ['an AG-UI stream', '/copilotkit/agent/default/run', aguiRun('text/event-stream'), 200],
  [
    'an AG-UI stream of protobuf',
    '/copilotkit/agent/default/run',
    aguiRun('application/vnd.ag-ui.event+proto'),
    200,
  ],
])('the response must not be sniffed, framed or stored: %s', async (_, path, init, status) => {
  const server = await serve({ model: scriptedModel([[text('Hi.')]]), builtIns: false })
  const json = { 'content-type': 'application/json' }
  const headers = await headersOf(server.url + path, {
    ...init,
    headers: { ...json, ...init.headers },
  })
  expect(headers).toMatchObject({
    status,
    ...common,
    'cache-control': expect.stringContaining('no-store'),
  })
})

test('every 401 has WWW-Authenticate, on every wire', async () => {
  const server = await serve({ builtIns: false }, { env: keys })
  let refused = 0
  for (const { path, method } of await routesOf(server.url)) {
    const headers = await headersOf(server.url + path.replace(/\{\w+\}/g, 'x'), { method })
    if (headers.status !== 401) continue
    refused++
    expect({ path, ...headers }).toMatchObject({
      path,
      'www-authenticate': 'Bearer realm="Handrail"',
    })
  }
  expect(refused).toBeGreaterThan(40)
})

test('GraphiQL runs only its own script, and /docs runs none', async () => {
  const server = await serve({ builtIns: false })
  const html = { headers: { accept: 'text/html' } }
  const graphiql = await headersOf(`${server.url}/copilotkit/graphql`, html)
  const policy = graphiql['content-security-policy']
  expect(policy).toMatch(/default-src 'none'.*script-src 'sha256-[\w+/]{43}='/)
  expect(policy).not.toMatch(/script-src[^;]*unsafe/)
  expect(policy).toContain("connect-src 'self'")
  const docs = await headersOf(`${server.url}/docs`, html)
  expect(docs['content-security-policy']).toMatch(/^default-src 'none'; style-src 'unsafe-inline'/)
  const known = { headers: { 'if-none-match': String(docs.etag) } }
  const again = await headersOf(`${server.url}/docs`, known)
  // The headers of a 304 replace those of the page that the browser has.
  expect([again.status, again['content-security-policy']]).toEqual([304, undefined])
})
