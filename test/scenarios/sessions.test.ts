import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { startRedis } from '../support/redis.ts'
import { serve } from '../support/serve.ts'
import { asked, send, story } from '../support/story.ts'
import { warpClock } from '../support/warp-clock.ts'

const session = async (url: string, id: string) => {
  const response = await fetch(`${url}/copilotkit/status?session_id=${id}`)
  return { status: response.status, body: await response.json() }
}

test('a session is told from the thread: agents, outputs, approvals and the whole', async () => {
  const server = await story([[send('1')], [text('Paid.')]])
  const { stream, interaction_id, approval_id } = await asked(server)
  const waiting = await session(server.url, 'c')
  expect(waiting.body).toMatchObject({
    session_id: 'c',
    workflow_status: 'running',
    agents: { assistant: { status: 'running', outputs: [], errors: [], end_time: null } },
    approval_requests: [{ approval_id, status: 'pending' }],
  })
  const overview = await (await fetch(`${server.url}/copilotkit/status`)).json()
  expect(overview).toMatchObject({
    status: 'ok',
    sessions: { active: 1 },
  })
  const [first] = overview.agents
  expect(first).toMatchObject({ name: 'assistant', tools: ['send', 'look'], status: 'running' })
  await server.approve('c', interaction_id, { approval_id, approved: true })
  await stream.rest()
  expect((await session(server.url, 'c')).body).toMatchObject({
    workflow_status: 'completed',
    agents: { assistant: { status: 'completed', outputs: ['Paid.'] } },
    shared_context: { assistant_output: 'Paid.' },
    approval_requests: [{ approval_id, status: 'approved' }],
  })
  const after = await (await fetch(`${server.url}/copilotkit/status`)).json()
  expect(after.sessions).toEqual({ active: 0 })
})

test('a session that nobody has is not there, and a typo is named', async () => {
  const server = await serve()
  const missing = await session(server.url, 'nobody')
  expect(missing.status).toBe(404)
  const typo = await fetch(`${server.url}/copilotkit/status?session=1`)
  expect(typo.status).toBe(400)
  expect(JSON.stringify(await typo.json())).toContain('query.session')
})

test('another user’s session is like one that is not there (I10)', async () => {
  const [ann, bob] = ['key-of-ann-0000001', 'key-of-bob-0000001']
  const env = { HANDRAIL_API_KEYS: `${ann}=ann,${bob}=bob` }
  const server = await serve({}, { env })
  const as = (key: string) => ({
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
  })
  const body = JSON.stringify({ user_message: 'mine' })
  const path = `${server.url}/chats/c/interactions`
  await (await fetch(path, { method: 'POST', headers: as(ann), body })).text()
  const look = async (key: string, query: string) => {
    const response = await fetch(`${server.url}/copilotkit/status${query}`, { headers: as(key) })
    return { status: response.status, body: await response.text() }
  }
  expect((await look(ann, '?session_id=c')).status).toBe(200)
  const theirs = await look(bob, '?session_id=c')
  expect(theirs).toEqual(await look(bob, '?session_id=d'))
  expect(theirs.status).toBe(404)
  expect((await fetch(`${server.url}/copilotkit/status`)).status).toBe(401)
})

test('with Redis a session is kept there for its time, and made again when it is gone or old', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const env = { REDIS_URL: redis.url, HANDRAIL_SESSION_TTL: '600' }
  const server = await serve({}, { env })
  await (await server.start('c', 'hello')).rest()
  const first = await session(server.url, 'c')
  expect(first.body.workflow_status).toBe('completed')
  expect(await redis.command('GET', 'session:c')).toContain('"workflow_status":"completed"')
  const left = Number((await redis.command('PTTL', 'session:c')).replace(/\D/g, ''))
  expect(left).toBeGreaterThan(590_000)
  expect(left).toBeLessThanOrEqual(600_000)
  await redis.command('FLUSHALL')
  expect((await session(server.url, 'c')).body).toEqual(first.body)
  await (await server.start('c', 'hello again')).rest()
  expect((await session(server.url, 'c')).body.agents.assistant.outputs).toHaveLength(2)
  expect((await server.request('DELETE', '/chats/c')).status).toBe(204)
  expect((await session(server.url, 'c')).status).toBe(404)
  expect(await redis.command('EXISTS', 'session:c')).toContain(':0')
})

test.for(['memory', 'Redis'])(
  'a session whose time is over is evicted from %s, which is logged, and made again as it was',
  async (where) => {
    const lines: object[] = []
    const info = (about: object, message: string) => {
      if (message === 'sessions evicted') lines.push(about)
    }
    const log = { info, warn: () => {}, error: () => {} }
    const env: Record<string, string> = { HANDRAIL_SESSION_TTL: '1' }
    if (where === 'Redis') {
      const redis = await startRedis()
      onTestFinished(() => redis.stop())
      env.REDIS_URL = redis.url
    }
    const clock = warpClock()
    const server = await serve({}, { env, clock, log })
    for (const chat of ['c', 'd']) await (await server.start(chat, 'hello')).rest()
    const first = await session(server.url, 'c')
    await session(server.url, 'd')
    expect(first.body).toMatchObject({ ttl: 1, updated_at: expect.stringContaining('T') })
    await sleep(1_500) // Redis goes by a clock of its own
    clock.advance(60_000)
    await expect.poll(() => lines).toEqual([{ evicted: 2, kept: 0 }])
    expect((await session(server.url, 'c')).body).toEqual(first.body)
  },
)

test('what is kept of a chat that is no more is not told of another with its id', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const server = await serve({}, { env: { REDIS_URL: redis.url } })
  for (const text of ['one', 'two']) await (await server.start('c', text)).rest()
  await session(server.url, 'c')
  const kept = (await redis.command('GET', 'session:c')).replace(/^\$\d+\r\n|\r\n$/g, '')
  await server.request('DELETE', '/chats/c')
  await (await server.start('c', 'three')).rest()
  await redis.command('SET', 'session:c', kept) // as if it had been away when the chat went
  expect((await session(server.url, 'c')).body.agents.assistant.outputs).toHaveLength(1)
})
