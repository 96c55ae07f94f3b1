import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { Agent } from '../../src/core/agent.ts'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { find } from '../support/tools.ts'

const send = defineTool({
  name: 'send',
  description: 'Sends.',
  schema: z.looseObject({}),
  access: 'write',
  run: async () => 'sent',
})

/** An agent that waits for an answer of any kind. */
const keeper: Agent = {
  name: 'keeper',
  async *run(context) {
    await context.ask({ kind: 'input', title: 'Go on?', key: 'go', input: { step: 1 } })
    yield* []
  },
}

const query = `mutation ($data: GenerateCopilotResponseInput!) {
  generateCopilotResponse(data: $data) { threadId status { ... on BaseResponseStatus { code } } } }`
const graphql = async (server: Served, data: object) => {
  const all = { metadata: {}, frontend: { actions: [] }, threadId: 'c', messages: [], ...data }
  const response = await server.request('POST', '/copilotkit/graphql', {
    ...{ query, variables: { data: all } },
  })
  return await response.text()
}
const post = async (server: Served, more: object) => {
  const all = {
    threadId: 'c',
    runId: 'r',
    messages: [],
    tools: [],
    context: [],
    state: {},
    ...more,
  }
  const response = await server.request('POST', '/copilotkit/agent/default/run', all)
  return await response.text()
}

/** A chat with `count` asks: all but the last are rejected. Returns the id of the one that is open. */
async function waiting(count = 1, input: object = { a: 1 }) {
  const steps = Array.from({ length: count }, (_, i) => [call(`${i}`, 'send', input)])
  const model = scriptedModel([...steps, [text('Done.')]])
  const server = await serve({ model, tools: [send], builtIns: false })
  const stream = await server.start('c', 'go')
  const run = stream.response.headers.get('x-interaction-id')!
  let ask = find(await stream.until('approval_required'), 'approval_required')
  for (let i = 1; i < count; i++) {
    await server.approve('c', run, { approval_id: ask.approval_id, approved: false })
    ask = find(await stream.until('approval_required'), 'approval_required')
  }
  await server.recorded('c', 'run.waiting')
  return { server, ask: ask.approval_id as string }
}

const objects = (count: number) => `[${'{},'.repeat(count)}{}]`
const edit = (count: number) =>
  `{"approved":true,"digest":"no","editedArgs":{"a":${objects(count)}}}`
const approveAction = { name: 'approveAction', description: '', parameters: {} }
const at = { id: 'm1', createdAt: new Date(0).toISOString() }
const named = (askId: string) => JSON.stringify({ askId })
const interrupt = (value: string, response: string) => ({
  ...{ name: 'LangGraphInterruptEvent', value, response },
})

type Send = (server: Served, ask: string, answer: string) => Promise<string>
const places: Record<string, { field: string; send: Send }> = {
  'an AG-UI tool result': {
    field: 'messages.m1.content',
    send: (server, ask, content) =>
      post(server, {
        tools: [approveAction],
        messages: [{ id: 'm1', role: 'tool', toolCallId: ask, content }],
      }),
  },
  'an AG-UI resume': {
    field: 'resume.0.payload',
    send: (server, interruptId, payload) =>
      post(server, { resume: [{ interruptId, status: 'resolved', payload }] }),
  },
  'a GraphQL result': {
    field: 'messages.m1.resultMessage.result',
    send: (server, ask, result) =>
      graphql(server, {
        messages: [
          {
            ...at,
            resultMessage: { actionExecutionId: ask, actionName: 'approveAction', result },
          },
        ],
      }),
  },
  'a GraphQL response': {
    field: 'metaEvents.0.response',
    send: (server, ask, response) =>
      graphql(server, { metaEvents: [interrupt(named(ask), response)] }),
  },
  'a GraphQL interrupt value': {
    field: 'metaEvents.0.value',
    send: (server, askId, response) => {
      const value = `{"askId":"${askId}","pad":${response}}`
      return graphql(server, { metaEvents: [interrupt(value, '{"approved":true,"digest":"no"}')] })
    },
  },
}

test.each(Object.entries(places))(
  '%s of JSON text beyond the limits of a body is refused, and the field is named',
  async (_, { field, send }) => {
    const { server, ask } = await waiting()
    const before = await server.journal('c')
    for (const answer of [edit(120_000), objects(120_000)]) {
      const told = await send(server, ask, answer)
      expect(told).toContain('body_too_complex')
      expect(told).toContain(`"${field}"`)
    }
    expect(await server.journal('c')).toHaveLength(before.length)
  },
)

test.each(Object.entries(places).slice(0, 4))(
  '%s of JSON text with more values than a request may bring is refused, and the field is named',
  async (_, { field, send }) => {
    const { server, ask } = await waiting()
    const told = await send(server, ask, edit(30_000))
    expect(told).toContain('invalid_request')
    expect(told).toContain(`${field}: is larger than`)
  },
)

