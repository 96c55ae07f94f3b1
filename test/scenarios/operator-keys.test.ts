import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HttpAgent } from '@ag-ui/client'
import { expect, onTestFinished, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { langGraphPlatform } from '../../src/agents/remote/langgraph-platform/agents.ts'
import { openaiCompatible } from '../../src/models/openai-compatible.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Settings } from '../../src/settings.ts'
import { remote, sse, started } from '../remote/support.ts'
import { serve } from '../support/serve.ts'
import { find } from '../support/tools.ts'

const key = 'planted-operator-key'
/** Also finds a key that was cut off. */
const start = 'planted-op'

/** Answers with a status other than 200. Returns true, for handlers that return whether they answered. */
function refuse(response: ServerResponse, status: number, text: string): true {
  response.writeHead(status, { 'content-type': 'text/plain' }).end(text)
  return true
}

function json(response: ServerResponse, value: unknown): true {
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(value)}\n`)
  return true
}

/** Collects the log of a server. */
function noted() {
  const lines: string[] = []
  const note = (about: object, message: string) => {
    lines.push(JSON.stringify([about, message]))
  }
  return { lines, log: { info: note, warn: note, error: note } }
}

const authorization = `Bearer ${key}`
const graph = { name: 'far', assistant: 'graph' }
const refusals: [string, (url: string) => Settings, Parameters<typeof remote>[0]][] = [
  [
    'an AG-UI agent that refuses the request',
    (url) => ({ agents: [aguiAgent({ name: 'far', url, headers: { authorization } })] }),
    ({ headers }, response) => void refuse(response, 401, `invalid key ${headers.authorization}`),
  ],
  [
    'an AG-UI agent that names the token without its scheme',
    (url) => ({ agents: [aguiAgent({ name: 'far', url, headers: () => ({ authorization }) })] }),
    (_, response) => void refuse(response, 401, `invalid key ${key}!`),
  ],
  [
    'an AG-UI agent whose long refusal is cut off in the key',
    (url) => ({ agents: [aguiAgent({ name: 'far', url, headers: { 'x-vendor-key': key } })] }),
    (_, response) => void refuse(response, 401, `invalid key ${'x'.repeat(373)} ${key}`),
  ],
  [
    'an AG-UI agent that has the key in its address',
    (url) => ({ agents: [aguiAgent({ name: 'far', url: `${url}/run?api_key=${key}` })] }),
    ({ path }, response) => void refuse(response, 404, `invalid key: cannot POST ${path}`),
  ],
  [
    'an AG-UI agent that fails during its answer',
    (url) => ({ agents: [aguiAgent({ name: 'far', url, headers: { authorization } })] }),
    (_, response) =>
      sse(response, [started, { type: 'RUN_ERROR', message: `invalid key ${authorization}` }]),
  ],
  [
    "an AG-UI agent of the library's own client that refuses the request",
    (url) => {
      const agent = new HttpAgent({ url, headers: { authorization } })
      return { agents: [aguiAgent({ name: 'far', agent })] }
    },
    ({ headers }, response) => void refuse(response, 401, `invalid key ${headers.authorization}`),
  ],
  [
    'a LangGraph deployment that refuses the request',
    (url) => ({
      agents: langGraphPlatform({ deploymentUrl: url, langsmithApiKey: key, agents: [graph] }),
    }),
    ({ headers }, response) => void refuse(response, 403, `invalid key ${headers['x-api-key']}`),
  ],
  [
    'a LangGraph deployment that fails during its run',
    (url) => ({
      agents: langGraphPlatform({ deploymentUrl: url, langsmithApiKey: key, agents: [graph] }),
    }),
    ({ path }, response) => {
      if (!path.endsWith('/runs/stream')) return void json(response, { thread_id: 't' })
      const place = '/threads/t/runs/r1'
      const type = 'text/event-stream'
      response.writeHead(200, { 'content-type': type, 'content-location': place })
      const error = JSON.stringify({ error: 'Refused', message: `invalid key ${key}` })
      response.end(`event: metadata\ndata: {"run_id":"r1"}\n\nevent: error\ndata: ${error}\n\n`)
    },
  ],
  [
    'an endpoint of CopilotKit that refuses the request',
    (url) => ({ remote: [{ url, onBeforeRequest: () => ({ headers: { authorization } }) }] }),
    ({ path, headers }, response) => {
      if (path.endsWith('/info')) json(response, { agents: [{ name: 'far' }], actions: [] })
      else refuse(response, 401, `invalid key ${headers.authorization}`)
    },
  ],
  [
    'an endpoint of CopilotKit that fails during its answer',
    (url) => ({ remote: [{ url, onBeforeRequest: () => ({ headers: { authorization } }) }] }),
    ({ path }, response) => {
      const error = { message: `invalid key ${key}` }
      if (path.endsWith('/info')) json(response, { agents: [{ name: 'far' }], actions: [] })
      else json(response, { event: 'on_copilotkit_error', data: { error } })
    },
  ],
]

test.each(refusals)(
  "%s does not bring the operator's key to users, to the journal or to the log",
  async (_, settings, answer) => {
    const far = await remote(answer)
    const { lines, log } = noted()
    const server = await serve({ ...settings(far.url), builtIns: false }, { log })
    const body = { user_message: 'go', agent: 'far' }
    const frames = await (await server.open('POST', '/chats/c/interactions', body)).rest()
    expect(JSON.stringify(frames)).toContain('invalid key')
    expect(JSON.stringify(frames)).not.toContain(start)
    await server.close()
    expect(await server.stored()).not.toContain(start)
    expect(lines.join('\n')).toContain('run failed')
    expect(lines.join('\n')).not.toContain(start)
  },
)

test("an action of CopilotKit with an unknown outcome does not bring the operator's key to the approver", async () => {
  const far = await remote(({ path, headers }, response) => {
    const actions = [{ name: 'pay', description: 'Pays', parameters: [] }]
    if (path.endsWith('/info')) json(response, { agents: [], actions })
    else refuse(response, 503, `invalid key ${headers.authorization}`)
  })
  const onBeforeRequest = () => ({ headers: { authorization } })
  const server = await serve({
    model: scriptedModel([[call('1', 'pay', {})]]),
    remote: [{ url: far.url, onBeforeRequest, timeouts: { total: 1_000 } }],
    policy: [{ decision: 'allow' }],
    builtIns: false,
  })
  const stream = await server.start('c', 'pay')
  const asked = find(await stream.until('approval_required'), 'approval_required')
  expect(asked.kind).toBe('in_doubt')
  stream.leave()
  const journal = await (await fetch(`${server.url}/threads/c/journal`)).text()
  expect(journal).toContain('invalid key ***')
  await server.close()
  expect(await server.stored()).not.toContain(start)
})

/** An MCP server with one tool. `answer` may answer a request before the server does: then it returns true. */
async function mcpServer(
  answer: (method: string, id: number, response: ServerResponse) => boolean,
) {
  const far = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params } = JSON.parse(body)
    if (id === undefined) return void response.writeHead(202).end()
    const isListing = request.headers['x-vendor-key'] !== key
    if (!isListing && answer(method, id, response)) return
    const { protocolVersion } = params ?? {}
    const results: Record<string, object> = {
      initialize: {
        ...{ protocolVersion, capabilities: { tools: {} } },
        serverInfo: { name: 'bank', version: '1' },
      },
      'tools/list': { tools: [{ name: 'pay', inputSchema: { type: 'object', properties: {} } }] },
      ping: {},
    }
    json(response, { jsonrpc: '2.0', id, result: results[method] })
  })
  await new Promise<void>((resolve) => far.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    far.closeAllConnections()
    far.close()
  })
  return `http://127.0.0.1:${(far.address() as AddressInfo).port}/mcp`
}

