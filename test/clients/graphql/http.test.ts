import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { raw } from '../../support/raw.ts'
import { serve } from '../../support/serve.ts'
import { story } from '../../support/story.ts'
import type { Answer } from './judge.ts'
import {
  accept,
  dataOf,
  document,
  generate,
  openPage,
  post,
  succeeded,
  textInput,
  typedDocument,
  until,
} from './support.ts'

const hi = dataOf([textInput('hi', 'u1')])
const hello = { query: '{ hello }' }
const version = 'x-copilotkit-runtime-version'

describe('headers', () => {
  test.for([
    ['the document of the clients', typedDocument],
    ['another one', document],
  ] as const)('of parts, for %s', async ([, query]) => {
    const server = await story([[text('Hi.')]])
    const { status, headers, response } = await generate(server.url, hi, { query })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('multipart/mixed; boundary="-"')
    expect(headers.get('content-length')).toBeNull()
    expect(headers.get('cache-control')).toContain('no-cache')
    expect(headers.get('x-accel-buffering')).toBe('no')
    expect(response.messages[0].content.join('')).toBe('Hi.')
  })

  test.for([
    ['of the clients', accept, 'application/graphql-response+json; charset=utf-8'],
    ['JSON', 'application/json', 'application/json; charset=utf-8'],
    ['nothing in particular', '*/*', 'application/json; charset=utf-8'],
  ] as const)('of one result, where the Accept is %s', async ([, given, type]) => {
    const server = await story([])
    const { headers, json } = await post(server.url, hello, { headers: { accept: given } })
    expect(headers.get('content-type')).toBe(type)
    expect(json).toEqual({ data: { hello: 'Hello World' } })
  })

  test.for([
    ['*/*', 'multipart/mixed'],
    ['multipart/mixed', 'multipart/mixed'],
    ['text/event-stream', 'text/event-stream'],
    ['application/json', 'application/json'],
    ['image/png', 'application/json'],
  ] as const)('who accepts %s reads %s', async ([given, type]) => {
    const server = await story([[text('Hi.')]])
    const { status, headers, json, response } = await generate(server.url, hi, {
      headers: { accept: given },
    })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toContain(type)
    const whole = json?.data.generateCopilotResponse ?? response
    expect(whole).toMatchObject({
      ...{ threadId: 't', status: { code: 'Success' } },
      messages: [{ content: expect.any(Array), status: { code: 'Success' } }],
    })
  })

  test('say the version of who asks, and none to who has none', async () => {
    const server = await story([[text('Hi.')], [text('Hi.')]])
    const old = { 'x-copilotkit-runtime-client-gql-version': '1.9.2' }
    for (const body of [hello, { query: '{ nope }' }, { query: document, variables: {} }]) {
      expect((await post(server.url, body, { headers: old })).headers.get(version)).toBe('1.9.2')
      expect((await post(server.url, body)).headers.get(version)).toBeNull()
    }
    const page = openPage(server.url)
    succeeded(await page.say('hello'))
    expect(page.answers[0]!.response.headers.get(version)).toBe('1.10.6')
    expect(page.warnings).toEqual([])
    const forged = { 'x-copilotkit-runtime-client-gql-version': 'x'.repeat(5_000) }
    const told = (await post(server.url, hello, { headers: forged })).headers.get(version)
    expect(told === null || told.length <= 5_000).toBe(true)
  })

  test('of pages elsewhere', async () => {
    const server = await story([[text('Hi.')]])
    const origin = 'http://localhost:3000'
    const asked =
      'content-type,x-copilotkit-runtime-client-gql-version,x-copilotcloud-public-api-key'
    const preflight = await fetch(`${server.url}/copilotkit`, {
      method: 'OPTIONS',
      headers: {
        ...{ origin, 'access-control-request-method': 'POST' },
        'access-control-request-headers': asked,
      },
    })
    expect(preflight.status).toBe(204)
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': asked,
      vary: 'Origin, Access-Control-Request-Headers',
    })
    for (const answer of [
      await post(server.url, hello, { headers: { origin } }),
      await generate(server.url, hi, { headers: { origin } }),
      await post(server.url, { query: '{ nope }' }, { headers: { origin } }),
    ])
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        vary: 'Origin',
      })
    const foreign = await post(server.url, hello, { headers: { origin: 'https://evil.test' } })
    expect(foreign.headers.get('access-control-allow-origin')).toBeNull()
    const none = await post(server.url, hello)
    expect(none.headers.get('access-control-allow-origin')).toBeNull()
  })
})

