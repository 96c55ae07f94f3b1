import { getConfig, MessagesAnnotation, StateGraph, task } from '@langchain/langgraph'
import { expect, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import type { Agent, AgentContext } from '../../src/core/agent.ts'
import { RuntimeError } from '../../src/core/errors.ts'
import { textOf } from '../../src/core/messages.ts'
import { langgraph } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/scripted.ts'
import { remote } from '../remote/support.ts'
import { type Served, serve } from '../support/serve.ts'
import { tools } from '../support/tools.ts'

/** Every planted value, so that one search finds them all. */
let planted: string[] = []
const plant = (): string => {
  const value = `planted-${planted.length}-value`
  planted.push(value)
  return value
}

/** What a client may send in its properties, with a secret in every place where one may be. */
const properties = (): Record<string, unknown> => ({
  theme: 'kept-theme',
  maxTokens: 4_096,
  max_tokens: '2048',
  author: 'kept-author',
  token: plant(),
  password: plant(),
  dbPwd: plant(),
  privateKey: plant(),
  private_key: plant(),
  access_key: plant(),
  secretKey: plant(),
  'api-key': plant(),
  credentials: { user: 'ann', words: [plant(), { deep: plant() }] },
  auth: { type: 'basic', value: plant() },
  signature: plant(),
  jwt: plant(),
  sessionId: plant(),
  database: `postgres://app:${plant()}@db.example/app`,
  hook: `https://hooks.example/x?token=${plant()}`,
  note: `Bearer ${plant()}`,
  list: ['kept-item', `Bearer ${plant()}`],
  json: JSON.stringify({ apiKey: plant() }),
  longJson: JSON.stringify({
    text: 'x'.repeat(20_000),
    nested: [{ name: 'token', value: plant() }],
  }),
  jsonInJson: JSON.stringify(JSON.stringify({ password: plant() })),
  smtp: { user: 'ann', pass: plant() },
  providerKeys: { openai: plant() },
  githubtoken: plant(),
  env: [
    { name: 'API_TOKEN', value: plant() },
    { name: 'THEME', value: 'kept-pair' },
  ],
  headers: [['authorization', plant()]],
  rawHeaders: ['Accept', 'json', 'X-Auth', plant()],
  args: ['--api-key', plant(), `--token=${plant()}`],
  command: `curl -H 'Authorization: Bearer ${plant()}' https://kept.example`,
  mcpServers: [
    { endpoint: 'https://kept.example', apiKey: plant() },
    { endpoint: 'https://kept.example', headers: { Authorization: plant(), Cookie: plant() } },
  ],
  config: {
    configurable: { token: plant(), nested: { client_secret: plant(), depth: 'kept-depth' } },
  },
})

/** Context that the model reads. Its secrets are masked where it is written. */
const context = () => [
  { description: 'kept-context', value: JSON.stringify({ name: 'Ann', apiKey: plant() }) },
  { description: 'token', value: plant() },
]

const headers = (): Record<string, string> => ({
  'x-tenant': 'kept-tenant',
  'x-goog-iap-jwt-assertion': plant(),
  'x-amzn-oidc-data': plant(),
  'x-amzn-oidc-accesstoken': plant(),
  'x-auth': plant(),
  'x-jwt': plant(),
  'x-session-id': plant(),
  'x-vendor-token': plant(),
  'x-anything': plant(),
  'x-csrf': plant(),
})

/** Notes what it is given, asks a question, and fails with a sentence that has a secret in it if it is told to. */
function keeper(seen: string[]): Agent {
  return {
    name: 'keeper',
    async *run(ctx: AgentContext) {
      seen.push(JSON.stringify(ctx.options))
      const fails = JSON.stringify(ctx.messages()).includes('fail')
      const { token } = (ctx.options.forwarded ?? {}) as { token?: string }
      if (fails)
        throw new Error(`The vendor refused ${token} of ${ctx.options.headers?.['x-auth']}.`)
      const answer = await ctx.ask({ kind: 'input', key: 'go', title: 'Go on?' })
      yield {
        type: 'message',
        message: {
          id: ctx.newId('msg'),
          role: 'assistant',
          parts: [{ type: 'text', text: `kept-answer ${answer.state}` }],
        },
      }
    },
  }
}

const type = { 'content-type': 'application/json' }
async function post(
  server: Served,
  path: string,
  body: unknown,
  more: Record<string, string> = {},
) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { ...type, ...more },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect([path, response.status, text]).toEqual([path, 200, expect.any(String)])
  return text
}

