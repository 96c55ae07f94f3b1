import { describe, expect, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { look, send, story } from '../support/story.ts'
import { coreClient, ending, httpClient, poster, runBody, userMessage } from './support.ts'

const run = '/agent/default/run'
const hi = userMessage('hi', 'u1')

describe('one address for everything', () => {
  test('CopilotKit, told to use it: says, joins, stops, answers a question', async () => {
    const stands = gate()
    const server = await story(async function* (_request, n, signal) {
      yield text(`Answer ${n}`)
      if (n === 0) await stands.pass(signal)
      else if (n === 1) yield send('1')
      else yield text('!')
    })
    const config = { runtimeTransport: 'single' } as const
    const client = await coreClient(server.url, 't', { config })
    const saying = client.say('go')
    await stands.reached
    const joined = await coreClient(server.url, 't', { config })
    const joining = joined.connect()
    while (!joined.shown().some((line) => line.includes('Answer 0')))
      await new Promise((resolve) => setImmediate(resolve))
    joined.core.stopAgent({ agent: joined.agent as never })
    const streams = await Promise.all([saying, joining])
    expect(streams.map((one) => new URL(one.url).pathname)).toEqual(Array(2).fill('/copilotkit'))
    expect(streams.map((one) => ending(one).type)).toEqual(['RUN_FINISHED', 'RUN_FINISHED'])
    await client.say('pay ann')
    const [interrupt] = client.agent.pendingInterrupts
    const answer = { interruptId: interrupt!.id, status: 'resolved', payload: { approved: true } }
    await client.run({ resume: [answer as never] })
    expect(client.shown().at(-1)).toBe('assistant: Answer 2!')
    expect(server.sent).toHaveLength(1)
    expect([...client.errors, ...joined.errors]).toEqual([])
  })

  test('CopilotKit finds the routes by itself, and either way reads the same', async () => {
    const server = await story([[text('Hi.')]])
    const auto = await coreClient(server.url, 't', { path: '/api/copilotkit' })
    const stream = await auto.say('hi')
    expect(new URL(stream.url).pathname).toBe('/api/copilotkit/agent/default/run')
    const single = await coreClient(server.url, 't', { config: { runtimeTransport: 'single' } })
    await single.connect()
    expect(single.agent.messages).toEqual(auto.agent.messages)
  })

  test.for([
    ['no method', {}, 400],
    ['a method nobody knows', { method: 'agent/dance' }, 400],
    ['a method that is no text', { method: 7 }, 400],
    ['no agent', { method: 'agent/run', body: runBody('t', [hi]) }, 400],
    ['no body', { method: 'agent/run', params: { agentId: 'default' } }, 400],
    ['no thread to stop', { method: 'agent/stop', params: { agentId: 'default' } }, 400],
    [
      'an agent nobody knows',
      { method: 'agent/run', params: { agentId: 'x' }, body: runBody('t', [hi]) },
      404,
    ],
    ['a resource that is none', { method: 'resource/request', params: { path: '/info' } }, 400],
    [
      'a resource behind another',
      { method: 'resource/request', params: { path: '/threads/../info' } },
      400,
    ],
    ['a sound, with nobody to hear it', { method: 'transcribe', body: { audio: '' } }, 503],
    ['no JSON', '{', 400],
  ] as const)('refuses %s', async ([, body, status]) => {
    const server = await story([])
    const answer = await poster(server.url)('', body)
    if (status === 400) expect([400, 404]).toContain(answer.status)
    else expect(answer.status).toBe(status)
    expect(answer.json).toMatchObject({ error: expect.any(String), message: expect.any(String) })
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
  })

  test('refuses a body that says it is something else', async () => {
    const server = await story([])
    const headers = { 'content-type': 'text/plain' }
    expect((await poster(server.url)('', '{"method":"info"}', headers)).status).toBe(415)
  })
})

test('a page of another address asks first, and is told what it may send', async () => {
  const server = await story([])
  const ask = (origin: string) =>
    fetch(`${server.url}/copilotkit${run}`, {
      method: 'OPTIONS',
      headers: {
        ...{ origin, 'access-control-request-method': 'POST' },
        'access-control-request-headers': 'authorization,content-type,x-page',
      },
    })
  const known = await ask('http://localhost:3000')
  expect(known.status).toBe(204)
  expect(Object.fromEntries(known.headers)).toMatchObject({
    'access-control-allow-origin': 'http://localhost:3000',
    'access-control-allow-headers': 'authorization,content-type,x-page',
    'access-control-allow-methods': expect.stringContaining('POST'),
  })
  const foreign = await ask('https://evil.test')
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull()
  const info = await fetch(`${server.url}/copilotkit/info`, {
    headers: { origin: 'http://localhost:3000' },
  })
  expect(info.headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
})

const withMessage = (message: object) => runBody('t', [message])

const malformed: [string, unknown, RegExp][] = [
  ['no JSON', '{nope', /JSON/],
  ['a list', [], /body/],
  ['nothing', {}, /threadId/],
  ['no run id', { threadId: 't', messages: [] }, /runId/],
  ['a thread id that is no text', { threadId: 7, runId: 'r', messages: [] }, /threadId/],
  ['an empty thread id', { threadId: '', runId: 'r', messages: [] }, /threadId/],
  ['messages that are no list', { threadId: 't', runId: 'r', messages: {} }, /messages/],
  [
    'a role nobody knows',
    withMessage({ id: '1', role: 'alien', content: 'x' }),
    /messages\.0\.role/,
  ],
  ['a message without id', withMessage({ role: 'user', content: 'x' }), /messages\.0\.id/],
  [
    'a content that is a number',
    withMessage({ id: '1', role: 'user', content: 7 }),
    /messages\.0\.content/,
  ],
  [
    'a part nobody knows',
    withMessage({ id: '1', role: 'user', content: [{ type: 'smell' }] }),
    /messages\.0\.content/,
  ],
  [
    'a result without its call',
    withMessage({ id: '1', role: 'tool', content: 'x' }),
    /messages\.0\.toolCallId/,
  ],
  ['a tool without name', runBody('t', [hi], { tools: [{ description: '' }] }), /tools\.0\.name/],
  ['tools that are no list', runBody('t', [hi], { tools: 'all' }), /tools/],
  [
    'a context that is no text',
    runBody('t', [hi], { context: [{ description: 'a', value: 1 }] }),
    /context\.0\.value/,
  ],
  [
    'an answer to nothing',
    runBody('t', [hi], { resume: [{ status: 'resolved' }] }),
    /resume\.0\.interruptId/,
  ],
]

test.for(malformed)(
  'a run with %s is a bad request that names it, and nothing changes',
  async ([, body, field]) => {
    const server = await story([])
    const post = poster(server.url)
    const { status, json, headers } = await post(run, body)
    expect(status).toBe(400)
    expect(headers.get('content-type')).toMatch(/json/)
    expect(json.error).toBe('Invalid request body')
    expect(`${json.field} ${json.message}`).toMatch(field)
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
  },
)

test.for([
  ['no state, tools, context or props', { threadId: 't', runId: 'r', messages: [hi] }],
  [
    'nulls in their place',
    { ...runBody('t', [hi]), state: null, tools: null, context: null, forwardedProps: null },
  ],
  ['fields nobody knows', { ...runBody('t', [{ ...hi, color: 'red' }]), moon: { phase: 1 } }],
] as const)('a run with %s is fine', async ([, body]) => {
  const server = await story([[text('Hi.')]])
  expect(ending(await poster(server.url)(run, body)).type).toBe('RUN_FINISHED')
})

test('a connect needs a thread, and looks at nothing else', async () => {
  const server = await story([])
  const post = poster(server.url)
  expect(await post('/agent/default/connect', {})).toMatchObject({
    ...{ status: 400, json: { error: 'Invalid request body', field: 'body.threadId' } },
  })
  const odd = { threadId: 't', runId: 'r', messages: [{ id: '1', role: 'alien' }] }
  expect((await post('/agent/default/connect', odd)).status).toBe(200)
})

test('addresses that are none, methods that are wrong, agents nobody knows', async () => {
  const server = await story([])
  const at = async (method: string, path: string, body?: object) => {
    const response = await server.request(method, `/copilotkit${path}`, body)
    return [response.status, response.headers.get('allow')] as const
  }
  expect(await at('GET', '/nope')).toEqual([404, null])
  expect(await at('GET', run)).toEqual([405, expect.stringContaining('POST')])
  expect(await at('POST', '/info', {})).toEqual([405, expect.stringContaining('GET')])
  for (const path of ['/agent/x/run', '/agent/x/connect', '/agent/x/suggest', '/agent/x/stop/t']) {
    const body = path.includes('stop') ? {} : runBody('t', [hi])
    const { status, json } = await poster(server.url)(path, body)
    expect([path, status, json.error]).toEqual([path, 404, 'Agent not found'])
  }
  const unknown = httpClient(server.url, 't', { agentId: 'x' })
  await expect(unknown.say('hi')).rejects.toMatchObject({ status: 404 })
})

test('every agent is reached by its name, and a thread is one thread for all of them', async () => {
  const server = await story([[look('1', 'sea')], [text('Blue.')]])
  const info = (await (await server.request('GET', '/copilotkit/info')).json()) as {
    agents: Record<string, { name: string }>
  }
  expect(Object.keys(info.agents)).toEqual(expect.arrayContaining(['assistant', 'default']))
  const client = httpClient(server.url, 't', { agentId: 'assistant' })
  await client.say('the sea?')
  const other = httpClient(server.url, 't')
  await other.connect()
  expect(other.agent.messages.map(({ id }) => id)).toEqual(
    client.agent.messages.map(({ id }) => id),
  )
})