describe('other methods', () => {
  const at = (server: { url: string }, query = '', init: RequestInit = {}) =>
    fetch(`${server.url}/copilotkit/graphql${query}`, init)
  const mutation = `mutation { generateCopilotResponse(data: {metadata: {}, messages: [], frontend: {actions: []}}) { threadId } }`

  test('GET with a query is its result', async () => {
    const server = await story([])
    const response = await at(server, '?query=%7Bhello%7D')
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ data: { hello: 'Hello World' } })
  })

  test('GET without a query says what is missing', async () => {
    const server = await story([])
    const response = await at(server)
    expect([200, 400]).toContain(response.status)
    expect(((await response.json()) as { errors: object[] }).errors).toHaveLength(1)
  })

  test('GET runs no mutation', async () => {
    const server = await story([])
    const response = await at(server, `?query=${encodeURIComponent(mutation)}`)
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toContain('POST')
  })

  test('GET of a page is GraphiQL, which loads nothing from elsewhere, unless it is off', async () => {
    const page = { headers: { accept: 'text/html' } }
    const server = await story([])
    const response = await at(server, '', page)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/html')
    const html = await response.text()
    expect(html).not.toMatch(/(src|href)="(https?:)?\/\//)
    const env = { HANDRAIL_GRAPHIQL: 'off' }
    const without = await serve({ model: scriptedModel([]) }, { env })
    expect((await at(without, '', page)).status).toBe(404)
    expect((await at(without, '?query=%7Bhello%7D')).status).toBe(200)
  })

  test.for(['PUT', 'PATCH', 'DELETE'])('%s is not taken', async (method) => {
    const server = await story([])
    const response = await at(server, '', { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toMatch(/GET.*POST|POST.*GET/)
  })

  test('POST without a content type is 415, of another too', async () => {
    const server = await story([])
    const body = JSON.stringify(hello)
    const path = '/copilotkit/graphql'
    expect((await raw(server.url, { method: 'POST', path, body })).status).toBe(415)
    const headers = { 'content-type': 'text/plain' }
    expect((await raw(server.url, { method: 'POST', path, headers, body })).status).toBe(415)
  })

  test('of one address serve AG-UI and GraphQL: each finds its own', async () => {
    const server = await story([[text('Hi.')]])
    const info = await fetch(`${server.url}/copilotkit`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ method: 'info' }),
    })
    expect(await info.json()).toMatchObject({ agents: { default: {} } })
    const { json } = await post(server.url, hello)
    expect(json.data.hello).toBe('Hello World')
  })
})