const runBody = (threadId: string, text: string, more: object = {}) => ({
  ...{ threadId, runId: `run-${threadId}`, state: {}, tools: [], context: [], forwardedProps: {} },
  messages: [{ id: `m-${threadId}`, role: 'user', content: text }],
  ...more,
})

const mutation = `mutation Run($data: GenerateCopilotResponseInput!, $properties: JSONObject) {
  generateCopilotResponse(data: $data, properties: $properties) { threadId status { __typename } }
}`
const graphqlBody = (threadId: string, given: Record<string, unknown>) => {
  const { config, ...rest } = given
  const message = { role: 'user', content: 'go' }
  const data = {
    threadId,
    metadata: { requestType: 'Chat' },
    context: context(),
    frontend: { actions: [] },
    agentSession: { agentName: 'keeper', threadId },
    agentStates: [{ agentName: 'keeper', state: '{}', config: JSON.stringify(config) }],
    messages: [{ id: `m-${threadId}`, createdAt: new Date(0).toISOString(), textMessage: message }],
  }
  return { query: mutation, variables: { data, properties: rest } }
}

test('secrets in properties, config and headers of every wire reach the agent and are never stored', async () => {
  planted = []
  const seen: string[] = []
  const lines: string[] = []
  const note = (about: object, message: string) => {
    lines.push(JSON.stringify([about, message]))
  }
  const log = { info: note, warn: note, error: note }
  const server = await serve({ agents: [keeper(seen)], builtIns: false }, { log })
  const run = '/copilotkit/agent/keeper/run'
  const first = runBody('agui', 'go', { forwardedProps: properties(), context: context() })
  const asked = await post(server, run, first, headers())
  await post(
    server,
    '/copilotkit',
    {
      method: 'agent/run',
      params: { agentId: 'keeper' },
      body: runBody('single', 'go', { forwardedProps: properties() }),
    },
    headers(),
  )
  await post(server, run, runBody('failing', 'fail', { forwardedProps: properties() }), headers())
  await post(server, '/copilotkit/graphql', graphqlBody('graphql', properties()), headers())
  const stop = new AbortController()
  const streams: [string, object][] = [
    [
      '/copilotkit/chat',
      { session_id: 'flow', messages: [{ role: 'user', content: 'go' }], context: properties() },
    ],
    ['/chats/chats/interactions', { user_message: 'go' }],
  ]
  for (const [path, body] of streams)
    await fetch(server.url + path, {
      method: 'POST',
      headers: { ...type, ...headers() },
      body: JSON.stringify(body),
      signal: stop.signal,
    })
  await expect.poll(() => seen.length).toBe(6)

  // An answer brings secrets of its own, in place of those of the start.
  const [interruptId] = /ask_\w+/.exec(asked) ?? []
  const resume = [{ interruptId, status: 'resolved', payload: 'go' }]
  const answer = { ...runBody('agui', 'go', { forwardedProps: properties() }), resume }
  expect(await post(server, run, answer, headers())).toContain('kept-answer')
  stop.abort()

  const all = seen.join('\n')
  expect(planted.length).toBeGreaterThan(33)
  expect(planted.filter((value) => !all.includes(value))).toEqual([])
  const shown = await Promise.all(
    ['agui', 'graphql', 'flow'].flatMap((id) =>
      [
        `/copilotkit/threads/${id}/events`,
        `/copilotkit/threads/${id}/state`,
        `/threads/${id}/journal`,
      ]
        .concat(`/threads/${id}/audit`, `/chats/${id}`)
        .map(async (path) => (await fetch(server.url + path)).text()),
    ),
  )
  expect(planted.filter((value) => shown.join().includes(value))).toEqual([])
  await server.close()
  const stored = await server.stored()
  for (const kept of [
    'kept-theme',
    'kept-author',
    'kept-item',
    'kept.example',
    'kept-depth',
    'kept-tenant',
    'kept-pair',
    'kept-context',
  ])
    expect(stored).toContain(kept)
  expect(stored).toContain('4096')
  expect(planted.filter((value) => stored.includes(value))).toEqual([])
  const logged = lines.join('\n')
  expect(logged).toContain('The vendor refused ***')
  expect(planted.filter((value) => logged.includes(value))).toEqual([])
})

