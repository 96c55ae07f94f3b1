import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { scriptedModel } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { find, names } from '../support/tools.ts'
import { type Asked, ask, interactionOf, remote } from './support.ts'

const json = (response: ServerResponse, value: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

const lines = (response: ServerResponse, events: readonly object[], end = true) => {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/json' })
  for (const event of events) response.write(`${JSON.stringify(event)}\n`)
  if (end) response.end()
}

const info = {
  sdkVersion: '0.1.78',
  agents: [
    { name: 'graph', description: 'A graph', type: 'langgraph' },
    { name: 'crew', description: 'A crew', type: 'crewai' },
  ],
  actions: [
    {
      name: 'greet',
      description: 'Greets somebody',
      parameters: [{ name: 'who', type: 'string', description: 'Whom' }],
    },
  ],
}

/** An endpoint as the Python SDK serves it. */
const endpoint = (
  execute: (asked: Asked, response: ServerResponse) => void = () => {},
  port?: number,
) =>
  remote((asked, response) => {
    if (asked.path === '/copilotkit/info') return json(response, info)
    if (asked.path === '/copilotkit/agents/execute') return execute(asked, response)
    if (asked.path === '/copilotkit/actions/execute')
      return json(response, { result: `Hello, ${asked.body.arguments.who}!` })
    json(response, { detail: 'Not found' }, 404)
  }, port)

/** A piece of a model's answer, wrapped as Python wraps it. */
const piece = (id: string, content: string, more = {}) => ({
  event: 'on_chat_model_stream',
  metadata: { langgraph_node: 'chat' },
  data: { chunk: { lc: 1, type: 'constructor', kwargs: { id, content, ...more } } },
})
const sync = (state: object, node_name = 'chat', active = true, running = true) => ({
  ...{ event: 'on_copilotkit_state_sync', thread_id: 't', run_id: 'r', agent_name: 'graph' },
  ...{ node_name, active, state, running, role: 'assistant' },
})

const runs = ({ asked }: { asked: Asked[] }) =>
  asked.filter(({ path }) => path.endsWith('agents/execute'))

describe("an endpoint of CopilotKit's Python SDK", () => {
  test('its agents are found and listed, and a graph of it answers', async () => {
    const far = await endpoint((_, response) =>
      lines(response, [
        sync({ messages: [], topic: 'none' }),
        piece('m1', 'It is '),
        piece('m1', 'sunny.'),
        { event: 'on_chat_model_end', data: {} },
        { event: 'on_chain_end', data: { output: {} } },
        sync({ messages: [], topic: 'weather' }, 'chat', false),
        sync({ messages: [], topic: 'weather' }, '__end__', false, false),
      ]),
    )
    const remotes = [
      {
        url: `${far.url}/copilotkit`,
        onBeforeRequest: () => ({ headers: { authorization: 'Bearer far' } }),
      },
    ]
    const server = await serve({ remote: remotes })
    const listed = server.server.runtime.agents().map(({ agent }) => agent.name)
    expect(listed.slice(-2)).toEqual(['graph', 'crew'])
    const start = { user_message: 'How is it?', agent: 'graph' }
    const stream = await server.open('POST', '/chats/c/interactions', start)
    const frames = await stream.rest()
    expect(find(frames, 'answer').content).toBe('It is sunny.')
    const { state } = await server.server.runtime.thread('c')
    expect(state.states.get('graph')).toEqual({ topic: 'weather' })
    const [first] = runs(far)
    expect(first!.headers.authorization).toBe('Bearer far')
    expect(first!.body).toMatchObject({
      name: 'graph',
      messages: [{ type: 'TextMessage', role: 'user', content: 'How is it?' }],
      state: {},
      actions: [],
      metaEvents: [],
    })
    expect(first!.body).not.toHaveProperty('nodeName')
    await (
      await server.open('POST', '/chats/c/interactions', { ...start, user_message: 'More' })
    ).rest()
    expect(runs(far)[1]!.body.threadId).toBe(first!.body.threadId)
    expect(runs(far)[1]!.body.state).toEqual({ topic: 'weather' })
  })

  test('a crew answers in its own events', async () => {
    const far = await endpoint((_, response) =>
      lines(response, [
        { type: 'RunStarted', state: {} },
        { type: 'NodeStarted', node_name: 'plan', state: {} },
        { type: 'TextMessageStart', messageId: 'm1', parentMessageId: null },
        { type: 'TextMessageContent', messageId: 'm1', content: 'We do it.' },
        { type: 'TextMessageEnd', messageId: 'm1' },
        {
          type: 'ActionExecutionStart',
          actionExecutionId: 'a1',
          actionName: 'peek',
          parentMessageId: 'm1',
        },
        { type: 'ActionExecutionArgs', actionExecutionId: 'a1', args: '{"at":"sea"}' },
        { type: 'ActionExecutionEnd', actionExecutionId: 'a1' },
        {
          type: 'ActionExecutionResult',
          actionExecutionId: 'a1',
          actionName: 'peek',
          result: 'waves',
        },
        { type: 'NodeFinished', node_name: 'plan', state: {} },
        {
          type: 'AgentStateMessage',
          threadId: 't',
          agentName: 'crew',
          nodeName: '__end__',
          runId: 'r',
          active: false,
          role: 'assistant',
          state: '{"done":true}',
          running: false,
        },
        { type: 'RunFinished', state: {} },
      ]),
    )
    const server = await serve({ remote: [{ url: `${far.url}/copilotkit` }] })
    const start = { user_message: 'go', agent: 'crew' }
    const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
    expect(find(frames, 'tool_call')).toMatchObject({
      tool_name: 'peek',
      tool_input: '{"at":"sea"}',
    })
    expect(find(frames, 'tool_result').tool_output).toBe('waves')
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    const { state } = await server.server.runtime.thread('c')
    expect(state.states.get('crew')).toEqual({ done: true })
  })

  test('its interrupt is an ask, and the answer goes back as a meta event, at the node it stopped in', async () => {
    const far = await endpoint(({ body }, response) => {
      const [meta] = body.metaEvents
      if (!meta)
        return lines(response, [
          sync({}, 'confirm'),
          { event: 'on_interrupt', value: '{"question":"Delete it?"}' },
          sync({}, 'confirm', true),
        ])
      lines(response, [
        piece('m1', `You said ${meta.response}.`),
        { event: 'on_chat_model_end', data: {} },
        sync({}, '__end__', false, false),
      ])
    })
    const server = await serve({ remote: [{ url: `${far.url}/copilotkit` }] })
    const start = { user_message: 'delete', agent: 'graph' }
    const stream = await server.open('POST', '/chats/c/interactions', start)
    const { approval_id, card } = find(await stream.until('approval_required'), 'approval_required')
    expect(card.title).toBe('Delete it?')
    await server.approve('c', interactionOf(stream.response), { approval_id, answer: 'yes' })
    expect(find(await stream.rest(), 'answer').content).toBe('You said yes.')
    expect(runs(far)[1]!.body).toMatchObject({
      nodeName: 'confirm',
      metaEvents: [
        { name: 'LangGraphInterruptEvent', value: { question: 'Delete it?' }, response: 'yes' },
      ],
    })
  })

  test('its actions are tools of ours: a person is asked, and the result is heard', async () => {
    const far = await endpoint()
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? [{ type: 'text', text: 'Greeted.' }]
        : [{ type: 'call', callId: 'k', name: 'greet', input: '{"who":"ann"}' }],
    )
    const server = await serve({ model, remote: [{ url: `${far.url}/copilotkit` }] })
    const stream = await server.start('c', 'greet ann')
    const { approval_id, tool_name } = find(
      await stream.until('approval_required'),
      'approval_required',
    )
    expect(tool_name).toBe('greet')
    await server.approve('c', interactionOf(stream.response), { approval_id, approved: true })
    const frames = await stream.rest()
    expect(find(frames, 'tool_result').tool_output).toBe('Hello, ann!')
    const [call] = far.asked.filter(({ path }) => path.endsWith('actions/execute'))
    expect(call!.body).toMatchObject({ name: 'greet', arguments: { who: 'ann' } })
    expect(call!.headers['idempotency-key']).toMatch(/^eff_/)
  })

  test('an endpoint that is down at the start costs its own agents only, and comes when it does', async () => {
    const away = await endpoint()
    await away.close()
    const near = await endpoint((_, response) =>
      lines(response, [piece('m1', 'here'), { event: 'on_chat_model_end', data: {} }]),
    )
    const began = Date.now()
    const server = await serve({
      remote: [{ url: `${away.url}/copilotkit` }, { url: `${near.url}/copilotkit` }],
    })
    expect(Date.now() - began).toBeLessThan(15_000)
    expect(names(await ask(server, 'c', 'hello'))).toContain('answer')
    const start = { user_message: 'go', agent: 'graph' }
    const frames = await (await server.open('POST', '/chats/d/interactions', start)).rest()
    expect(find(frames, 'answer').content).toBe('here')
    await near.close()
    // What was known stays in the list; a run of it says that the endpoint is away.
    const gone = await (await server.open('POST', '/chats/e/interactions', start)).rest()
    expect(find(gone, 'error')).toMatchObject({ code: 'remote_unavailable', retryable: true })
    expect(names(gone)).toContain('retrying')
  }, 120_000)

  test('agents of an endpoint that comes back are there', async () => {
    const away = await endpoint()
    await away.close()
    const server = await serve({ remote: [{ url: `${away.url}/copilotkit` }] })
    const listed = () => server.server.runtime.agents().map(({ agent }) => agent.name)
    expect(listed()).not.toContain('crew')
    await endpoint(undefined, away.port)
    await expect.poll(listed, { timeout: 30_000 }).toContain('crew')
  }, 120_000)

  test.each([
    ['a line that is not JSON', 'nonsense\n'],
    ['an event of the wrong shape', '{"type":"TextMessageContent","messageId":3}\n'],
    [
      'text of a message that is not open',
      '{"type":"TextMessageContent","messageId":"x","content":"y"}\n',
    ],
    ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe, 0x0a])],
  ])('%s is a typed error', async (_, said) => {
    const far = await endpoint((_asked, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(said)
    })
    const server = await serve({ remote: [{ url: `${far.url}/copilotkit` }] })
    const start = { user_message: 'go', agent: 'crew' }
    const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
    expect(find(frames, 'error').code).toBe('remote_protocol')
  })
})
