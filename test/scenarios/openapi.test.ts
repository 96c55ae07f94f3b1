import { expect, test } from 'vitest'
import type { Runtime } from '../../src/core/runtime.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { aguiWire } from '../../src/wires/agui/wire.ts'
import { approvalsWire } from '../../src/wires/approvals/wire.ts'
import { chatsWire } from '../../src/wires/chats/wire.ts'
import { graphqlWire } from '../../src/wires/graphql/wire.ts'
import type { Route } from '../../src/wires/http.ts'
import { auditRoute } from '../../src/wires/ops/audit.ts'
import { governorRoutes } from '../../src/wires/ops/governor.ts'
import { grantRoutes } from '../../src/wires/ops/grants.ts'
import { journalRoute } from '../../src/wires/ops/journal.ts'
import { metricsRoute } from '../../src/wires/ops/metrics.ts'
import { opsWire } from '../../src/wires/ops/wire.ts'
import { Heartbeats } from '../../src/wires/sse.ts'
import { workflowWire } from '../../src/wires/workflow/wire.ts'
import { raw } from '../support/raw.ts'
import { serve } from '../support/serve.ts'
import { find, tools } from '../support/tools.ts'

interface Operation {
  operationId: string
  summary: string
  parameters?: { name: string; in: string; required?: boolean; schema: object }[]
  requestBody?: { required: boolean; content: Record<string, { schema: object }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: object }> }>
}

interface Document {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
}

/** The tables themselves; what they would call is not there. */
const table: Route[] = [
  ...chatsWire({} as Runtime, new Heartbeats()),
  ...approvalsWire({} as Runtime, new Heartbeats()),
  ...aguiWire({
    runtime: {} as Runtime,
    heartbeats: new Heartbeats(),
    basePaths: ['/copilotkit', '/api/copilotkit'],
    whenBusy: 'reject',
    version: '0',
    bodyLimit: 1,
  }),
  ...graphqlWire({
    runtime: {} as Runtime,
    heartbeats: new Heartbeats(),
    basePaths: ['/copilotkit', '/api/copilotkit'],
    stop: { rule: 'grace', grace: 0 },
    introspection: true,
    graphiql: true,
    log: { info() {}, warn() {}, error() {} },
  }),
  ...workflowWire({
    runtime: {} as Runtime,
    heartbeats: new Heartbeats(),
    basePaths: ['/copilotkit', '/api/copilotkit'],
    version: '0',
    sessionTtl: 0,
    log: { info() {}, warn() {}, error() {} },
  }),
  ...opsWire({} as Runtime, () => [], '0'),
  ...grantRoutes({} as Runtime),
  metricsRoute(() => ''),
  ...governorRoutes({} as Runtime),
  auditRoute({} as Runtime),
  journalRoute({} as Runtime),
]

const documentOf = async (url: string) =>
  (await (await fetch(`${url}/openapi.json`)).json()) as Document

const operationsOf = ({ paths }: Document) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

test('what is served is what is described, and the other way round', async () => {
  const server = await serve({ builtIns: false })
  const described = operationsOf(await documentOf(server.url))
  const names = described.map(({ method, path }) => `${method} ${path}`).sort()
  // Wires that share an address are one operation there.
  const served = new Set(table.map(({ method, path }) => `${method} ${path}`))
  expect(names).toEqual([...served].sort())
  const paths = new Set(described.map(({ path }) => path))
  for (const path of paths) {
    const address = path.replace(/\{\w+\}/g, 'x')
    const { status, headers } = await raw(server.url, { method: 'TRACE', path: address })
    expect(status).toBe(405)
    const methods = described.filter((one) => one.path === path).map(({ method }) => method)
    expect(String(headers.allow).toLowerCase().split(', ').sort()).toEqual(methods.sort())
  }
})

