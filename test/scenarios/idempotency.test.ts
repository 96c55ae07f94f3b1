import { expect, test } from 'vitest'
import { RuntimeError } from '../../src/core/errors.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
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
  const named = await post(server, '/chats', { id: first.id }, key)
  expect(named.status).toBe(409)
})

test('a GraphQL request without a thread that is sent again with the same key starts one run', async () => {
  const model = scriptedModel(() => [text('Hello.')])
  const server = await serve({ model })
  const send = () => generate(server.url, 'm1', 'hi', { threadId: undefined }, key)
  const first = await send()
  expect((await send()).threadId).toBe(first.threadId)
  expect(model.requests).toHaveLength(1)
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