const words = `invalid key ${key}`
test.each<[string, Parameters<typeof mcpServer>[0]]>([
  [
    'refuses a call with a status',
    (method, _, response) => method === 'tools/call' && refuse(response, 403, words),
  ],
  [
    'refuses a call with an error',
    (method, id, response) =>
      method === 'tools/call' &&
      json(response, { jsonrpc: '2.0', id, error: { code: -32_001, message: words } }),
  ],
  [
    'refuses a call with a failed result',
    (method, id, response) => {
      const result = { content: [{ type: 'text', text: words }], isError: true }
      return method === 'tools/call' && json(response, { jsonrpc: '2.0', id, result })
    },
  ],
  [
    'refuses the connection',
    (method, _, response) => method === 'initialize' && refuse(response, 401, words),
  ],
])(
  "an MCP server that %s does not bring the operator's key to the model or to the journal",
  async (_, answer) => {
    const url = await mcpServer(answer)
    const model = scriptedModel([[call('1', 'bank__pay', {})], [text('ok')]])
    const headers = (tenant?: string) => ({ 'x-vendor-key': tenant === undefined ? 'list' : key })
    const settings = { model, mcp: { bank: { url, headers } }, builtIns: false }
    const server = await serve({ ...settings, policy: [{ decision: 'allow' as const }] })
    const frames = await (await server.start('c', 'pay')).rest()
    expect(JSON.stringify(frames)).toContain('invalid key ***')
    expect(JSON.stringify([frames, model.requests])).not.toContain(start)
    await server.close()
    expect(await server.stored()).not.toContain(start)
  },
)

test("a model provider that repeats the operator's key in its refusal does not bring it to users, the journal or the log", async () => {
  const far = await remote((_, response) => {
    const error = { message: `invalid key ${key}`, type: 'invalid_request_error' }
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  })
  const { lines, log } = noted()
  const model = openaiCompatible({ model: 'm', apiKey: key, baseUrl: `${far.url}/v1` })
  const server = await serve({ model, builtIns: false }, { log })
  const frames = await (await server.start('c', 'go')).rest()
  expect(find(frames, 'error').error).toContain('invalid key ***')
  await server.close()
  expect(JSON.stringify(frames) + (await server.stored()) + lines.join('\n')).not.toContain(start)
})
