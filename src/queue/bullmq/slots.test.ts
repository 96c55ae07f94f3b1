import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { slotsContract } from '../../../test/contracts/slots.contract.ts'
import { type RedisServer, startRedis } from '../../../test/support/redis.ts'
import { systemClock } from '../../lib/clock.ts'
import { redisSlots } from './slots.ts'

let redis: RedisServer
let opened = 0
const log = { info: () => {}, warn: () => {} }
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.stop()
})

const open = (limits: object) => redisSlots({ url: redis.url, log, ...limits })

slotsContract('the Redis', async (limits) => {
  const more = { ...limits, prefix: `test-${++opened}:` }
  const servers = [await open(more), await open(more)] as const
  return {
    servers: [...servers],
    dispose: async () => {
      for (const slots of servers) await slots.close()
    },
  }
})

test('places are kept by a heartbeat, and lapse with their server', async () => {
  const limits = { total: 1, ttl: 1_500, prefix: 'lapse:' }
  const [a, b] = [await open(limits), await open(limits)]
  expect(await a.take('t', 'leg1')).toBeDefined()
  await sleep(2_500)
  expect(await b.take('t', 'leg2')).toBeUndefined()
  await redis.command('CLIENT', 'KILL', 'TYPE', 'normal') // not noticed by anybody
  await sleep(2_000)
  expect(await b.take('t', 'leg2')).toBeUndefined()
  await redis.command('FLUSHALL')
  await vi.waitFor(async () => expect(await redis.command('DBSIZE')).not.toMatch(/\b0\b/), 5_000)
  expect(await b.take('t', 'leg2')).toBeUndefined() // said again by who has it
  await a.close()
  expect(await b.take('t', 'leg2')).toBeDefined()
  await b.close()

  const heartless = { ...systemClock, sleep: () => new Promise<void>(() => {}) }
  const [dead, c] = [await open({ ...limits, clock: heartless }), await open(limits)]
  await redis.command('FLUSHALL')
  expect(await dead.take('t', 'leg3')).toBeDefined()
  expect(await c.take('t', 'leg4')).toBeUndefined()
  await vi.waitFor(async () => expect(await c.take('t', 'leg4')).toBeDefined(), 5_000)
  await dead.close()
  await c.close()
})

test('while Redis is away or hangs every server keeps to the limits by itself', async () => {
  const slots = await open({ total: 2, prefix: 'away:' })
  const leave = await slots.take('t', 'leg1')
  await redis.kill()
  expect(await slots.take('t', 'leg2')).toBeDefined()
  expect(await slots.take('t', 'leg3')).toBeUndefined()
  leave!()
  expect(await slots.take('t', 'leg4')).toBeDefined()
  await redis.start()
  await vi.waitFor(async () => expect(await slots.take('t', 'leg5')).toBeUndefined())
  redis.pause()
  const since = Date.now()
  expect(await slots.take('t', 'leg6')).toBeUndefined()
  expect(await slots.take('t', 'leg7')).toBeUndefined()
  expect(Date.now() - since).toBeLessThan(3_000)
  redis.resume()
  await slots.close()
})
