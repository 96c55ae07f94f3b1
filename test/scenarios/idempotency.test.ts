import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { RuntimeError } from '../../src/core/errors.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { gate } from '../support/gate.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { find, tools } from '../support/tools.ts'

const key = { 'idempotency-key': 'k' }
const post = (server: Served, path: string, body?: object, headers = {}) =>
  server.request('POST', path, body, headers)

/** A model whose every call fails. */
const failing = () =>
  scriptedModel(() => {
    throw new RuntimeError('model_request', 'told to fail')
  })

test('a retry that is sent again with the same key does not run again a run that failed again', async () => {
  const model = failing()
  const server = await serve({ model })
  const stream = await server.start('c', 'go')
  await stream.rest()
  const run = stream.response.headers.get('x-interaction-id')
  const path = `/chats/c/interactions/${run}/retry`
  const first = await (await server.open('POST', path, undefined, key)).rest()
  expect(model.requests).toHaveLength(2)
  const again = await (await server.open('POST', path, undefined, key)).rest()
  expect(model.requests).toHaveLength(2)
  expect(again).toEqual(first)
  const other = await (
    await server.open('POST', path, undefined, { 'idempotency-key': 'l' })
  ).rest()
  expect(find(other, 'error').error).toContain('told to fail')
  expect(model.requests).toHaveLength(3)
})

test('a key that started an interaction cannot retry another', async () => {
  const server = await serve({ model: failing() })
  const stream = await server.open('POST', '/chats/c/interactions', { user_message: 'go' }, key)
  await stream.rest()
  const run = stream.response.headers.get('x-interaction-id')
  const response = await post(server, `/chats/c/interactions/${run}/retry`, undefined, key)
  expect(response.status).toBe(422)
})

test('two requests for a new chat with the same key create one chat', async () => {
  const server = await serve()
  const make = async () => (await post(server, '/chats', { title: 'T' }, key)).json()
  const [first, second] = await Promise.all([make(), make()])
  expect(second).toEqual(first)
  expect((await (await server.request('GET', '/chats')).json()).chats).toHaveLength(1)
  const named = await post(server, '/chats', { id: first.id })
  expect(named.status).toBe(409)
})

test('a key that created a chat cannot create one with another title or id', async () => {
  const server = await serve()
  const first = await (await post(server, '/chats', { title: 'A' }, key)).json()
  for (const body of [{ title: 'B' }, {}, { id: first.id }]) {
    const other = await post(server, '/chats', body, key)
    expect(other.status).toBe(422)
    expect((await other.json()).error.code).toBe('idempotency_mismatch')
  }
  const { chats } = await (await server.request('GET', '/chats')).json()
  expect(chats.map(({ title }: { title: string }) => title)).toEqual(['A'])
})

test('of two requests at once with one key and different titles, one creates a chat and the other gets 422', async () => {
  const server = await serve()
  const make = (title: string) => post(server, '/chats', { title }, key)
  const both = await Promise.all([make('A'), make('B')])
  expect(both.map(({ status }) => status).sort()).toEqual([201, 422])
})

test('a request for a chat with an id that is sent again with the same key gets the chat again', async () => {
  const server = await serve()
  const make = (body: object, headers = {}) => post(server, '/chats', body, headers)
  const first = await make({ id: 'own' }, key)
  const again = await make({ id: 'own' }, key)
  expect([first.status, again.status]).toEqual([201, 201])
  expect(await again.json()).toEqual(await first.json())
  expect((await make({ id: 'own', title: 'T' }, key)).status).toBe(422)
  expect((await make({ id: 'own' })).status).toBe(409)
  expect((await make({ id: 'own' }, { 'idempotency-key': 'l' })).status).toBe(409)
})

test('a key that created a chat cannot start an interaction in it', async () => {
  const server = await serve({ model: scriptedModel(() => [text('Hello.')]) })
  await post(server, '/chats', { id: 'c' }, key)
  const response = await post(server, '/chats/c/interactions', { user_message: 'hi' }, key)
  expect(response.status).toBe(422)
})

test('a GraphQL request without a thread that is sent again with the same key starts one run', async () => {
  const model = scriptedModel(() => [text('Hello.')])
  const server = await serve({ model })
  const send = () => generate(server.url, 'm1', 'hi', { threadId: undefined }, key)
  const first = await send()
  expect((await send()).threadId).toBe(first.threadId)
  expect(model.requests).toHaveLength(1)
})

const threads: [string, object][] = [
  ['with a threadId', { threadId: 'c' }],
  ['without a threadId', { threadId: undefined }],
]

/** A GraphQL run with the key, whose model waits until the test opens `inside`. `send` sends further requests with the key. */
async function waitingRun(at: object) {
  const inside = gate()
  const model = scriptedModel(async function* (_request, _call, signal) {
    await inside.pass(signal)
    yield text('Hello.')
  })
  const server = await serve({ model })
  const send = (id: string, content: string) => generate(server.url, id, content, at, key)
  const first = send('m1', 'hi')
  await inside.reached
  return { server, model, inside, send, first }
}

const kindsOf = async (server: Served, chat: string) =>
  (await server.journal(chat)).map(({ kind }) => kind)

test.each(threads)(
  'a GraphQL key that is used with another message, %s, is refused and cancels nothing',
  async (_, at) => {
    const { server, model, inside, send, first } = await waitingRun(at)
    await expect(send('m2', 'hello')).rejects.toThrow('idempotency_mismatch')
    inside.open()
    const { threadId, status } = await first
    expect(status.code).toBe('Success')
    expect(model.requests).toHaveLength(1)
    const kinds = await kindsOf(server, threadId)
    expect(kinds).not.toContain('run.cancelled')
    expect(kinds.filter((kind) => kind === 'run.queued')).toHaveLength(1)
  },
)

