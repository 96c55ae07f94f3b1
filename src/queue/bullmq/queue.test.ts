import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { queueContract, sleep } from '../../../test/contracts/queue.contract.ts'
import { type RedisServer, startRedis } from '../../../test/support/redis.ts'
import { type BullmqQueue, bullmqQueue } from './queue.ts'

let redis: RedisServer
let opened = 0
const log = { info: () => {}, warn: () => {} }
const soon = { timeout: 10_000, interval: 5 }

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.stop()
})

queueContract('the BullMQ', async () => {
  const prefix = `test-${++opened}`
  const servers = [
    await bullmqQueue({ url: redis.url, log, prefix }),
    await bullmqQueue({ url: redis.url, log, prefix }),
  ] as [BullmqQueue, BullmqQueue]
  return {
    servers,
    dispose: async () => {
      await Promise.all(servers.map((queue) => queue.close()))
    },
  }
})

describe('the BullMQ queue', () => {
  let queue: BullmqQueue
  let looks: string[]
  let stop: AbortController
  let served: Promise<void>

  beforeEach(async () => {
    await redis.kill()
    await redis.start()
    looks = []
    stop = new AbortController()
    queue = await bullmqQueue({ url: redis.url, log })
    served = queue.serve(async (threadId) => {
      looks.push(threadId)
    }, stop.signal)
  })

  afterEach(async () => {
    stop.abort()
    await served
    await queue.close()
  })

  const seen = (...threadIds: string[]) =>
    vi.waitFor(() => expect(looks).toEqual(expect.arrayContaining(threadIds)), soon)

  const keys = async () => Number(/:(\d+)/.exec(await redis.command('DBSIZE'))![1])

  test('leaves nothing behind in Redis', async () => {
    queue.ring('first')
    await seen('first')
    await sleep(50)
    const before = await keys()
    for (let n = 0; n < 500; n++) queue.ring(`t${n}`)
    queue.ringAt('later', Date.now() + 200)
    await seen('t0', 't499', 'later')
    await vi.waitFor(async () => expect(await keys()).toBeLessThanOrEqual(before + 1), soon)
  })

  test('hears its own rings and timers while Redis is away, and all of them when it is back', async () => {
    queue.ring('before')
    await seen('before')
    await redis.kill()
    queue.ring('away')
    queue.ringAt('timer', Date.now() + 50)
    await seen('away', 'timer')
    await redis.start()
    await sleep(1_500)
    queue.ring('after')
    await seen('after')
    const other = await bullmqQueue({ url: redis.url, log })
    other.ring('from elsewhere')
    await seen('from elsewhere')
    await other.close()
  })

  test('hears its own rings while Redis hangs', async () => {
    queue.ring('before')
    await seen('before')
    redis.pause()
    const since = Date.now()
    queue.ring('hung')
    await seen('hung')
    expect(Date.now() - since).toBeLessThan(2_000)
    for (let n = 0; n < 5_000; n++) queue.ring(`t${n}`)
    await seen('t0', 't4999') // without giving them all to Redis first
    redis.resume()
    await sleep(200)
    queue.ring('after')
    await seen('after')
    expect(looks.filter((one) => one === 't4999')).toHaveLength(1)
  })

  test('goes on after a flush', async () => {
    queue.ringAt('lost', Date.now() + 300)
    queue.ring('before')
    await seen('before')
    await redis.command('FLUSHALL')
    queue.ring('before')
    queue.ring('after')
    await seen('after')
    expect(looks.filter((one) => one === 'before')).toHaveLength(2)
  })

  test('stops in time when Redis hangs', async () => {
    queue.ring('before')
    await seen('before')
    redis.pause()
    const since = Date.now()
    stop.abort()
    await served
    await queue.close()
    expect(Date.now() - since).toBeLessThan(5_000)
    redis.resume()
  })

  test('starts without Redis', async () => {
    stop.abort()
    await served
    await queue.close()
    await redis.kill()
    stop = new AbortController()
    looks = []
    queue = await bullmqQueue({ url: redis.url, log })
    served = queue.serve(async (threadId) => {
      looks.push(threadId)
    }, stop.signal)
    queue.ring('alone')
    await seen('alone')
    await redis.start()
    await sleep(1_500)
    const other = await bullmqQueue({ url: redis.url, log })
    other.ring('together')
    await seen('together')
    await other.close()
  })

  test('takes up the job of a server that died', async () => {
    stop.abort()
    await served
    const file = fileURLToPath(new URL('./looker.child.ts', import.meta.url))
    const child = spawn(process.execPath, ['--import', 'tsx', file, redis.url], { stdio: 'ignore' })
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
    expect(signal).toBe('SIGKILL')
    stop = new AbortController()
    const since = Date.now()
    served = queue.serve(async (threadId) => {
      looks.push(threadId)
    }, stop.signal)
    await vi.waitFor(() => expect(looks).toContain('t'), { timeout: 12_000, interval: 20 })
    expect(Date.now() - since).toBeLessThan(10_000)
    const again = Date.now()
    queue.ring('t')
    await seen('t')
    expect(Date.now() - again).toBeLessThan(1_000)
  })

  test('shares the work: a job is looked at by one server', async () => {
    const others: string[] = []
    const other = await bullmqQueue({ url: redis.url, log })
    const otherServed = other.serve(async (threadId) => {
      others.push(threadId)
      await sleep(5)
    }, stop.signal)
    for (let n = 0; n < 300; n++) queue.ring(`t${n}`)
    await vi.waitFor(() => expect(looks.length + others.length).toBe(300), soon)
    await sleep(100)
    expect(looks.length + others.length).toBe(300)
    stop.abort()
    await otherServed
    await other.close()
  })
})