test('the document is OpenAPI 3.1 in all that tools rely on', async () => {
  const server = await serve({ builtIns: false })
  const document = await documentOf(server.url)
  expect(document.openapi).toMatch(/^3\.1\.\d+$/)
  expect(document.info).toMatchObject({
    title: expect.stringMatching(/./),
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  const operations = operationsOf(document)
  const ids = operations.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { path, method, operation } of operations) {
    const about = `${method} ${path}`
    expect(path, about).toMatch(/^\//)
    expect(operation.operationId).toMatch(/^\w+$/)
    expect(operation.summary, about).toMatch(/./)
    const { parameters = [] } = operation
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const declared = parameters.filter((one) => one.in === 'path')
    expect(declared.map(({ name }) => name).sort(), about).toEqual(inPath.sort())
    expect(
      declared.every(({ required }) => required === true),
      about,
    ).toBe(true)
    const keys = parameters.map((one) => `${one.in} ${one.name}`)
    expect(new Set(keys).size).toBe(keys.length)
    for (const parameter of parameters) {
      expect(['path', 'query', 'header']).toContain(parameter.in)
      expect(parameter.schema, about).toBeTypeOf('object')
    }
    const served = table.find((one) => one.method === method && one.path === path)
    expect(operation.requestBody !== undefined, about).toBe(served?.body !== undefined)
    const contents = [operation.requestBody?.content ?? {}]
    expect(Object.keys(operation.responses).length, about).toBeGreaterThan(0)
    for (const [status, response] of Object.entries(operation.responses)) {
      expect(status).toMatch(/^[1-5]\d\d$/)
      expect(response.description, `${about} ${status}`).toMatch(/./)
      contents.push(response.content ?? {})
    }
    for (const content of contents)
      for (const { schema } of Object.values(content)) expect(schema).toBeTypeOf('object')
  }
  expect(JSON.stringify(document)).not.toContain('"$schema"')
  const [start] = operations.filter(({ path }) => path === '/chats/{chat_id}/interactions')
  expect(start?.operation.requestBody?.content['application/json']?.schema).toMatchObject({
    type: 'object',
    required: ['user_message'],
    additionalProperties: false,
  })
  expect(start?.operation.responses['200']?.content).toHaveProperty('text/event-stream')
})

test('real answers have the shapes that are described', async () => {
  const box = tools()
  const model = scriptedModel((request) => {
    const last = request.messages.at(-1)!
    return last.role === 'user'
      ? [text('hm '), call(`call_${last.id}`, 'send', { to: 'ann', amount: 5 })]
      : [text('Done.')]
  })
  const server = await serve({ model, tools: box.all, builtIns: false })
  const met = new Set<string>()
  const check = async (method: string, address: string, body?: unknown, headers = {}) => {
    const response = await server.request(method, address, body, headers)
    const one = table.find(
      ({ path, method: known }) =>
        known === method.toLowerCase() &&
        new RegExp(`^${path.replace(/\{\w+\}/g, '[^/?]+')}(\\?|$)`).test(address),
    )!
    const described = one.responses[response.status]
    const about = `${method} ${one.path} ${response.status}`
    expect(described, about).toBeDefined()
    met.add(about)
    if (described!.stream && response.status === 200) return response
    const answer = response.status === 204 ? undefined : await response.json()
    if (described!.schema) expect(described!.schema.safeParse(answer).error, about).toBeUndefined()
    return response
  }
  const stream = await server.start('c', 'pay')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const id = stream.response.headers.get('x-interaction-id')!
  const path = `/chats/c/interactions/${id}`
  await server.recorded('c', 'run.waiting')
  await check('GET', '/chats/c')
  await check('GET', path)
  await check('GET', '/chats')
  await check('POST', '/chats/c/interactions', { user_message: 'x' })
  await check('POST', '/chats/c/interactions?when_busy=x', { user_message: 'x' })
  await check('POST', `${path}/edit`, { new_user_message: 'x' })
  const key = { 'idempotency-key': 'k' }
  await check('POST', `${path}/approve`, { approval_id, approved: true }, key)
  await stream.rest()
  await check('POST', `${path}/approve`, { approval_id, approved: false })
  await check('POST', `${path}/approve`, { approval_id, approved: false }, key)
  await check('POST', `${path}/approve`, { approval_id: 'x', approved: false })
  await check('POST', `${path}/cancel`)
  await check('POST', `${path}/retry`)
  await check('POST', `${path}/cancel`, {}, { 'content-type': 'text/plain' })
  const second = await server.start('c', 'again')
  await check(
    'POST',
    `/chats/c/interactions/${second.response.headers.get('x-interaction-id')}/cancel`,
  )
  await second.rest()
  await check('GET', '/chats/c?include=superseded&limit=1')
  await check('GET', '/chats/none')
  await check('GET', '/chats?limit=0')
  await check('GET', `${path}/events?after=x`)
  await check('POST', '/chats', { id: 'd', title: 'A title' })
  await check('POST', '/chats', { id: 'd' })
  await check('DELETE', '/chats/d')
  await check('DELETE', '/chats/d')
  await check('GET', '/healthz')
  await check('GET', '/readyz')
  expect(met.size).toBeGreaterThan(20)
})

test('the document and its page are made once, and not sent to a client that has them', async () => {
  let made = 0
  const routes: Route[] = opsWire(
    { legs: 0 } as Runtime,
    () => {
      made++
      return table
    },
    '0',
  )
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const one = routes.find((route) => route.path === path)!
    const request = new Request(`http://localhost${path}`, { headers })
    return await one.handle({ request } as Parameters<Route['handle']>[0])
  }
  for (let n = 0; n < 3; n++)
    for (const path of ['/openapi.json', '/docs']) {
      const response = await get(path)
      expect(response.status).toBe(200)
      expect((await response.text()).length).toBeGreaterThan(1_000)
      const known = await get(path, { 'if-none-match': `"x", W/${response.headers.get('etag')}` })
      expect(known.status).toBe(304)
      expect(await known.text()).toBe('')
    }
  expect(made).toBe(1)
  const server = await serve({ builtIns: false })
  const etag = (await fetch(`${server.url}/docs`)).headers.get('etag')!
  const again = await fetch(`${server.url}/docs`, { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(304)
})

test('the page for people shows every operation and asks no other host for anything', async () => {
  const server = await serve({ builtIns: false })
  const response = await fetch(`${server.url}/docs`)
  expect(response.headers.get('content-type')).toMatch(/^text\/html/)
  expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'/)
  const page = await response.text()
  for (const { path, summary } of table) {
    expect(page).toContain(`<code>${path}</code>`)
    expect(page).toContain(summary)
  }
  expect(page).not.toMatch(/https?:\/\/|<script|<link|<img|@import|url\(/i)
  const links = [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => link!)
  expect(links).toEqual(['openapi.json'])
  expect((await fetch(new URL(links[0]!, response.url))).status).toBe(200)
})
