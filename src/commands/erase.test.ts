import { expect, onTestFinished, test } from 'vitest'
import { create } from '../../test/contracts/store.contract.ts'
import { startRedis } from '../../test/support/redis.ts'
import { temporaryDirectory } from '../../test/support/server.ts'
import { redisCache } from '../cache/redis/cache.ts'
import { readConfig } from '../config.ts'
import { systemClock } from '../lib/clock.ts'
import { fileStore } from '../stores/file/store.ts'
import { eraseOwner } from './erase.ts'
import { prune } from './prune.ts'

const log = { info() {}, warn() {}, error() {} }

test.each([
  ['erase', eraseOwner, ['--owner', 'ann', '--tenant', 'acme']],
  ['prune', prune, ['--older-than', '1m', '--erase']],
] as const)('handrail %s removes the views of erased threads from Redis', async (_, run, args) => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const directory = await temporaryDirectory()
  onTestFinished(() => directory.remove())
  const store = await fileStore({ directory: directory.path, clock: systemClock, log })
  await create(store, 't', { tenant: 'acme', owner: 'ann', title: 'secret' })
  await store.close()
  const cache = await redisCache({ url: redis.url, log })
  onTestFinished(() => cache.close())
  for (const key of ['t', 'another']) await cache.set(key, { title: 'secret' }, 60_000)
  const config = readConfig({ HANDRAIL_DATA: directory.path, REDIS_URL: redis.url })
  const said: string[] = []
  await run({ config, args: [...args], say: (line) => said.push(line), progress() {} })
  expect(said[0]).toMatch(/^1 thread .*erased/)
  expect(await cache.get('t')).toBeUndefined()
  expect(await cache.get('another')).toEqual({ title: 'secret' })
})
