import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/core/messages.ts'
import { type ScriptedModel, scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { look, send, story } from '../support/story.ts'
import { clients, httpClient, poster, runBody } from './support.ts'

const run = '/agent/default/run'
const pixel = 'iVBORw0KGgo='

function accepting(...accepts: string[]) {
  return Object.assign(scriptedModel([[text('Seen.')]]), { accepts }) as ScriptedModel
}

const picture = [
  { type: 'text', text: 'what is this?' },
  { type: 'image', source: { type: 'data', value: pixel, mimeType: 'image/png' } },
] as const

describe.for(clients)('$name', ({ open }) => {
  test('shows a picture to a model that reads pictures, and finds it in the history', async () => {
    const model = accepting('image/*')
    const server = await serve({ model, builtIns: false })
    const client = await open(server.url, 't')
    client.agent.addMessage({ id: 'u1', role: 'user', content: [...picture] } as never)
    await client.run()
    expect((model.requests[0]!.messages[0] as Message).parts).toMatchObject([
      { type: 'text', text: 'what is this?' },
      { type: 'media', mediaType: 'image/png', data: pixel },
    ])
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.agent.messages).toEqual(client.agent.messages)
    expect(fresh.shown().at(-1)).toBe('assistant: Seen.')
  })
})

test.for([
  ['a picture', { type: 'image', source: { type: 'data', value: pixel, mimeType: 'image/png' } }],
  ['a sound by its address', { type: 'audio', source: { type: 'url', value: 'https://a.test/b' } }],
  ['a file of the older form', { type: 'binary', mimeType: 'application/pdf', data: pixel }],
] as const)(
  '%s is refused where the model reads only text, and the part is named',
  async ([, part]) => {
    const server = await story([[text('No.')]])
    const post = poster(server.url)
    const content = [{ type: 'text', text: 'see:' }, part]
    const { status, json } = await post(run, runBody('t', [{ id: 'u', role: 'user', content }]))
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(json).toMatchObject({ code: 'media_unsupported' })
    expect(json.field).toMatch(/messages\.\w+\.content\.1$/)
    expect(server.model.requests).toEqual([])
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
  },
)

test.for([
  ['what is not base64', { type: 'data', value: '%%%%', mimeType: 'image/png' }, /not base64/],
  [
    'an address that holds no base64',
    { type: 'url', value: 'data:image/png;base64,%' },
    /not base64/,
  ],
] as const)('%s is refused, for it would stand in every later call', async ([, source, words]) => {
  const server = await serve({ model: accepting('image/*'), builtIns: false })
  const content = [{ type: 'image', source }]
  const list = [{ id: 'u', role: 'user', content }]
  const { status, json } = await poster(server.url)(run, runBody('t', list))
  expect(status).toBe(415)
  expect(json).toMatchObject({ code: 'media_unsupported', field: 'messages.u.content.0' })
  expect(json.message).toMatch(words)
  expect((await server.request('GET', '/chats/t')).status).toBe(404)
})

test('a picture that comes inside of its address is the same picture', async () => {
  const model = accepting('image/*')
  const server = await serve({ model, builtIns: false })
  const source = { type: 'url', value: `data:image/png;base64,${pixel}` }
  const list = [{ id: 'u', role: 'user', content: [{ type: 'image', source }] }]
  expect((await poster(server.url)(run, runBody('t', list))).status).toBe(200)
  expect((model.requests[0]!.messages[0] as Message).parts).toEqual([
    { type: 'media', mediaType: 'image/png', data: pixel },
  ])
})

test('a client may ask for the binary encoding, and reads the same events from it', async () => {
  const steps = [
    [{ type: 'reasoning', text: 'Hm.' } as const, text('I look.'), look('1', 'sea')],
    [send('2')],
    [text('Paid.')],
  ]
  const server = await story(steps)
  const proto = httpClient(server.url, 't')
  proto.agent.accept = 'application/vnd.ag-ui.event+proto'
  const kinds: (string | null)[] = []
  const ask = proto.agent.fetch
  proto.agent.fetch = async (url, init) => {
    const response = await ask(url, init)
    kinds.push(response.headers.get('content-type'))
    return response
  }
  const say = async (words: string) => {
    proto.agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: words })
    await proto.agent.runAgent()
  }
  await say('go')
  const [interrupt] = proto.agent.pendingInterrupts
  expect(interrupt).toMatchObject({ reason: 'confirmation', message: 'Send 5 to “ann”' })
  const answer = { interruptId: interrupt!.id, status: 'resolved', payload: { approved: true } }
  await proto.agent.runAgent({ resume: [answer as never] })
  expect(kinds).toEqual(Array(2).fill('application/vnd.ag-ui.event+proto'))
  const plain = httpClient(server.url, 't')
  await plain.connect()
  expect(proto.shown()).toEqual(plain.shown())
  expect(plain.shown().at(-1)).toBe('assistant: Paid.')
  await proto.agent.connectAgent()
  expect(proto.shown()).toEqual(plain.shown())
})
