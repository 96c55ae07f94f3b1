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