test('a LangGraph graph gets a token in its configuration, and no checkpoint has it', async () => {
  planted = []
  const [token, apiKey] = [plant(), plant()]
  const seen: unknown[] = []
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('speak', (_state, config) => {
      seen.push(config.configurable?.token, config.configurable?.apiKey)
      return { messages: [{ role: 'assistant', content: 'kept-answer' }] }
    })
    .addEdge('__start__', 'speak')
    .addEdge('speak', '__end__')
  const agent = langgraph(graph, {
    name: 'graph',
    configurable: { allow: ['token', 'apiKey', 'theme'] },
  })
  const server = await serve({ agents: [agent], builtIns: false })
  const forwardedProps = { config: { configurable: { token, apiKey, theme: 'kept-theme' } } }
  await post(server, '/copilotkit/agent/graph/run', runBody('t', 'go', { forwardedProps }))
  expect(seen).toEqual([token, apiKey])
  await server.close()
  const stored = await server.stored()
  expect(stored).toContain('kept-answer')
  expect(planted.filter((value) => stored.includes(value))).toEqual([])
})

test.each(['a node', 'a node of a subgraph', 'a task of a node'])(
  'no checkpoint of a LangGraph graph has a token that is in the error of %s',
  async (place) => {
    planted = []
    const [quoted, operatorKey] = [`"${plant()}"`, plant()]
    const fail = (_state: unknown, config: { configurable?: Record<string, unknown> }) => {
      const { token, apiKey } = config.configurable ?? {}
      throw new Error(`kept-sentence ${token} ${apiKey}`)
    }
    const failing = task('fail', async () => fail({}, getConfig()))
    const inner = new StateGraph(MessagesAnnotation)
      .addNode('fail', fail)
      .addEdge('__start__', 'fail')
    const nodes = {
      'a node': fail,
      'a node of a subgraph': inner.compile(),
      'a task of a node': async () => await failing(),
    }
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('speak', nodes[place as keyof typeof nodes] as typeof fail)
      .addEdge('__start__', 'speak')
    const configurable = { allow: ['token'], values: { apiKey: operatorKey } }
    const agent = langgraph(graph, { name: 'graph', retry: false, configurable })
    const server = await serve({ agents: [agent], builtIns: false })
    const forwardedProps = { config: { configurable: { token: quoted } } }
    const run = '/copilotkit/agent/graph/run'
    const text = await post(server, run, runBody('t', 'go', { forwardedProps }))
    expect(text).toContain('The agent failed.')
    const journal = await (await fetch(`${server.url}/threads/t/journal`)).text()
    expect(journal).toContain('kept-sentence *** ***')
    await server.close()
    const stored = await server.stored()
    expect(planted.filter((value) => (stored + journal).includes(value))).toEqual([])
  },
)

test('a remote agent that repeats a token in its refusal does not get it into the journal', async () => {
  planted = []
  const token = plant()
  const far = await remote(({ headers: got }, response) => {
    response.writeHead(401, { 'content-type': 'text/plain' })
    response.end(`unknown token ${got['x-vendor-token']}`)
  })
  const agent = aguiAgent({
    name: 'far',
    url: `${far.url}/run`,
    forward: { headers: ['x-vendor-token'] },
  })
  const server = await serve({ agents: [agent], builtIns: false })
  const run = '/copilotkit/agent/far/run'
  const text = await post(server, run, runBody('t', 'go'), { 'x-vendor-token': token })
  expect(far.asked[0]!.headers['x-vendor-token']).toBe(token)
  expect(text).toContain('unknown token ***')
  await server.close()
  expect(await server.stored()).not.toContain(token)
})

