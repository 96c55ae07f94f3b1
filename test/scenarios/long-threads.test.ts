import { decode } from '@ag-ui/proto'
import { expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
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

async function longThread() {
  const model = scriptedModel(() => [text('done')])
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
  const { run, server } = await longThread()
  const added = said.map((message) => ({ ...message, id: `next-${message.id}` }))
  const runs = await Promise.all([run('r2', added), run('r3', added)])
  for (const one of runs) await one.text()
  const listed = await fetch(`${server.url}/copilotkit/threads/long/messages`)
  const { messages } = (await listed.json()) as { messages: { id: string; role: string }[] }
  const ids = messages.filter(({ role }) => role === 'user').map(({ id }) => id)
  expect(ids).toEqual([...said, picture, ...added].map(({ id }) => id))
})
