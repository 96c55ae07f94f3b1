import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { compose } from '../../src/compose.ts'
import { readConfig } from '../../src/config.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { chatsClient } from '../support/chats.ts'
import { generate } from '../support/graphql.ts'
import { type RawRequest, raw } from '../support/raw.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, tools } from '../support/tools.ts'

const type = { 'content-type': 'application/json' }
const post = (path: string, body: unknown, headers: Record<string, string> = {}): RawRequest => ({
  method: 'POST',
  path,
  headers: { ...type, ...headers },
  body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
})
const get = (path: string, headers?: Record<string, string>): RawRequest => ({
  path,
  ...(headers && { headers }),
})

const start = '/chats/new/interactions'
const hi = { user_message: 'hi' }
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

describe('bad input is refused by name and leaves no trace', () => {
  let url = ''
  let data = ''
  let close = async () => {}
  let id = ''
  let approval = ''

  beforeAll(async () => {
    const directory = await temporaryDirectory()
    data = directory.path
    const env = { PORT: '0', LOG_LEVEL: 'silent', HANDRAIL_DATA: data, HANDRAIL_MAX_BODY: '20000' }
    const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })]])
    const settings = { model, tools: tools().all, builtIns: false }
    const server = await compose(readConfig({ ...env, HANDRAIL_DRAIN_MS: '0' }), settings)
    url = `http://127.0.0.1:${await server.listen()}`
    const stream = await chatsClient(url).start('known', 'pay')
    approval = find(await stream.until('approval_required'), 'approval_required').approval_id
    id = stream.response.headers.get('x-interaction-id')!
    stream.leave()
    const thread = await server.runtime.thread('known')
    if (thread.state.leg !== null)
      await new Promise<void>((resolve) => {
        thread.listen(({ kind }) => kind === 'run.waiting' && resolve())
      })
    await server.store.sync?.()
    close = async () => {
      await server.close()
      await directory.remove()
    }
  })
  afterAll(() => close())

  /** All that a client or an operator could notice: the lists, the chat, the folders. */
  async function traces() {
    const client = chatsClient(url)
    const list = await (await client.request('GET', '/chats')).json()
    const folders = await readdir(join(data, 'chats')).catch(() => [])
    return { list, chat: await client.chat('known'), folders }
  }

  const at = (action: string) => `/chats/known/interactions/$ID/${action}`
  const approve = (body: object) => post(at('approve'), { approval_id: '$APPROVAL', ...body })
  const proto = '{"user_message":"hi","__proto__":{"admin":true}}'

  // biome-ignore format: a table
  const cases: [name: string, request: RawRequest, status: number, code: string, field?: string][] = [
    ['no body', { method: 'POST', path: start, headers: type }, 400, 'invalid_json', 'body'],
    ['no body and no type', { method: 'POST', path: start }, 415, 'unsupported_media_type'],
    ['a body that is not JSON', post(start, '{"user_message"'), 400, 'invalid_json', 'body'],
    ['an array', post(start, []), 400, 'invalid_request', 'body'],
    ['null', post(start, 'null'), 400, 'invalid_request', 'body'],
    ['a string', post(start, '"hi"'), 400, 'invalid_request', 'body'],
    ['a missing field', post(start, {}), 400, 'invalid_request', 'body.user_message'],
    ['a wrong type', post(start, { user_message: 3 }), 400, 'invalid_request', 'body.user_message'],
    ['null for a text', post(start, { user_message: null }), 400, 'invalid_request', 'body.user_message'],
    ['an empty text', post(start, { user_message: '' }), 400, 'invalid_request', 'body.user_message'],
    ['a half character', post(start, '{"user_message":"\\ud800"}'), 400, 'invalid_request', 'body.user_message'],
    ['an unknown field', post(start, { ...hi, model: 'x' }), 400, 'invalid_request', 'body.model'],
    ['__proto__', post(start, proto), 400, 'invalid_request', 'body.__proto__'],
    ['constructor', post(start, { ...hi, constructor: {} }), 400, 'invalid_request', 'body.constructor'],
    ['an agent that is not there', post(start, { ...hi, agent: 'x' }), 404, 'agent_not_found'],
    ['an agent named like a method', post(start, { ...hi, agent: 'constructor' }), 404, 'agent_not_found'],
    ['another content type', post(start, hi, { 'content-type': 'text/plain' }), 415, 'unsupported_media_type'],
    ['a form', post(start, 'user_message=hi', { 'content-type': 'application/x-www-form-urlencoded' }), 415, 'unsupported_media_type'],
    ['bytes that are not UTF-8', post(start, Buffer.from('{"user_message":"\xff"}', 'latin1')), 400, 'invalid_encoding', 'body'],
    ['JSON too deep', post(start, `{"user_message":${nested(65)}}`), 400, 'body_too_deep', 'body'],
    ['JSON as deep as the body allows', post(start, nested(9_000)), 400, 'body_too_deep', 'body'],
    ['a body too large', post(start, { user_message: 'x'.repeat(20_000) }), 413, 'body_too_large', 'body'],
    ['a body too large that does not say so', { ...post(start, ''), body: ['{"user_message":"', 'x'.repeat(15_000), 'x'.repeat(15_000)] }, 413, 'body_too_large', 'body'],
    ['an unknown query', post(`${start}?wait=1`, hi), 400, 'invalid_request', 'query.wait'],
    ['a bad choice', post(`${start}?when_busy=now`, hi), 400, 'invalid_request', 'query.when_busy'],
    ['a query twice', post(`${start}?when_busy=queue&when_busy=queue`, hi), 400, 'invalid_request', 'query.when_busy'],
    ['__proto__ as a query', post(`${start}?__proto__=1`, hi), 400, 'invalid_request', 'query.__proto__'],
    ['an empty key', post(start, hi, { 'idempotency-key': '' }), 400, 'invalid_request', 'header.idempotency-key'],
    ['a long key', post(start, hi, { 'idempotency-key': 'k'.repeat(5_000) }), 400, 'invalid_request', 'header.idempotency-key'],

    ['a bad place to go on from', post(start, hi, { 'last-event-id': 'x' }), 400, 'invalid_cursor', 'header.last-event-id'],

    ['a control character in an id', post('/chats/a%00b/interactions', hi), 400, 'invalid_id', 'path.chat_id'],
    ['a line break in an id', post('/chats/a%0Ab/interactions', hi), 400, 'invalid_id', 'path.chat_id'],
    ['half an encoding in an id', post('/chats/%ff/interactions', hi), 400, 'invalid_id', 'path.chat_id'],
    ['a cut encoding in an id', post('/chats/%e2%82/interactions', hi), 400, 'invalid_id', 'path.chat_id'],
    ['a half character in an id', post('/chats/%ed%a0%80/interactions', hi), 400, 'invalid_id', 'path.chat_id'],
    ['a very long id', post(`/chats/${'x'.repeat(201)}/interactions`, hi), 400, 'invalid_id', 'path.chat_id'],
    ['an empty id', post('/chats//interactions', hi), 404, 'not_found'],
    ['a path for an id', post('/chats/../interactions', hi), 404, 'not_found'],
    ['an encoded path for an id', post('/chats/%2e%2e/interactions', hi), 404, 'not_found'],
    ['a dot to create', post('/chats', { id: '.' }), 400, 'invalid_request', 'body.id'],
    ['two dots to create', post('/chats', { id: '..' }), 400, 'invalid_request', 'body.id'],
    ['an empty id to create', post('/chats', { id: '' }), 400, 'invalid_request', 'body.id'],
    ['a control character to create', post('/chats', { id: 'a\u0007' }), 400, 'invalid_request', 'body.id'],
    ['a half character to create', post('/chats', '{"id":"\\udc00"}'), 400, 'invalid_request', 'body.id'],
    ['a half character in a title', post('/chats', '{"title":"\\udc00"}'), 400, 'invalid_request', 'body.title'],
    ['a long title', post('/chats', { title: 'x'.repeat(201) }), 400, 'invalid_request', 'body.title'],
    ['an id that is taken', post('/chats', { id: 'known' }), 409, 'thread_exists'],

    ['a chat that is not there', get('/chats/none'), 404, 'thread_not_found'],
    ['its interaction', get('/chats/none/interactions/x'), 404, 'thread_not_found'],
    ['to delete it', { method: 'DELETE', path: '/chats/none' }, 404, 'thread_not_found'],
    ['an interaction that is not there', get('/chats/known/interactions/x'), 404, 'run_not_found'],
    ['one named like a method', get('/chats/known/interactions/__proto__'), 404, 'run_not_found'],
    ['to cancel it', post('/chats/known/interactions/x/cancel', {}), 404, 'run_not_found'],
    ['to edit it', post('/chats/known/interactions/x/edit', { new_user_message: 'x' }), 404, 'run_not_found'],
    ['to retry it', post('/chats/known/interactions/x/retry', {}), 404, 'run_not_found'],
    ['to approve it', post('/chats/known/interactions/x/approve', { approval_id: 'a', approved: true }), 404, 'run_not_found'],
    ['an approval that is not there', approve({ approval_id: 'ask_x', approved: true }), 404, 'ask_not_found'],
    ['a cancel with something to say', post(at('cancel'), { why: 'x' }), 400, 'invalid_request', 'body.why'],
    ['no decision', approve({}), 400, 'invalid_request', 'body.approved'],
    ['a decision in words', approve({ approved: 'yes' }), 400, 'invalid_request', 'body.approved'],
    ['no approval', post(at('approve'), { approved: true }), 400, 'invalid_request', 'body.approval_id'],
    ['an input that is no object', approve({ approved: true, edited_input: [] }), 400, 'invalid_request', 'body.edited_input'],
    ['a foreign input', approve({ approved: true, edited_input: { to: 'x', amount: 1, as: 'root' } }), 400, 'invalid_request', 'body.edited_input.as'],
    ['__proto__ in an input', post(at('approve'), '{"approval_id":"$APPROVAL","approved":true,"edited_input":{"to":"x","amount":1,"__proto__":{"a":1}}}'), 400, 'invalid_request', 'body.edited_input.__proto__'],
    ['a half character in an input', post(at('approve'), '{"approval_id":"$APPROVAL","approved":true,"edited_input":{"to":"\\ud800","amount":1}}'), 400, 'invalid_request', 'body.edited_input.to'],
    ['a half character in a reason', post(at('approve'), '{"approval_id":"$APPROVAL","approved":false,"reason":"\\ud800"}'), 400, 'invalid_request', 'body.reason'],
    ['a half character in an answer', post(at('approve'), '{"approval_id":"$APPROVAL","answer":"\\ud800"}'), 400, 'invalid_request', 'body.answer'],
    ['a limit below zero', approve({ approved: true, newLimit: -1 }), 400, 'invalid_request', 'body.newLimit'],
    ['an outcome we do not know', approve({ outcome: 'maybe' }), 400, 'invalid_request', 'body.outcome'],
    ['a retry of what has not failed', post(at('retry'), {}), 409, 'run_not_failed'],

    ['a bad cursor', get(`${at('events')}?after=x`), 400, 'invalid_cursor', 'query.after'],
    ['a negative cursor', get(`${at('events')}?after=-1`), 400, 'invalid_cursor', 'query.after'],
    ['a cursor of the future', get(`${at('events')}?after=99999`), 400, 'invalid_cursor', 'query.after'],
    ['a huge cursor', get(`${at('events')}?after=${'9'.repeat(400)}`), 400, 'invalid_cursor', 'query.after'],
    ['a bad Last-Event-ID', get(at('events'), { 'last-event-id': '1; drop' }), 400, 'invalid_cursor', 'header.last-event-id'],
    ['a bad page', get('/chats?cursor=x'), 400, 'invalid_cursor', 'query.cursor'],
    ['a forged page', get(`/chats?cursor=${Buffer.from('["newest",{},[]]').toString('base64url')}`), 400, 'invalid_cursor', 'query.cursor'],
    ['a limit of none', get('/chats?limit=0'), 400, 'invalid_request', 'query.limit'],
    ['a limit too large', get('/chats?limit=1001'), 400, 'invalid_request', 'query.limit'],
    ['a limit in words', get('/chats/known?limit=all'), 400, 'invalid_request', 'query.limit'],
    ['a limit in halves', get('/chats/known?limit=1.5'), 400, 'invalid_request', 'query.limit'],
    ['before what is not there', get('/chats/known?before=x'), 404, 'run_not_found', 'query.before'],
    ['to include something else', get('/chats/known?include=all'), 400, 'invalid_request', 'query.include'],
    ['nothing said to a workflow', post('/copilotkit/chat', { messages: [{ role: 'user', content: '  ' }] }), 400, 'invalid_request', 'body.messages'],
    ['a half character said to it', post('/copilotkit/chat', '{"messages":[{"role":"user","content":"\\ud800"}]}'), 400, 'invalid_request', 'body.messages.0.content'],
    ['an id that an address cannot hold', post('/copilotkit/chat', { messages: [{ id: '..', role: 'user', content: 'x' }] }), 400, 'invalid_request', 'body.messages.0.id'],
    ['two messages under one id', post('/copilotkit/chat', { messages: [{ id: 'm', role: 'user', content: 'x' }, { id: 'm', role: 'user', content: 'y' }] }), 400, 'invalid_request', 'body.messages'],
    ['an empty wish to analyse', post('/agent-orchestrator', { account_id: 'a', user_message: ' ' }), 400, 'invalid_request', 'body.user_message'],
    ['another address', get('/admin'), 404, 'not_found'],
    ['more path than there is', get('/chats/known/interactions/x/events/y'), 404, 'not_found'],
  ]

  test.each(cases)('%s', async (_name, request, status, code, field) => {
    const before = await traces()
    const fill = (text: string) => text.replaceAll('$ID', id).replaceAll('$APPROVAL', approval)
    const { body } = request
    const response = await raw(url, {
      ...request,
      path: fill(request.path),
      ...(typeof body === 'string' && { body: fill(body) }),
    })
    expect([response.status, response.text]).toEqual([status, expect.stringContaining(code)])
    expect(response.headers['content-type']).toMatch(/^application\/json/)
    const { error } = JSON.parse(response.text)
    expect(error).toMatchObject({ code, retryable: false })
    expect(error.field).toBe(field)
    expect(error.message.length).toBeGreaterThan(10)
    expect(response.text).not.toMatch(/\n\s+at |node_modules|\.ts:/)
    expect(await traces()).toEqual(before)
  })

  test.each([
    ['PUT', '/chats', 'GET, POST'],
    ['PATCH', '/chats/known', 'GET, DELETE'],
    ['GET', '/chats/known/interactions', 'POST'],
    ['GET', '/chats/known/interactions/x/approve', 'POST'],
    ['DELETE', '/chats/known/interactions/x/cancel', 'POST'],
    ['POST', '/chats/known/interactions/x/events', 'GET'],
    ['OPTIONS', '/chats/known', 'GET, DELETE'],
    ['POST', '/healthz', 'GET'],
  ])('%s %s is told what the address takes', async (method, path, allow) => {
    const response = await raw(url, { method, path })
    expect(response.status).toBe(405)
    expect(response.headers.allow?.toString().split(', ').sort()).toEqual(allow.split(', ').sort())
    expect(JSON.parse(response.text).error).toMatchObject({ code: 'method_not_allowed' })
  })

  test.each(['evil.example', 'evil.example:8000', '10.0.0.1', 'localhost.evil.example', '[::2]'])(
    'Host: %s is not answered without auth',
    async (host) => {
      for (const path of ['/chats', '/healthz', '/openapi.json']) {
        const response = await raw(url, { path, headers: { host } })
        expect([response.status, JSON.parse(response.text).error.code]).toEqual([
          421,
          'host_not_allowed',
        ])
      }
    },
  )

  test.each(['localhost', '127.0.0.1:8000', '[::1]', 'app.localhost'])(
    'Host: %s is answered',
    async (host) => {
      expect((await raw(url, { path: '/chats', headers: { host } })).status).toBe(200)
    },
  )

  test('the server is well afterwards, and no prototype has changed', async () => {
    expect(({} as Record<string, unknown>).admin).toBeUndefined()
    expect((await raw(url, { path: '/readyz' })).status).toBe(200)
  })
})

