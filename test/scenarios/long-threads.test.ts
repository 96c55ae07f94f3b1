import { decode } from '@ag-ui/proto'
import { expect, test, vi } from 'vitest'
import type { ModelEvent } from '../../src/core/model.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { serve } from '../support/serve.ts'

const image = Buffer.alloc(30_000, 7).toString('base64')
const body = (part: object) =>
  JSON.stringify({
    ...{ threadId: 'long', runId: 'r', tools: [], context: [], state: {}, forwardedProps: {} },
    ...part,
  })
const said = Array.from({ length: 300 }, (_, i) => ({
  id: `m${i}`,
  role: 'user',
  content: `${i} "quoted" 😀 `.repeat(300),
}))
const picture = {
  id: 'picture',
  role: 'user',
  content: [
    { type: 'text', text: 'What is it?' },
    { type: 'image', source: { type: 'data', value: image, mimeType: 'image/png' } },
  ],
}

/** A server with a thread of 301 messages. Later model calls wait until `answering` is open. */
async function longThread(answering = Promise.resolve()) {
  let calls = 0
  const model = scriptedModel(async function* () {
    if (++calls > 1) await answering
    yield text('done')
  })
  const server = await serve({ model: Object.assign(model, { accepts: ['image/*'] }) })
  const post = (path: string, content: string, accept = 'text/event-stream') =>
    fetch(server.url + path, {
      ...{ method: 'POST', body: content },
      headers: { 'content-type': 'application/json', accept },
    })
  const run = (runId: string, messages: object[]) =>
    post('/copilotkit/agent/default/run', body({ runId, messages }))
  await (await run('r', [...said, picture])).text()
  return { server, post, run }
}

const connect = '/copilotkit/agent/default/connect'

test('a long thread is the same for every client that loads it, and comes in several chunks', async () => {
  const { server, post } = await longThread()
  const expected = [...said, picture].map(({ id }) => id)

  let chunks = 0
  let sse = ''
  const connected = await post(connect, body({ messages: [] }))
  for await (const chunk of connected.body!.pipeThrough(new TextDecoderStream())) {
    chunks++
    sse += chunk
  }
  expect(chunks).toBeGreaterThan(3)
  const events = sse.split('\n').flatMap((line) => {
    return line.startsWith('data: ') ? [JSON.parse(line.slice('data: '.length))] : []
  })
  const snapshot = events.find(({ type }) => type === 'MESSAGES_SNAPSHOT')
  expect(snapshot.messages.slice(0, 300)).toEqual(said)
  expect(snapshot.messages.map(({ id }: { id: string }) => id).slice(0, 301)).toEqual(expected)
  expect(JSON.stringify(snapshot.messages[300])).toContain(image)

  const accept = 'application/vnd.ag-ui.event+proto'
  const binary = Buffer.from(
    await (await post(connect, body({ messages: [] }), accept)).arrayBuffer(),
  )
  const decoded: unknown[] = []
  for (let at = 0; at < binary.length; ) {
    const end = at + 4 + binary.readUInt32BE(at)
    decoded.push(decode(binary.subarray(at + 4, end)))
    at = end
  }
  expect(decoded.map((event) => (event as { type: string }).type)).toEqual(
    events.map(({ type }) => type),
  )
  const same = decoded.find((event) => (event as typeof snapshot).type === 'MESSAGES_SNAPSHOT')
  expect((same as typeof snapshot).messages.map(plain)).toEqual(snapshot.messages.map(plain))

  const listed = await fetch(`${server.url}/copilotkit/threads/long/messages`)
  expect(await listed.json()).toEqual({ messages: snapshot.messages })

  const query = `query ($data: LoadAgentStateInput!) {
    a: loadAgentState(data: $data) { messages same: messages ... @defer { threadExists } } }`
  const variables = { data: { threadId: 'long', agentName: 'default' } }
  const accepts = 'application/json, multipart/mixed'
  const loaded = await post('/copilotkit', JSON.stringify({ query, variables }), accepts)
  const { data, errors } = await loaded.json()
  expect(errors).toBeUndefined()
  expect(data.a).toMatchObject({ same: data.a.messages, threadExists: true })
  const messages = JSON.parse(data.a.messages)
  expect(messages.slice(0, 300)).toEqual(said)
  expect(JSON.stringify(messages)).toContain(image)
})

/** Protobuf has no absent texts. */
const plain = ({ id, role, content }: { id: string; role: string; content: unknown }) => ({
  ...{ id, role },
  ...(typeof content === 'string' && { content }),
})

test('of two long requests with the same messages at the same time, one adds them', async () => {
  // The run lasts until both requests are answered: a request after its end would ask for another answer.
  let answer = () => {}
  const { run, server } = await longThread(
    new Promise((resolve) => {
      answer = resolve
    }),
  )
  const added = said.map((message) => ({ ...message, id: `next-${message.id}` }))
  const runs = await Promise.all([run('r2', added), run('r3', added)])
  answer()
  for (const response of runs) await response.text()
  const listed = await fetch(`${server.url}/copilotkit/threads/long/messages`)
  const { messages } = (await listed.json()) as { messages: { id: string; role: string }[] }
  const ids = messages.filter(({ role }) => role === 'user').map(({ id }) => id)
  expect(ids).toEqual([...said, picture, ...added].map(({ id }) => id))
})

