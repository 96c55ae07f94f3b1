import { randomBytes } from 'node:crypto'
import { HumanMessage } from '@langchain/core/messages'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
import { expect, onTestFinished, test } from 'vitest'
import { aguiAgent, langgraph } from '../../src/index.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'

const image = () => randomBytes(30_000).toString('base64')
const picture = (id: string, data: string) => ({
  id,
  role: 'user',
  content: [
    { type: 'text', text: 'What is it?' },
    { type: 'image', source: { type: 'data', value: data, mimeType: 'image/png' } },
  ],
})
const reader = () =>
  Object.assign(
    scriptedModel(() => [text('A picture.')]),
    { accepts: ['image/*'] },
  )

/** Everything that clients can load of a thread with images. */
async function loaded(url: string, threadId: string): Promise<Record<string, string>> {
  const get = async (path: string) => (await fetch(url + path)).text()
  const query = `query ($data: LoadAgentStateInput!) { loadAgentState(data: $data) { messages } }`
  const graphql = await fetch(`${url}/copilotkit`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      query,
      variables: { data: { threadId, agentName: 'default' } },
    }),
  })
  const connect = await fetch(`${url}/copilotkit/agent/default/connect`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({
      ...{ threadId, runId: 'x', messages: [], tools: [], context: [] },
      ...{ state: {}, forwardedProps: {} },
    }),
  })
  return {
    snapshot: await connect.text(),
    messages: await get(`/copilotkit/threads/${threadId}/messages`),
    events: await get(`/copilotkit/threads/${threadId}/events`),
    graphql: await graphql.text(),
  }
}

test('a large image reaches the model and every client, and is stored once', async () => {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory.remove())
  const at = { data: directory.path }
  const model = reader()
  const first = await serve({ model, builtIns: false }, at)
  const data = image()
  await agui(first.url, { runId: 'r1', messages: [picture('m1', data)] })
  await agui(first.url, { runId: 'r2', messages: [picture('m1', data), picture('m2', data)] })
  const expected = { type: 'media', mediaType: 'image/png', data }
  expect(model.requests.map(({ messages }) => messages.at(-1)?.parts[1])).toEqual([
    expected,
    expected,
  ])
  expect(model.requests[1]?.messages[0]?.parts[1]).toEqual(expected)
  const stored = JSON.stringify(await first.journal('c'))
  expect(stored.split(data)).toHaveLength(2)
  const before = await loaded(first.url, 'c')
  await first.close()

  const again = reader()
  const second = await serve({ model: again, builtIns: false }, at)
  const after = await loaded(second.url, 'c')
  for (const [where, seen] of Object.entries(after)) {
    if (where !== 'events') expect(seen.split(data).length, where).toBeGreaterThan(2)
    expect(seen, where).not.toContain('large_')
    expect(seen.split(data).length, where).toBe(before[where]!.split(data).length)
  }
  await agui(second.url, { runId: 'r3', messages: [{ id: 'm3', role: 'user', content: 'And?' }] })
  const [request] = again.requests
  expect(request?.messages.filter(({ parts }) => parts[1]).map(({ parts }) => parts[1])).toEqual([
    expected,
    expected,
  ])
})

test('the same message with a large image sent again starts nothing, and another image is refused', async () => {
  const model = reader()
  const server = await serve({ model, builtIns: false })
  const data = image()
  const start = (content: string) =>
    server.server.runtime.start(
      { tenant: 'default', user: 'local', roles: [], wire: 'test' },
      'c',
      {
        messages: [
          {
            id: 'm',
            role: 'user',
            parts: [{ type: 'media', mediaType: 'image/png', data: content }],
          },
        ],
        whenBusy: 'queue',
      },
    )
  const { runId } = await start(data)
  expect(await start(data)).toMatchObject({ runId, fresh: false })
  await expect(start(image())).rejects.toMatchObject({ code: 'invalid_request', field: 'messages' })
})

test('a graph gets the data of a large image', async () => {
  const seen: string[] = []
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('look', ({ messages }) => {
      seen.push(JSON.stringify(messages.filter((one) => HumanMessage.isInstance(one))))
      return {}
    })
    .addEdge('__start__', 'look')
    .compile()
  const agents = [langgraph(graph, { name: 'looker' })]
  const server = await serve({ agents, model: reader(), builtIns: false })
  const data = image()
  const events = await agui(server.url, { messages: [picture('m1', data)] })
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect(seen).toHaveLength(1)
  expect(seen[0]).toContain(data)
})

test('a remote agent gets the data of a large image', async () => {
  const model = reader()
  const remote = await serve({ model, builtIns: false })
  const url = `${remote.url}/copilotkit/agent/default/run`
  const agents = [aguiAgent({ name: 'far', url })]
  const server = await serve({ agents, model: reader(), builtIns: false })
  const data = image()
  const events = await agui(server.url, { messages: [picture('m1', data)] })
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect(JSON.stringify(model.requests)).toContain(data)
})
