import { afterAll, beforeAll, expect, test } from 'vitest'
import { cacheContract } from '../../../test/contracts/cache.contract.ts'
import { type RedisServer, startRedis } from '../../../test/support/redis.ts'
import { redisCache } from './cache.ts'

let redis: RedisServer
const log = { info: () => {}, warn: () => {} }

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.stop()
})

cacheContract('the Redis', () => redisCache({ url: redis.url, log }))

test('servers share what they keep, under the key session:<id>', async () => {
  const [a, b] = [
    await redisCache({ url: redis.url, log }),
    await redisCache({ url: redis.url, log }),
  ]
  await a.set('thread_1', { shared: true }, 5_000)
  expect(await b.get('thread_1')).toEqual({ shared: true })
  expect(await redis.command('GET', 'session:thread_1')).toContain('{"shared":true}')
  await redis.command('SET', 'session:thread_1', 'not ours')
  expect(await b.get('thread_1')).toBeUndefined()
  await a.close()
  await b.close()
})

test('while Redis is away or hangs nothing is kept, and nothing fails', async () => {
  const cache = await redisCache({ url: redis.url, log })
  await cache.set('a', 1, 5_000)
  redis.pause()
  const since = Date.now()
  expect(await cache.get('a')).toBeUndefined()
  expect(Date.now() - since).toBeLessThan(1_500)
  redis.resume()
  await redis.kill()
  expect(await cache.get('a')).toBeUndefined()
  await cache.set('a', 1, 5_000)
  await cache.delete('a')
  await redis.start()
  await cache.close()
})
