import { closeRedis, connectRedis, type RedisLog } from '../../bus/redis/connection.ts'
import { keyOf } from '../../bus/redis/keys.ts'
import type { Cache } from '../../core/store.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { textOf } from '../local/cache.ts'
import { sweeping } from '../sweeping.ts'

export interface RedisCacheOptions {
  url: string
  log: RedisLog
  /** Before every key. */
  prefix?: string
  clock?: Clock
  /** Milliseconds between two looks for what is over. */
  sweepEvery?: number
}

/** Keys of which this server remembers until when they are kept; what it forgets is not counted. */
const remembered = 10_000

/** Milliseconds to wait for Redis: making the value again takes hardly longer. */
const patience = 500

/** Values shared by all servers, which Redis forgets by itself. While it is away nothing is kept. */
export async function redisCache(options: RedisCacheOptions): Promise<Cache> {
  const { url, log, prefix = 'session:', clock = systemClock, sweepEvery = 60_000 } = options
  const redis = await connectRedis(
    { url, log, name: 'handrail-cache' },
    { commandTimeout: patience },
  )
  const keyFor = (key: string) => prefix + keyOf(key)
  /** What this server has set, and until when: Redis forgets it by itself, and tells nobody. */
  const until = new Map<string, number>()
  const remove = async (key: string) => {
    until.delete(key)
    await redis.del(keyFor(key)).catch(() => {})
  }
  const stop = sweeping({
    clock,
    log,
    every: sweepEvery,
    async sweep(now) {
      let evicted = 0
      for (const [key, at] of until) {
        if (at > now) continue
        const left = await redis.pttl(keyFor(key)).catch(() => undefined)
        if (left === undefined) break // Redis is away: the next look will tell
        if (left > 0)
          until.set(key, now + left) // another server has set it anew
        else if (until.delete(key)) evicted++
      }
      return { evicted, kept: until.size }
    },
  })
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
      if (text === undefined) return await remove(key)
      until.delete(key)
      if (until.size < remembered) until.set(key, clock.now() + ttl)
      await redis.set(keyFor(key), text, 'PX', Math.max(1, Math.ceil(ttl))).catch(() => {})
    },
    delete: remove,
    async close() {
      stop()
      await closeRedis(redis)
    },
  }
}