/** The length of the longest text that `JSON.stringify` returns while an operation runs. */
async function longestJson(operation: () => Promise<void>): Promise<number> {
  const { stringify } = JSON
  let longest = 0
  JSON.stringify = ((...args: Parameters<typeof stringify>) => {
    const text = stringify(...args)
    longest = Math.max(longest, text?.length ?? 0)
    return text
  }) as typeof stringify
  await operation().finally(() => {
    JSON.stringify = stringify
  })
  return longest
}

/** The JSON of each part, whose length its header must tell. */
function partsIn(bytes: Buffer) {
  const parts: { items?: { __typename: string; state: string }[] }[] = []
  for (let at = 0; ; ) {
    const start = bytes.indexOf('\r\n\r\n', at)
    if (start < 0) return parts
    const header = bytes.subarray(at, start).toString()
    const length = Number(/Content-Length: (\d+)/.exec(header)![1])
    at = start + 4 + length
    expect(bytes.subarray(at, at + 5).toString()).toBe('\r\n---')
    const { incremental = [] } = JSON.parse(bytes.subarray(start + 4, at).toString())
    parts.push(...incremental)
  }
}

test.each([
  ['multipart/mixed', '@stream'],
  ['text/event-stream', '@stream'],
  ['application/json', ''],
])(
  'a GraphQL client that accepts %s and sends only its new message gets the whole thread, which is serialized in steps',
  async (accept, stream) => {
    const { post } = await longThread()
    const query = `mutation ($data: GenerateCopilotResponseInput!) {
    generateCopilotResponse(data: $data) {
      messages ${stream} { __typename ... on AgentStateMessageOutput { state same: state } }
    }
  }`
    const message = { id: 'news', createdAt: '2026-01-01T00:00:00.000Z' }
    const data = {
      ...{ threadId: 'long', metadata: { requestType: 'Chat' }, frontend: { actions: [] } },
      messages: [{ ...message, textMessage: { role: 'user', content: 'And now?' } }],
    }
    let bytes = Buffer.alloc(0)
    const longest = await longestJson(async () => {
      const response = await post(
        '/copilotkit',
        JSON.stringify({ query, variables: { data } }),
        accept,
      )
      bytes = Buffer.from(await response.arrayBuffer())
    })
    const text = bytes.toString()
    const items =
      accept === 'application/json'
        ? JSON.parse(text).data.generateCopilotResponse.messages
        : accept === 'multipart/mixed'
          ? partsIn(bytes).flatMap((part) => part.items ?? [])
          : [...text.matchAll(/^data: (\{.*\})$/gm)]
              .flatMap(([, json = '']) => JSON.parse(json).incremental ?? [])
              .flatMap((part) => part.items ?? [])
    const last = items.findLast(
      ({ __typename }: { __typename: string }) => __typename === 'AgentStateMessageOutput',
    )
    expect(last.same).toBe(last.state)
    const { messages } = JSON.parse(last.state)
    expect(messages.slice(0, 300)).toEqual(said)
    expect(messages.at(-2)).toEqual({ id: 'news', role: 'user', content: 'And now?' })
    expect(last.state).toContain(image)
    expect(last.state.length).toBeGreaterThan(1_300_000)
    expect(longest).toBeLessThan(700_000)
  },
)

/** Loads a thread 16 times in one GraphQL request. */
function loadedSixteenTimes(url: string, fields: string, isQuery = false) {
  const one = `loadAgentState(data: { threadId: "c", agentName: "assistant" }) { ${fields} }`
  const all = Array.from({ length: 16 }, (_, i) => `a${i}: ${one}`)
  const query = `{ ${all.join(' ')} }`
  const path = `${url}/copilotkit/graphql`
  if (isQuery) return fetch(`${path}?query=${encodeURIComponent(query)}`)
  const headers = { 'content-type': 'application/json' }
  return fetch(path, { method: 'POST', headers, body: JSON.stringify({ query }) })
}

test.each([
  ['threadExists', 0],
  ['state', 0],
  ['messages', 1],
])(
  'a GraphQL document that loads the %s of one thread 16 times parses the arguments of its calls %i times',
  async (field, expected) => {
    const input = JSON.stringify({ mark: 1, list: Array.from({ length: 1_000 }, () => ({})) })
    const made: ModelEvent = { type: 'call', callId: '1', name: 'look', input }
    const model = scriptedModel([[made], [text('done')]])
    const server = await serve({ model, builtIns: false })
    await (await server.start('c', 'go')).rest()
    for (const isQuery of [false, true]) {
      const parse = vi.spyOn(JSON, 'parse')
      const response = await loadedSixteenTimes(server.url, field, isQuery)
      const { data } = await response.json()
      const count = parse.mock.calls.filter(([json]) => json.startsWith('{"mark"')).length
      parse.mockRestore()
      expect(Object.keys(data)).toHaveLength(16)
      expect(data.a15).toEqual(data.a0)
      if (field === 'messages')
        expect(JSON.parse(data.a15.messages)[1].arguments).toEqual(JSON.parse(input))
      expect(count).toBe(expected)
    }
  },
)

test('a GraphQL document that loads a state of 990,000 line breaks 16 times gets it in steps', async () => {
  const server = await serve({ model: scriptedModel([[text('done')]]) })
  const state = { text: '\n'.repeat(990_000) }
  await agui(server.url, { state, messages: [{ id: 'u1', role: 'user', content: 'go' }] })
  let json = ''
  const longest = await longestJson(async () => {
    json = await (await loadedSixteenTimes(server.url, 'state')).text()
  })
  const { data } = JSON.parse(json)
  expect(JSON.parse(data.a15.state)).toEqual(state)
  expect(longest).toBeLessThan(1_000_000)
})