describe('ids that look dangerous are only ids', () => {
  const ids = [
    '..x',
    '%2e%2e%2fx',
    '%ff',
    '../../etc/passwd',
    '/etc/passwd',
    'a/b',
    'a b',
    '"quoted" \'and\' `ticked`',
    'C:\\x',
    '日本語 ☃ 😀',
    'é',
    'e\u0301',
    '*',
    '?after=1#x',
    "'; drop table chats; --",
    `$\{7*7}{{7*7}}`,
    '__proto__',
    'constructor',
    'toString',
    'con',
    'CHAT',
    'chat',
    '~',
    '.hidden',
    'x'.repeat(200),
    '😀'.repeat(50),
    '\u202Eright to left',
  ]

  test('each is one chat, end to end, inside the data directory', async () => {
    const model = scriptedModel((request) => {
      const [part] = request.messages.at(-1)!.parts
      return [text(part?.type === 'text' ? `re: ${part.text}` : '')]
    })
    const server = await serve({ model, builtIns: false })
    const parent = join(server.data, '..')
    const outside = await readdir(parent)
    for (const [n, id] of ids.entries()) {
      const frames = await (await server.start(id, `message ${n}`)).rest()
      expect(find(frames, 'interaction_started').chat_id, id).toBe(id)
      expect(find(frames, 'answer').content).toBe(`re: message ${n}`)
    }
    for (const [n, id] of ids.entries()) {
      const chat = await server.chat(id)
      expect(chat.id).toBe(id)
      expect(chat.interactions).toMatchObject([{ user_message: `message ${n}` }])
      expect(model.requests[n]?.messages).toHaveLength(1)
    }
    const { chats } = (await (await server.request('GET', '/chats?limit=1000')).json()) as {
      chats: { id: string }[]
    }
    expect(chats.map((chat) => chat.id).sort()).toEqual([...ids].sort())
    await server.server.store.sync?.()
    const folders = await readdir(join(server.data, 'chats'))
    expect(folders).toHaveLength(ids.length)
    for (const folder of folders) expect(relative('.', folder)).not.toMatch(/^\.\.|\//)
    const news = (await readdir(parent)).filter((name) => !outside.includes(name))
    expect(news.filter((name) => !name.startsWith('handrail-'))).toEqual([])

    const gone = ids[3]!
    const path = `/chats/${encodeURIComponent(gone)}`
    expect((await server.request('DELETE', path)).status).toBe(204)
    expect((await server.request('GET', path)).status).toBe(404)
    expect((await server.chat(ids[5]!)).id).toBe(ids[5])
  })

  test('the ids of a created chat and of its address are the same', async () => {
    const server = await serve({ builtIns: false })
    for (const id of ids) {
      expect((await server.request('POST', '/chats', { id })).status, id).toBe(201)
      expect((await server.chat(id)).id).toBe(id)
    }
  })
})

describe('with API keys', () => {
  const ann = 'ann-key-0123456789abcdef'
  const bob = 'bob-key-0123456789abcdef'
  const env = { HANDRAIL_API_KEYS: `${ann}=ann,${bob}=bob`, HOST: '127.0.0.1' }
  const as = (key: string) => ({ authorization: `Bearer ${key}` })

  async function two() {
    const box = tools()
    const model = scriptedModel((request) => {
      const last = request.messages.at(-1)!
      return last.role === 'user'
        ? [call(`call_${last.id}`, 'send', { to: 'x', amount: 1 })]
        : [text('Done.')]
    })
    const server = await serve({ model, tools: box.all, builtIns: false }, { env })
    return {
      server,
      box,
      ann: chatsClient(server.url, as(ann)),
      bob: chatsClient(server.url, as(bob)),
    }
  }

  async function routes(url: string) {
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, unknown>>
    }
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
    )
  }

  /** A body that each command would take. */
  const bodies: Record<string, unknown> = {
    interactions: { user_message: 'x' },
    edit: { new_user_message: 'x' },
    approve: { approval_id: '$ASK', approved: true },
    cancel: {},
    retry: {},
    chats: {},
  }

  test('nobody is let in without one, on any route but the open ones', async () => {
    const { server } = await two()
    const open = ['/', '/healthz', '/readyz', '/openapi.json', '/docs']
    for (const { path, method } of await routes(server.url)) {
      const address = path.replace('{chat_id}', 'c').replace('{interaction_id}', 'i')
      const wrong: Record<string, string>[] = [
        {},
        as('wrong-key-0123456789abcdef'),
        as(`${ann}x`),
        as(''),
        { 'x-api-key': 'no' },
      ]
      for (const headers of wrong) {
        const response = await raw(server.url, { method, path: address, headers })
        if (open.includes(path)) expect(response.status, path).toBe(path === '/' ? 302 : 200)
        else {
          expect(response.status, `${method} ${path}`).toBe(401)
          const { error, errors, code = error?.code } = JSON.parse(response.text)
          expect(code ?? errors[0].extensions.handrail.code).toBe('unauthenticated')
        }
      }
    }
    expect((await raw(server.url, { path: '/chats', headers: { 'x-api-key': ann } })).status).toBe(
      200,
    )
    expect(
      (await raw(server.url, { path: '/chats', headers: { host: 'my.example', ...as(bob) } }))
        .status,
    ).toBe(200)
  })

  test('two users with the same chat id have two chats (I10)', async () => {
    const users = await two()
    const stream = await users.ann.start('shared', 'mine')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const id = stream.response.headers.get('x-interaction-id')!
    const theirs = await users.bob.start('shared', 'theirs')
    await theirs.until('approval_required')
    const [hers, his] = [await users.ann.chat('shared'), await users.bob.chat('shared')]
    expect(hers.interactions).toMatchObject([{ id, user_message: 'mine' }])
    expect(his.interactions).toMatchObject([{ user_message: 'theirs' }])
    const list = async (client: typeof users.ann) =>
      (await (await client.request('GET', '/chats')).json()) as { chats: { title: string }[] }
    expect((await list(users.ann)).chats).toMatchObject([{ id: 'shared', title: 'mine' }])
    expect((await list(users.bob)).chats).toMatchObject([{ id: 'shared', title: 'theirs' }])

    const forged = await users.bob.approve('shared', id, { approval_id, approved: true })
    expect(forged.status).toBe(404)
    expect((await users.bob.request('DELETE', '/chats/shared')).status).toBe(204)
    expect((await users.ann.chat('shared')).interactions).toHaveLength(1)
    expect((await users.bob.request('GET', '/chats/shared')).status).toBe(404)
    await users.ann.approve('shared', id, { approval_id, approved: true })
    expect((await stream.rest()).at(-1)?.data.status).toBe('COMPLETED')
    expect(users.box.sent).toHaveLength(1)
    theirs.leave()
  })

  test('on every route, a stranger’s chat is like one that was never there (I10)', async () => {
    const users = await two()
    const stream = await users.ann.start('secret', 'mine')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const id = stream.response.headers.get('x-interaction-id')!
    let before = await users.ann.chat('secret')
    while (before.interactions[0].status !== 'WAITING_APPROVAL')
      before = await users.ann.chat('secret')
    let compared = 0
    for (const { path, method } of await routes(users.server.url)) {
      if (!path.includes('{chat_id}')) continue
      const last = path.split('/').at(-1)!
      const body = method === 'POST' ? bodies[last] : undefined
      const look = async (chat: string, key = bob) => {
        const address = path.replace('{chat_id}', chat).replace('{interaction_id}', id)
        const gone = new AbortController()
        const response = await fetch(users.server.url + address, {
          method,
          headers: { ...as(key), ...type },
          ...(body !== undefined && { body: JSON.stringify(body).replace('$ASK', approval_id) }),
          signal: gone.signal,
        })
        const streams = response.headers.get('content-type')?.startsWith('text/event-stream')
        const said = streams ? 'a stream' : (await response.text()).replaceAll(chat, 'CHAT')
        gone.abort()
        const headers = [...response.headers]
          .filter(([name]) => name !== 'date' && name !== 'x-interaction-id')
          .map(([name, value]) => `${name}: ${value}`)
        return { status: response.status, said, headers }
      }
      const secret = await look('secret')
      expect(secret, `${method} ${path}`).toEqual(await look('unused'))
      if (path.endsWith('/interactions'))
        expect(secret.said).toBe('a stream') // bob’s own
      else expect(secret.status).toBe(404)
      // What bob has made of it by now is his; it goes, so that the next route finds nothing.
      for (const chat of ['secret', 'unused']) await users.bob.request('DELETE', `/chats/${chat}`)
      compared++
    }
    expect(compared).toBeGreaterThanOrEqual(9)
    expect(await users.ann.chat('secret')).toEqual(before)
    expect(users.box.sent).toEqual([])
    stream.leave()
  })
})