test.each([true, false])(
  'a workflow step (required: %s) does not store a token that its remote agent repeats in a refusal',
  async (required) => {
    planted = []
    const token = plant()
    const far = await remote(({ headers: got }, response) => {
      response.writeHead(401, { 'content-type': 'text/plain' })
      response.end(`unknown token ${got['x-vendor-token']}`)
    })
    const forward = { headers: ['x-vendor-token'] }
    const agent = aguiAgent({ name: 'far', url: `${far.url}/run`, forward })
    const retry = { attempts: 2, first: 1 }
    const flow = workflow({
      name: 'flow',
      steps: [{ agent: 'far', outputKey: 'answer', required, retry }],
    })
    const server = await serve({ agents: [flow, agent], builtIns: false })
    const messages = [{ role: 'user', content: 'go' }]
    const body = { session_id: 's', agent: 'flow', messages }
    const text = await post(server, '/copilotkit/chat', body, { 'x-vendor-token': token })
    expect(far.asked[0]!.headers['x-vendor-token']).toBe(token)
    expect(text).toContain('unknown token ***')
    const chat = await (await fetch(`${server.url}/chats/s`)).text()
    expect(text + chat).not.toContain(token)
    await server.close()
    expect(await server.stored()).not.toContain(token)
  },
)

test.each(['an agent', 'a model', 'a tool'])(
  'a workflow does not store a token that is in the error of %s',
  async (kind) => {
    planted = []
    const token = plant()
    const fail = () => {
      throw new RuntimeError('model_request', `kept-sentence ${token}`)
    }
    const call = { type: 'call' as const, callId: 'c', name: 'look', input: '{"at":"x"}' }
    const step: Agent = {
      name: 'step',
      tools: [{ ...tools().look, run: fail }],
      async *run(ctx) {
        if (kind === 'an agent') fail()
        if (kind === 'a model') await ctx.model({ messages: ctx.messages() })
        yield { type: 'message', message: { id: 'calls', role: 'assistant', parts: [call] } }
        await ctx.call([call])
        throw new RuntimeError('agent_failed', textOf(ctx.messages().at(-1)!))
      },
    }
    const steps = [{ agent: step, outputKey: 'answer', required: false }]
    const flow = workflow({ name: 'flow', steps })
    const settings = { model: scriptedModel(fail), agents: [flow], builtIns: false }
    const server = await serve({ ...settings, policy: [{ decision: 'allow' }] })
    const messages = [{ role: 'user', content: 'go' }]
    const body = { session_id: 's', agent: 'flow', messages }
    const text = await post(server, '/copilotkit/chat', body, { 'x-vendor-token': token })
    expect(text).toContain('kept-sentence ***')
    expect(text).not.toContain(token)
    await server.close()
    expect(await server.stored()).not.toContain(token)
  },
)

test('after a restart a run has no secrets until a request brings them, and lists keep their length', async () => {
  planted = []
  const seen: string[] = []
  const settings = { agents: [keeper(seen)], builtIns: false }
  const server = await serve(settings)
  const run = '/copilotkit/agent/keeper/run'
  const forwardedProps = {
    theme: 'kept-theme',
    token: plant(),
    list: ['kept', `Bearer ${plant()}`],
  }
  const more = { forwardedProps, context: [{ description: 'apiKey', value: plant() }] }
  const asked = await post(server, run, runBody('t', 'go', more), { 'x-auth': plant() })
  expect(planted.filter((value) => !seen[0]!.includes(value))).toEqual([])
  await server.close()

  const again = await serve(settings, { data: server.data })
  const [askId] = /ask_\w+/.exec(asked) ?? []
  const decided = await fetch(`${again.url}/approvals/${askId}`, {
    method: 'POST',
    headers: type,
    body: JSON.stringify({ answer: 'go' }),
  })
  expect([decided.status, await decided.text()]).toEqual([200, expect.any(String)])
  await expect.poll(() => seen.length).toBe(2)
  expect(planted.filter((value) => seen[1]!.includes(value))).toEqual([])
  expect(JSON.parse(seen[1]!)).toMatchObject({
    forwarded: { theme: 'kept-theme', list: ['kept', '[secret]'] },
    instructions: ['apiKey: [secret]'],
  })
})