describe('limits', () => {
  const deep = (n: number) =>
    `{ __schema { types { fields { type ${'{ ofType '.repeat(n)}{ name }${' }'.repeat(n)} } } } }`
  const many = (n: number) => `{ ${Array.from({ length: n }, (_, i) => `a${i}: hello`).join(' ')} }`

  test.for([
    ['a deep document', deep(30)],
    ['many aliases', many(200)],
    [
      'a stream from before its start',
      '{ availableAgents { agents @stream(initialCount: -1) { id } } }',
    ],
    ['an endless document', `{ ${'hello '.repeat(20_000)} }`],
    [
      'fragments that contain themselves',
      '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }',
    ],
    ['several mutations', two()],
    ['an operation that is not there', 'query a { hello } query b { hello }'],
    ['braces without end', '{'.repeat(50_000)],
  ] as const)('%s is refused, and costs nothing', async ([, query]) => {
    const server = await story([])
    const { status, json } = await post(server.url, { query })
    expect(status).toBe(400)
    expect(json.errors[0].message).toMatch(/\S/)
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
    expect((await post(server.url, hello)).json.data.hello).toBe('Hello World')
  })

  test('there are no subscriptions', async () => {
    const server = await story([])
    const { json } = await post(server.url, { query: 'subscription { hello }' })
    expect(json.errors[0].message).toContain('subscription')
    expect(json.data).toBeUndefined()
  })

  test.for([
    ['a text', '"x"'],
    ['a list', '[]'],
    ['a number', '7'],
  ] as const)('variables that are %s are refused', async ([, variables]) => {
    const server = await story([])
    const { status } = await post(
      server.url,
      `{"query":${JSON.stringify(document)},"variables":${variables}}`,
    )
    expect(status).toBe(400)
  })

  test('a batch is refused', async () => {
    const server = await story([])
    expect((await post(server.url, [hello, hello])).status).toBe(400)
  })

  test('a body that is too large is refused, and the client can say so', async () => {
    const model = scriptedModel([[text('Hi.')]])
    const env = { HANDRAIL_MAX_BODY: '20000' }
    const server = await serve({ model, builtIns: false }, { env })
    const page = openPage(server.url)
    const { error } = await page.say('x'.repeat(30_000))
    expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
    const { status } = await generate(server.url, dataOf([textInput('x'.repeat(30_000), 'u1')]))
    expect(status).toBe(413)
    expect(model.requests).toEqual([])
    page.messages = []
    succeeded(await page.say('hi'))
  })

  test('the schema is told, unless that is off', async () => {
    const query = '{ __schema { queryType { name } } __typename }'
    const server = await story([])
    const told = await post(server.url, { query })
    expect(told.json.data.__schema.queryType.name).toBe('Query')
    const env = { HANDRAIL_INTROSPECTION: 'off' }
    const model = scriptedModel([[text('Hi.')]])
    const silent = await serve({ model, builtIns: false }, { env })
    const refused = await post(silent.url, { query })
    expect(refused.status).toBe(400)
    expect(refused.text).not.toContain('queryType')
    const mistaken = await post(silent.url, { query: '{ hell }' })
    expect(mistaken.text).not.toMatch(/Did you mean/) // that would tell it word by word
    succeeded(await openPage(silent.url).say('hi'))
  })

  test('with a key for pages, others are refused', async () => {
    const env = { HANDRAIL_PUBLIC_API_KEY: 'ck_pub_right' }
    const model = scriptedModel([[text('Hi.')]])
    const server = await serve({ model, builtIns: false }, { env })
    for (const publicApiKey of [undefined, 'ck_pub_wrong', 'ck_pub_right2']) {
      const page = openPage(server.url, publicApiKey ? { publicApiKey } : {})
      const { error } = await page.say('hi')
      expect(error).toMatchObject({
        graphQLErrors: [{ extensions: { code: 'AUTHENTICATION_ERROR' } }],
      })
    }
    expect(model.requests).toEqual([])
    const page = openPage(server.url, { publicApiKey: 'ck_pub_right' })
    succeeded(await page.say('hi'))
  })
})

describe('a connection that waits', () => {
  test.for([
    ['the document of the clients', typedDocument],
    ['another one', document],
  ] as const)('shows that it lives, for %s', async ([, query]) => {
    const stands = gate()
    const model = scriptedModel(async function* (_request, _n, signal) {
      yield text('so ')
      await stands.pass(signal)
      yield text('Hi.')
    })
    const env = { HANDRAIL_HEARTBEAT_MS: '20' }
    const server = await serve({ model, builtIns: false }, { env })
    const answers: Answer[] = []
    const asking = generate(server.url, hi, { query, answers })
    await stands.reached
    const beats = () =>
      answers[0]?.stream?.payloads.filter(({ incremental, data }) => !incremental && !data) ?? []
    await until(() => beats().length >= 2)
    stands.open()
    const { response } = await asking
    expect(response.messages[0].content.join('')).toBe('so Hi.')
  })
})

function two(): string {
  const one = (name: string) =>
    `${name}: generateCopilotResponse(data: {threadId: "t", metadata: {}, messages: [], frontend: {actions: []}}) { threadId }`
  return `mutation { ${one('a')} ${one('b')} }`
}
