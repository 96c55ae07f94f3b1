import { afterAll, beforeAll } from 'vitest'
import { busContract } from '../../../test/contracts/bus.contract.ts'
import { streamsContract } from '../../../test/contracts/streams.contract.ts'
import { type RedisServer, startRedis } from '../../../test/support/redis.ts'
import type { Bus } from '../../core/store.ts'
import { redisBus } from './bus.ts'

let redis: RedisServer
let servers: Bus[]
let opened = 0
const silent = { info: () => {}, warn: () => {} }

beforeAll(async () => {
  redis = await startRedis()
  servers = [await open('a', 'streams:'), await open('b', 'streams:'), await open('c', 'streams:')]
})

afterAll(async () => {
  await Promise.all(servers.map((bus) => bus.close()))
  await redis.stop()
})

const open = (serverId: string, prefix: string) =>
  redisBus({ url: redis.url, serverId, log: silent, prefix })

busContract('the Redis', async () => {
  const prefix = `test-${++opened}:`
  const servers = [await open('a', prefix), await open('b', prefix), await open('c', prefix)]
  return {
    servers: servers as [(typeof servers)[0], (typeof servers)[0], (typeof servers)[0]],
    dispose: async () => {
      await Promise.all(servers.map((bus) => bus.close()))
    },
  }
})

streamsContract('the Redis bus', () => servers, 100)
