import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { shown } from '../../../test/contracts/streams.contract.ts'
import { type RedisServer, startRedis } from '../../../test/support/redis.ts'
import { Page, Stage } from '../../../test/support/stage.ts'
import type { Bus } from '../../core/store.ts'
import { redisBus } from './bus.ts'

const said: string[] = []
const log = {
  info: (_: object, text: string) => said.push(text),
  warn: (_: object, text: string) => said.push(text),
}
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('streams heal', () => {
  let redis: RedisServer
  let servers: Bus[]
  let stage: Stage
  let pages: Page[]
  let threads = 0

  const open = (serverId: string) => redisBus({ url: redis.url, serverId, log, poll: 200 })

  beforeEach(async () => {
    said.length = 0
    redis = await startRedis()
    servers = await Promise.all([open('a'), open('b'), open('c')])
    await begin()
  })

  async function begin() {
    stage = new Stage(servers, `thread-${++threads}`)
    pages = [new Page(stage), new Page(stage), new Page(stage)]
    await stage.create()
    await stage.begin(0)
    for (const [i, page] of pages.entries()) page.connect(i)
  }

  afterEach(async () => {
    for (const page of pages) await page.leave()
    stage.close()
    await Promise.all(servers.map((bus) => bus.close()))
    await redis.stop()
  })

  /** A reader that comes now, on a server where nobody reads yet. */
  async function newcomer(server: number): Promise<Page> {
    await pages[server]!.leave()
    const page = new Page(stage)
    pages[server] = page
    page.connect(server)
    return page
  }

  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.command('INFO', 'stats'))![1])

  function write(count: number): void {
    for (let n = 0; n < count; n++) stage.push()
  }

  test('after a flush, for those who read and for those who come', async () => {
    write(10)
    await shown(stage, pages)
    await redis.command('FLUSHALL')
    await newcomer(1)
    write(10)
    await shown(stage, pages)
    await redis.command('FLUSHALL')
    await newcomer(2) // nothing is written: the origin finds out by itself
    await shown(stage, pages)
    await stage.end()
    await shown(stage, pages)
    expect(pages.map(({ retractions }) => retractions)).toEqual([0, 0, 0])
  })

  test('after a restart, with what was written meanwhile', async () => {
    write(10)
    await shown(stage, pages)
    await redis.kill()
    write(10)
    await stage.say()
    write(10)
    await sleep(100)
    // Entries do not need Redis: the slow poll brings them.
    await vi.waitFor(() => {
      for (const page of pages) expect(page.finished.size).toBe(1)
    })
    await redis.start()
    await newcomer(1)
    await shown(stage, pages)
    write(10)
    await shown(stage, pages)
    await stage.begin(2)
    write(10)
    await shown(stage, pages)
    await vi.waitFor(() => {
      expect(said.filter((text) => text.startsWith('Redis is away'))).toHaveLength(6)
      expect(said.filter((text) => text.startsWith('Redis is back'))).toHaveLength(6)
    })
  })

  test('after Redis hung, holding little meanwhile', async () => {
    write(10)
    await shown(stage, pages)
    redis.pause()
    const before = process.memoryUsage().arrayBuffers
    const text = 'x'.repeat(1_000)
    const { tail } = stage.driver!
    for (let turn = 0; turn < 300; turn++) {
      // 30 MB that are closed again: they may be lost, and must not wait anywhere.
      for (let n = 0; n < 100; n++) tail.push({ kind: 'output', id: 'call', name: 't', text })
      await sleep(0)
      tail.rebase(tail.seq, ({ id }) => id !== 'call')
    }
    write(10)
    await sleep(300)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 << 20)
    redis.resume()
    await shown(stage, pages)
    await newcomer(1)
    write(10)
    await stage.say()
    write(10)
    await shown(stage, pages)
  })

  test('when a connection is cut, and rings with it', async () => {
    write(10)
    await shown(stage, pages)
    await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    write(10)
    await stage.say()
    write(10)
    await shown(stage, pages)
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal')
    write(10)
    await stage.note(1)
    await shown(stage, pages)
  })

  test('when keys and channels have things in them that nobody here wrote', async () => {
    write(10)
    await shown(stage, pages)
    const { threadId } = stage.threads[0]!
    const key = `handrail:tail:{${threadId}}`
    for (const text of [
      '',
      'null',
      '{}',
      '[]',
      '[1]',
      '["a",1]',
      '[999]',
      '[1,1,7]',
      '[1,99,[["x"]]]',
    ])
      await redis.command('PUBLISH', key, text)
    for (const text of ['', 'null', '[1', '["a","t"]', '{"length":5}'])
      await redis.command('PUBLISH', 'handrail:rings', text)
    await redis.command('SET', key, 'not a stream')
    write(10)
    await shown(stage, pages)
    await sleep(300)
    const before = await commands()
    await sleep(500)
    expect((await commands()) - before).toBeLessThan(100) // it does not try all the time
    await redis.command('DEL', key)
    await newcomer(1)
    write(10)
    await shown(stage, pages)
  })

  test('at random', async () => {
    const faults = ['flush', 'ears', 'mouth'] as const
    const steps = fc.array(
      fc.record({
        do: fc.constantFrom('push', 'push', 'say', 'note', 'begin', 'move', 'wait', ...faults),
        at: fc.nat(2),
        of: fc.nat(2),
      }),
      { minLength: 10, maxLength: 40, size: 'max' },
    )
    const run = async (list: { do: string; at: number; of: number }[]) => {
      await begin()
      for (const { do: what, at, of } of list) {
        if (what === 'push') for (let n = 0; n < 5; n++) stage.push(of)
        else if (what === 'say') await stage.say(of)
        else if (what === 'note') await stage.note(at)
        else if (what === 'begin') await stage.begin(at)
        else if (what === 'wait') await sleep(at * 3)
        else if (what === 'flush') await redis.command('FLUSHALL')
        else if (what === 'ears') await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
        else if (what === 'mouth') await redis.command('CLIENT', 'KILL', 'TYPE', 'normal')
        else {
          await pages[of]!.leave()
          pages[of]!.connect(at)
        }
      }
      stage.push()
      await shown(stage, pages)
      await stage.end()
      await shown(stage, pages)
      for (const page of pages) await page.leave()
      stage.close()
    }
    await fc.assert(fc.asyncProperty(steps, run), { numRuns: 25, endOnFailure: true })
  }, 120_000)
})

test('a server that starts without Redis works alone, and with the others once it is there', async () => {
  const redis = await startRedis()
  await redis.kill()
  const open = (serverId: string) => redisBus({ url: redis.url, serverId, log, poll: 200 })
  const servers = await Promise.all([open('a'), open('b')])
  const stage = new Stage(servers, 'alone')
  await stage.create()
  await stage.begin(0)
  const [here, there] = [new Page(stage), new Page(stage)] as const
  here.connect(0)
  there.connect(1)
  stage.push()
  await shown(stage, [here])
  await redis.start()
  await shown(stage, [here, there])
  for (const page of [here, there]) await page.leave()
  stage.close()
  await Promise.all(servers.map((bus) => bus.close()))
  await redis.stop()
})