test.each(threads)(
  'a GraphQL request sent again with a new message id and the same key, %s, joins the first run',
  async (_, at) => {
    const { model, inside, send, first } = await waitingRun(at)
    const second = send('m2', 'hi')
    await sleep(200) // the second request may also come after the end of the run
    inside.open()
    const answers = [await first, await second, await send('m3', 'hi')]
    for (const { threadId, status, messages } of answers) {
      expect(threadId).toBe(answers[0].threadId)
      expect(status.code).toBe('Success')
      expect(JSON.stringify(messages)).toContain('Hello.')
    }
    expect(model.requests).toHaveLength(1)
  },
)

test('a refused GraphQL key does not answer the question that came with it', async () => {
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [text('Sent.')]
      : [call('1', 'send', { to: 'a', amount: 1 })],
  )
  const box = tools()
  const server = await serve({ model, tools: box.all, builtIns: false })
  const { metaEvents } = await generate(server.url, 'm1', 'send it', {}, key)
  const answer = { name: 'LangGraphInterruptEvent', value: metaEvents[0].value, response: 'yes' }
  const more = { metaEvents: [answer] }
  await expect(generate(server.url, 'm2', 'and more', more, key)).rejects.toThrow(
    'idempotency_mismatch',
  )
  expect(await kindsOf(server, 'c')).not.toContain('ask.answered')
  expect(box.sent).toHaveLength(0)
})

describe('an AG-UI run with an Idempotency-Key', () => {
  const user = (id: string, content: string) => ({ id, role: 'user', content })

  test('an AG-UI key that is used with another message gets 422 and starts no run', async () => {
    const model = scriptedModel(() => [text('Hello.')])
    const server = await serve({ model })
    await agui(server.url, { runId: 'r1', messages: [user('m1', 'hi')] }, key)
    const body = { threadId: 'c', runId: 'r2', messages: [user('m2', 'hello')], tools: [] }
    const path = '/copilotkit/agent/default/run'
    const other = await post(server, path, { ...body, context: [], state: {} }, key)
    expect(other.status).toBe(422)
    expect((await other.json()).code).toBe('idempotency_mismatch')
    expect(model.requests).toHaveLength(1)
  })

  test('an AG-UI request sent again with the same key and new ids is shown the first run', async () => {
    const model = scriptedModel(() => [text('Hello.')])
    const server = await serve({ model })
    const send = (runId: string, id: string) =>
      agui(server.url, { runId, messages: [user(id, 'hi')] }, key)
    await send('r1', 'm1')
    for (const id of ['m2', 'm1']) {
      const events = await send(`r ${id}`, id)
      expect(events.at(-1).type).toBe('RUN_FINISHED')
      expect(JSON.stringify(events)).toContain('Hello.')
    }
    expect(model.requests).toHaveLength(1)
  })

  test('an AG-UI request sent again with the same key while its run waits for an approval is shown the question', async () => {
    const model = scriptedModel(() => [call('1', 'send', { to: 'a', amount: 1 })])
    const server = await serve({ model, tools: tools().all, builtIns: false })
    const send = (runId: string, id: string) =>
      agui(server.url, { runId, messages: [user(id, 'hi')] }, key)
    const first = (await send('r1', 'm1')).at(-1)
    const again = (await send('r2', 'm2')).at(-1)
    expect(first.outcome.type).toBe('interrupt')
    expect(again.outcome).toEqual(first.outcome)
  })
})

test('a decision on the workflow wire that is sent again with the same key succeeds again', async () => {
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [text('Sent.')]
      : [call('1', 'send', { to: 'a', amount: 1 })],
  )
  const box = tools()
  const server = await serve({ model, tools: box.all, builtIns: false })
  const stream = await server.start('c', 'send it')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const decide = async (action: string) => {
    const path = `/copilotkit/approval/${approval_id}`
    const response = await post(server, path, { action, user_id: 'u' }, key)
    return [response.status, (await response.json()).success]
  }
  expect(await decide('approve')).toEqual([200, true])
  expect(await decide('approve')).toEqual([200, true])
  expect(await decide('reject')).toEqual([422, false])
  await stream.rest()
  expect(box.sent).toHaveLength(1)
})

test('a budget reset that is sent again with the same key resets the counter once', async () => {
  const server = await serve({ model: scriptedModel(() => [text('Hello.')]) })
  await (await server.start('c', 'hi')).rest()
  const reset = async (body: object) => {
    const response = await server.request('PUT', '/threads/c/governor', body, key)
    return [response.status, (await response.json()).actionsUsed]
  }
  expect(await reset({ reset: true })).toEqual([200, 0])
  await (await server.start('c', 'again')).rest()
  expect(await reset({ reset: true })).toEqual([200, 1])
  expect(await reset({ actionLimit: 5 })).toEqual([422, undefined])
})

test('an unknown outcome that the store itself reports names the chat and the run', async () => {
  const server = await serve({ model: scriptedModel(() => [text('Hello.')]) })
  const { store } = server.server
  const append = store.append.bind(store)
  let written: string | undefined
  store.append = async (threadId, entries, guard) => {
    const queued = entries.find(({ kind }) => kind === 'run.queued')
    if (!queued || written !== undefined) return await append(threadId, entries, guard)
    written = queued.runId
    throw new RuntimeError('outcome_unknown') // for example a failed fsync
  }
  const response = await post(server, '/chats/c/interactions', { user_message: 'hi' })
  expect(response.status).toBe(504)
  const { error } = await response.json()
  expect(error).toMatchObject({ code: 'outcome_unknown', chat_id: 'c', interaction_id: written })
})
