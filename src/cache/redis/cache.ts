import { closeRedis, connectRedis, type RedisLog } from '../../bus/redis/connection.ts'
import { keyOf } from '../../bus/redis/keys.ts'
import type { Cache } from '../../core/store.ts'
import { textOf } from '../local/cache.ts'

export interface RedisCacheOptions {
  url: string
  log: RedisLog
  /** Before every key. */
  prefix?: string
}

/** Milliseconds to wait for Redis: making the value again takes hardly longer. */
const patience = 500

/** Values shared by all servers, which Redis forgets by itself. While it is away nothing is kept. */
export async function redisCache(options: RedisCacheOptions): Promise<Cache> {
  const { url, log, prefix = 'session:' } = options
  const redis = await connectRedis(
    { url, log, name: 'handrail-cache' },
    { commandTimeout: patience },
  )
  const keyFor = (key: string) => prefix + keyOf(key)
  const remove = async (key: string) => {
    await redis.del(keyFor(key)).catch(() => {})
  }
  return {
    async get(key) {
      try {
        const text = await redis.get(keyFor(key))
        return text === null ? undefined : (JSON.parse(text) as unknown)
      } catch {
        return undefined
      }
    },
    async set(key, value, ttl) {
      const text = textOf(value)
      if (text === undefined) await remove(key)
      else await redis.set(keyFor(key), text, 'PX', Math.max(1, Math.ceil(ttl))).catch(() => {})
    },
    delete: remove,
    close: async () => closeRedis(redis),
  }
}