test('a body that never ends does not hold the server', async () => {
  const server = await serve({ builtIns: false }, { env: { HANDRAIL_MAX_BODY: '1000' } })
  const half = new AbortController()
  onTestFinished(() => half.abort())
  const slow = fetch(`${server.url}/chats/c/interactions`, {
    method: 'POST',
    headers: type,
    body: new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode('{"user')) }),
    duplex: 'half',
    signal: half.signal,
  } as RequestInit).catch(() => 'gone')
  expect((await server.request('GET', '/healthz')).status).toBe(200)
  half.abort()
  expect(await slow).toBe('gone')
  expect((await server.request('GET', '/chats/c')).status).toBe(404)
})

test('without keys, the key of a thread that has an owner is an unused id on every wire', async () => {
  const model = () => scriptedModel(() => [text('Hello.')])
  const settings = () => ({ model: model(), builtIns: false })
  const directory = await temporaryDirectory()
  onTestFinished(() => directory.remove())
  const at = { data: directory.path }
  const env = { HANDRAIL_API_KEYS: 'ann-has-a-long-key=ann' }
  const keyed = await serve(settings(), { ...at, env })
  const ann = chatsClient(keyed.url, { authorization: 'Bearer ann-has-a-long-key' })
  await (await ann.start('c', 'secret')).rest()
  const { store } = keyed.server
  const { rows } = await store.threads({ tenant: 'default', owner: 'ann', limit: 10 })
  const threadId = rows[0]!.threadId
  const before = await keyed.journal(threadId)
  await keyed.close()

  const keyless = await serve(settings(), at)
  const { url } = keyless
  const headers = { 'content-type': 'application/json' }
  const run = { messages: [{ role: 'user', content: 'hi' }], session_id: threadId }
  const wires: Record<string, () => Promise<unknown>> = {
    agui: () => agui(url, { threadId, messages: [{ id: 'm', role: 'user', content: 'hi' }] }),
    graphql: () => generate(url, 'm', 'hi', { threadId }),
    chats: async () => (await keyless.start(threadId, 'hi')).rest(),
    create: () => keyless.request('POST', '/chats', { id: threadId }),
    workflow: async () => {
      const init = { method: 'POST', headers, body: JSON.stringify(run) }
      return (await fetch(`${url}/copilotkit/chat`, init)).text()
    },
  }
  for (const [wire, post] of Object.entries(wires)) {
    expect((await keyless.request('GET', `/chats/${threadId}`)).status, wire).toBe(404)
    await post()
    const chat = await keyless.chat(threadId)
    expect(chat, wire).toMatchObject({ id: threadId })
    expect(JSON.stringify(chat), wire).not.toContain('secret')
    expect((await keyless.request('DELETE', `/chats/${threadId}`)).status, wire).toBe(204)
    expect(await keyless.journal(threadId), wire).toEqual(before)
  }
})
