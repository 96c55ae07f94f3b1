import { access } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { chatsClient } from '../support/chats.ts'
import { checkJournal, journalOf } from '../support/journal.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { startServers } from '../support/servers.ts'

vi.setConfig({ testTimeout: 120_000 })

const config = fileURLToPath(new URL('./timeouts.config.mjs', import.meta.url))
const message = 'Write a file named late.txt with the text hello'
const timeout = 1_500

const rules = [
  ['reject', 'timeout', 'COMPLETED'],
  ['approve', 'approved', 'COMPLETED'],
  ['stop', 'timeout', 'CANCELLED'],
] as const

const env = (atTimeout: string) => ({
  ...{ HANDRAIL_CONFIG: config, ASK_TIMEOUT: String(timeout), AT_TIMEOUT: atTimeout },
  HANDRAIL_LEASE_MS: '1000',
})

/** Asked, and not answered; the interaction. */
async function ask(url: string): Promise<string> {
  const stream = await chatsClient(url).start('chat', message)
  await stream.until('approval_required')
  stream.leave()
  return stream.response.headers.get('x-interaction-id')!
}

async function ended(url: string, id: string): Promise<string> {
  const frames = await (await chatsClient(url).join('chat', id)).rest()
  return frames.at(-1)!.data.status
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

test.each(rules)(
  'what was due while the server was dead happens once when it is back, on files: %s',
  async (atTimeout, state, status) => {
    const { path, remove } = await temporaryDirectory()
    const place = { HANDRAIL_DATA: `${path}/data`, HANDRAIL_SPOOL: `${path}/spool` }
    const first = await startServer({ ...place, ...env(atTimeout) })
    const id = await ask(first.url)
    await first.kill()
    await sleep(timeout + 500)
    const second = await startServer({ ...place, ...env(atTimeout) })
    expect(await ended(second.url, id)).toBe(status)
    await second.stop()
    const third = await startServer({ ...place, ...env(atTimeout) }) // and not again
    await sleep(700)
    await third.stop()
    const store = await fileStore({ directory: `${path}/data`, clock: systemClock })
    const entries = await journalOf(store, 'chat')
    await store.close()
    checkJournal(entries)
    const answers = entries.flatMap((one) => (one.kind === 'ask.answered' ? [one.body.state] : []))
    expect(answers).toEqual([state])
    expect(await isThere(`${path}/data/files/default/local/late.txt`)).toBe(atTimeout === 'approve')
    await remove()
  },
)

test.each(rules)(
  'what was due while all servers were dead happens once when two are back: %s',
  async (atTimeout, state, status) => {
    const all = await startServers({ count: 2, redis: false, env: () => env(atTimeout) })
    try {
      const id = await ask(all.servers[0]!.url)
      await Promise.all(all.servers.map((one) => one.kill()))
      await sleep(timeout + 500)
      await Promise.all(all.servers.map((one) => one.restart()))
      expect(await ended(all.servers[1]!.url, id)).toBe(status)
      await sleep(1_500)
      const store = await postgresStore({ url: all.postgres.url })
      const entries = await journalOf(store, 'chat')
      await store.close()
      checkJournal(entries)
      const answers = entries.flatMap((one) =>
        one.kind === 'ask.answered' ? [one.body.state] : [],
      )
      expect(answers).toEqual([state])
      const effects = entries.filter(
        (one) => one.kind === 'effect.done' && one.body.effect === 'tool',
      )
      expect(effects).toHaveLength(atTimeout === 'approve' ? 1 : 0)
    } finally {
      await all.stop()
    }
  },
)
