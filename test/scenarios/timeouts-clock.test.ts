import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { PolicyRule } from '../../src/core/policy.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { chatsClient } from '../support/chats.ts'
import { startPostgres } from '../support/postgres.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { find, tools } from '../support/tools.ts'
import { wallClock } from '../support/wall-clock.ts'

const hour = 3_600_000
const env = { HANDRAIL_LEASE_MS: '900' } // looked for three times a lease
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** What each rule comes to: how the ask ends, the run, and how often the tool was run. */
const rules = [
  ['reject', 'timeout', 'run.completed', 0],
  ['approve', 'approved', 'run.completed', 1],
  ['stop', 'timeout', 'run.cancelled', 0],
] as const

const before = process.env.HANDRAIL_TEST_STORE
afterEach(() => {
  if (before === undefined) delete process.env.HANDRAIL_TEST_STORE
  else process.env.HANDRAIL_TEST_STORE = before
})

async function waiting(atTimeout: PolicyRule['atTimeout'], clock = wallClock()) {
  const box = tools()
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [text('So be it.')]
      : [call('1', 'send', { to: 'ann', amount: 5 })],
  )
  const policy: PolicyRule[] = [
    { tool: 'send', decision: 'ask', timeout: 60_000, ...(atTimeout && { atTimeout }) },
  ]
  const settings = { model, tools: box.all, builtIns: false, policy }
  const server = await serve(settings, { clock, env })
  const stream = await server.start('c', 'pay')
  find(await stream.until('approval_required'), 'approval_required')
  await server.recorded('c', 'run.waiting')
  stream.leave()
  const answered = async () => {
    const entries = await server.journal('c')
    return entries.flatMap((one) => (one.kind === 'ask.answered' ? [one.body.state] : []))
  }
  return { server, settings, box, clock, answered }
}

describe.each(['file', 'postgres'])('on %s', (store) => {
  beforeEach(() => {
    process.env.HANDRAIL_TEST_STORE = store
  })

  test.each(rules)(
    'a clock that is set an hour forward ends it once: %s',
    async (atTimeout, state, end, runs) => {
      const { server, box, clock, answered } = await waiting(atTimeout)
      clock.move(hour)
      await server.recorded('c', end)
      clock.move(-hour)
      await sleep(700)
      clock.move(2 * hour)
      await sleep(700)
      expect(await answered()).toEqual([state])
      expect(box.sent).toHaveLength(runs)
    },
  )

  test('a clock that is set an hour back ends nothing, and when it is due, once', async () => {
    const { server, clock, answered } = await waiting('reject')
    clock.move(-hour)
    await sleep(1_500)
    expect(await answered()).toEqual([])
    clock.move(hour + 61_000)
    await server.recorded('c', 'run.completed')
    expect(await answered()).toEqual(['timeout'])
  })
})

test.each(rules)(
  'two servers whose clocks are an hour apart end it once: %s',
  async (atTimeout, state, end, runs) => {
    process.env.HANDRAIL_TEST_STORE = 'postgres'
    const { server, settings, box, answered } = await waiting(atTimeout)
    const ahead = { clock: wallClock(hour), env, data: server.data }
    const [second, third] = await Promise.all([serve(settings, ahead), serve(settings, ahead)])
    await vi.waitFor(
      async () => {
        const kinds = (await server.journal('c')).map(({ kind }) => kind)
        expect(kinds).toContain(end)
      },
      { timeout: 15_000 },
    )
    await sleep(700)
    expect(await answered()).toEqual([state])
    expect(box.sent).toHaveLength(runs)
    await Promise.all([second.close(), third.close()])
  },
)

test('on Postgres it is the clock of the database that counts: a server that is ahead ends nothing early', async () => {
  const [postgres, place] = await Promise.all([startPostgres(), temporaryDirectory()])
  const ahead = join(place.path, 'ahead.cjs')
  await writeFile(ahead, `const now = Date.now; Date.now = () => now() + ${24 * hour}`)
  const shared = { DATABASE_URL: postgres.url, HANDRAIL_DATA: place.path, ...env }
  const right = await startServer(shared)
  const wrong = await startServer({ ...shared, NODE_OPTIONS: `--require ${ahead}` })
  try {
    const stream = await chatsClient(right.url).start(
      'c',
      'Write a file named a.txt with the text hi',
    )
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    await sleep(1_500) // both have looked what is due
    const decided = await chatsClient(wrong.url).request('POST', `/approvals/${approval_id}`, {
      decision: 'approve',
    })
    expect(decided.status).toBe(200)
    expect((await stream.rest()).at(-1)!.data.status).toBe('COMPLETED')
    expect(wrong.output()).toContain("this server's clock is not the store's")
    expect(right.output()).not.toContain("this server's clock is not the store's")
  } finally {
    await Promise.all([right.kill(), wrong.kill()])
    await Promise.all([postgres.stop(), place.remove()])
  }
})