test('three resume entries whose texts together are beyond the limits of a body are refused', async () => {
  const { server, ask } = await waiting()
  const entry = { interruptId: ask, status: 'resolved', payload: edit(20_000) }
  const told = await post(server, { resume: [entry, entry, entry] })
  expect(told).toContain('body_too_complex')
  expect(told).toContain('"resume.2.payload"')
})

test('a value of 1,200,000 characters of brackets on a thread that does not exist is refused before it is parsed', async () => {
  const server = await serve({ model: scriptedModel([]) })
  const parse = vi.spyOn(JSON, 'parse')
  const told = await graphql(server, { metaEvents: [interrupt(objects(400_000), 'yes')] })
  const lengths = parse.mock.calls.map(([text]) => (text.startsWith('[{') ? text.length : 0))
  parse.mockRestore()
  expect(told).toContain('"metaEvents.0.value"')
  expect(Math.max(...lengths)).toBe(0)
})

test('200 interrupts of one request do not serialize the arguments of all asks of the thread 200 times', async () => {
  const { server, ask } = await waiting(4, { content: '\n'.repeat(60_000) })
  const metaEvents = Array.from({ length: 200 }, () =>
    interrupt(named(ask), '{"approved":true,"digest":"no"}'),
  )
  const stringify = vi.spyOn(JSON, 'stringify')
  const parse = vi.spyOn(JSON, 'parse')
  const told = await graphql(server, { metaEvents })
  const long = [
    ...stringify.mock.results.map(({ value }) => String(value).length),
    ...parse.mock.calls.map(([text]) => text.length),
  ].filter((length) => length > 60_000)
  stringify.mockRestore()
  parse.mockRestore()
  expect(told).toContain('ask_differs')
  expect(long.length).toBeLessThan(10)
})

test('arguments of an edited call that a GraphQL client sends back are not parsed beyond the limits of a body', async () => {
  const { server, ask } = await waiting()
  expect(
    (await server.request('POST', `/approvals/${ask}`, { approved: true, edited_input: { a: 2 } }))
      .status,
  ).toBe(200)
  await server.recorded('c', 'run.completed')
  const actionExecutionMessage = { name: 'send', arguments: objects(120_000) }
  const parse = vi.spyOn(JSON, 'parse')
  const told = await graphql(server, { messages: [{ ...at, id: '0', actionExecutionMessage }] })
  const lengths = parse.mock.calls.map(([text]) => (text.startsWith('[{') ? text.length : 0))
  parse.mockRestore()
  expect(told).toContain('"Success"')
  expect(Math.max(...lengths)).toBe(0)
})

test('a long result of a client tool is content: it may hold any JSON', async () => {
  const model = scriptedModel([[call('1', 'show', {})], [text('Done.')]])
  const server = await serve({ model, builtIns: false })
  const tools = [{ name: 'show', description: '', parameters: {} }]
  await agui(server.url, { tools, messages: [{ id: 'u1', role: 'user', content: 'go' }] })
  const content = objects(120_000)
  const all = {
    tools,
    runId: 'r2',
    messages: [{ id: 'm1', role: 'tool', toolCallId: '1', content }],
  }
  expect(await post(server, all)).toContain('Done.')
})

test('a GraphQL client may send back the value of an approval whose arguments are not well-formed Unicode', async () => {
  const { server } = await waiting(1, { a: '\ud800' })
  const { value } = (await generate(server.url, 'u1', 'go', { messages: [] })).metaEvents[0]
  expect(value).toContain('\\ud800')
  const answered = await graphql(server, { metaEvents: [interrupt(value, 'yes')] })
  expect(answered).toContain('"Success"')
  await server.recorded('c', 'run.completed')
})

const deep = '['.repeat(5_000) + ']'.repeat(5_000)
test.each([
  ['5,000 levels', deep, 'body_too_deep', 'metaEvents.0.response'],
  ['half a surrogate pair', '"\\ud800"', 'invalid_request', 'metaEvents.0.response'],
  ['a prototype', '{"__proto__":{"a":1}}', 'invalid_request', 'metaEvents.0.response.__proto__'],
])(
  'a GraphQL response with %s to an ask for input is refused, and nothing is written',
  async (_, response, code, field) => {
    const server = await serve({ agents: [keeper] })
    void server.start('c', 'go')
    await server.recorded('c', 'run.waiting')
    const before = await server.journal('c')
    const told = await graphql(server, {
      ...{ agentSession: { agentName: 'keeper' } },
      metaEvents: [interrupt('{ "step": 1 }', response)],
    })
    expect(told).toContain(code)
    expect(told).toContain(`"${field}"`)
    expect(await server.journal('c')).toHaveLength(before.length)
  },
)
