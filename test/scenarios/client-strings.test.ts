import { expect, onTestFinished, test, vi } from 'vitest'
import { callMeter } from '../../src/core/meter.ts'
import { Providers } from '../../src/core/providers.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { Heartbeats } from '../../src/wires/sse.ts'
import { startRedis } from '../support/redis.ts'
import { serve } from '../support/serve.ts'

/** Counts the streams that were registered and did not end. */
function countStreams() {
  const open = new Set<object>()
  const add = Heartbeats.prototype.add
  const spy = vi.spyOn(Heartbeats.prototype, 'add').mockImplementation(function (
    this: Heartbeats,
    ...given
  ) {
    const stream = add.apply(this, given)
    open.add(stream)
    const stop = () => {
      open.delete(stream)
      stream.stop()
    }
    return { ...stream, stop }
  })
  onTestFinished(() => spy.mockRestore())
  return open
}

test('a session id outside of ASCII on the workflow wire starts one run, and its stream ends', async () => {
  const open = countStreams()
  const model = scriptedModel(() => [text('Hello.')])
  const server = await serve({ model, builtIns: false })
  const body = { messages: [{ role: 'user', content: 'hi' }], session_id: '日本' }
  const response = await server.request('POST', '/copilotkit/chat', body)
  expect(response.status).toBe(200)
  expect(await response.text()).toContain('Hello.')
  const entries = await server.journal('日本')
  expect(entries.filter(({ kind }) => kind === 'run.started')).toHaveLength(1)
  expect(model.requests).toHaveLength(1)
  await expect.poll(() => open.size).toBe(0)
})

const oddIds = [
  ...['日本', 'é', 'e\u0301', 'a b', '{a}', '*', '?', '[a-z]', 'a:b', 'session:a', '~a'],
  ...['"; FLUSHALL', '😀'.repeat(50), 'x'.repeat(200), '__proto__', '%00', '\u202E'],
]

test('odd session ids are separate plain keys in Redis, and deleting one keeps the others', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const model = scriptedModel(() => [text('Hello.')])
  const server = await serve({ model, builtIns: false }, { env: { REDIS_URL: redis.url } })
  const statusOf = async (id: string) => {
    const path = `/copilotkit/status?session_id=${encodeURIComponent(id)}`
    const response = await server.request('GET', path)
    return response.ok ? (await response.json()).session_id : response.status
  }
  for (const id of oddIds) {
    await (await server.start(id, 'hi')).rest()
    expect(await statusOf(id)).toBe(id)
  }
  const keys = async (pattern: string) =>
    (await redis.command('KEYS', pattern)).split('\r\n').filter((line) => /^[^*$]/.test(line))
  expect(await keys('session:*')).toHaveLength(oddIds.length)
  for (const key of await keys('*')) expect(key).toMatch(/^[\w:{}~@.-]{1,200}$/)
  const removed = oddIds[5]!
  expect((await server.request('DELETE', `/chats/${encodeURIComponent(removed)}`)).status).toBe(204)
  for (const id of oddIds) expect(await statusOf(id)).toBe(id === removed ? 404 : id)
})

test('a model name with quotes and line breaks adds no line and no label to the metrics', () => {
  const meter = callMeter(new Providers(systemClock))
  const model = 'a"} 1\nhandrail_model_calls_total{model="b\\\u2028\r\u{d800}'
  meter.take({ model, tenant: 'te"na\nnt', outcome: 'ok', usage: {} })
  const lines = meter.text().split('\n')
  const samples = lines.filter((line) => line !== '' && !line.startsWith('#'))
  expect(samples).toHaveLength(1)
  const label = String.raw`"(?:[^"\\\n]|\\["\\n])*"`
  const sample = `^handrail_model_calls_total\\{model=${label},tenant=${label},outcome=${label}\\} 1$`
  expect(samples[0]).toMatch(new RegExp(sample))
})
