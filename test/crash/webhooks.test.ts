import { expect, test, vi } from 'vitest'
import { read } from '../../src/core/entries.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { chatsClient } from '../support/chats.ts'
import { endpoint, webhookSecret } from '../support/endpoint.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { startServers } from '../support/servers.ts'

vi.setConfig({ testTimeout: 120_000 })

const env = (url: string) => ({
  HANDRAIL_WEBHOOK_URL: url,
  HANDRAIL_WEBHOOK_SECRET: webhookSecret,
  HANDRAIL_WEBHOOK_RETRY_MS: '300',
  HANDRAIL_LEASE_MS: '1000',
})

/** A question on a chat of its own; whether or not the server lives to tell. */
async function ask(url: string, chat: string): Promise<void> {
  try {
    const stream = await chatsClient(url).start(
      chat,
      'Write a file named a.txt with the text hello',
    )
    await stream.until('approval_required')
    stream.leave()
  } catch {}
}

test.each([
  'ask.raised:1',
  'before hook.tried:1',
  'hook.tried:1',
  'before hook.done:1',
  'hook.done:1',
])('a notice is told although the server was killed at %s', async (point) => {
  const hook = await endpoint()
  const { path, remove } = await temporaryDirectory()
  const place = { HANDRAIL_DATA: `${path}/data`, HANDRAIL_SPOOL: `${path}/spool`, ...env(hook.url) }
  const dies = await startServer({ ...place, HANDRAIL_CRASH: point })
  await ask(dies.url, 'chat')
  expect((await dies.exited).signal).toBe('SIGKILL')
  const lives = await startServer(place)
  const [first] = await hook.come(1)
  const journal = async () => {
    const store = await fileStore({ directory: place.HANDRAIL_DATA, clock: systemClock })
    const entries = (await store.read('chat', { limit: 1e6 })).map(read)
    await store.close()
    return entries
  }
  await vi.waitFor(
    async () => {
      const answer = await fetch(`${lives.url}/approvals`)
      expect(((await answer.json()) as { approvals: unknown[] }).approvals).toHaveLength(1)
    },
    { timeout: 20_000 },
  )
  await new Promise((resolve) => setTimeout(resolve, 1_500)) // more than a retry takes
  await lives.stop()
  const done = (await journal()).filter(({ kind }) => kind === 'hook.done')
  expect(done).toMatchObject([{ body: { outcome: 'delivered' } }])
  for (const { headers } of hook.received)
    expect(headers['webhook-id']).toBe(first!.headers['webhook-id'])
  expect(hook.received.length).toBeLessThanOrEqual(2) // once more at the most, for one crash
  await remove()
})

test('two servers tell each notice once, and every one although one of them is killed', async () => {
  const hook = await endpoint()
  // A slow machine must not be taken for a dead one, while both live.
  const patient = { ...env(hook.url), HANDRAIL_WEBHOOK_RETRY_MS: '4000' }
  const all = await startServers({ count: 2, env: () => patient })
  try {
    const [a, b] = all.servers as [(typeof all.servers)[0], (typeof all.servers)[0]]
    const idsOf = () => hook.received.map(({ headers }) => String(headers['webhook-id']))
    const chats = Array.from({ length: 10 }, (_, n) => `calm-${n}`)
    await Promise.all(chats.map((chat, n) => ask(n % 2 ? a.url : b.url, chat)))
    await hook.come(10)
    await new Promise((resolve) => setTimeout(resolve, 6_000)) // more than a retry takes
    expect(idsOf()).toHaveLength(10)
    expect(new Set(idsOf()).size).toBe(10)

    const more = Array.from({ length: 10 }, (_, n) => ask(a.url, `killed-${n}`))
    await hook.come(12)
    await a.kill()
    await Promise.all(more)
    const open = async () => {
      const answer = await fetch(`${b.url}/approvals?limit=200`)
      const { approvals } = (await answer.json()) as { approvals: { id: string }[] }
      return approvals.map(({ id }) => `${id}.raised`)
    }
    await vi.waitFor(
      async () => {
        const ids = await open()
        expect(ids.length).toBeGreaterThanOrEqual(12)
        expect(new Set(idsOf())).toEqual(new Set(ids))
      },
      { timeout: 40_000, interval: 500 },
    )
  } finally {
    await all.stop()
  }
})
