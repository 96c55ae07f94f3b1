import { closeRedis, connectRedis, isReady, type RedisLog } from '../../bus/redis/connection.ts'
import { keyOf } from '../../bus/redis/keys.ts'
import type { Slots } from '../../core/store.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { localSlots, type SlotLimits } from '../local/slots.ts'

export interface RedisSlotsOptions extends SlotLimits {
  url: string
  log: RedisLog
  clock?: Clock
  /** Milliseconds after which the places of a server that died are free again. */
  ttl?: number
  /** Before every key. */
  prefix?: string
}

/** Places are members of a set, with the time at which they lapse, by Redis's own clock. */
const takeScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local place, ttl, held = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  local limit = tonumber(ARGV[3 + i])
  if not held and not redis.call('ZSCORE', key, place) and limit >= 0 and redis.call('ZCARD', key) >= limit then
    return 0
  end
end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + ttl, place)
  redis.call('PEXPIRE', key, ttl * 2)
end
return 1`

/** Milliseconds to wait for an answer, and to go on without asking when there was none. */
const patience = 1_000
const rest = 5_000

/**
 * Room for legs in all servers together. Each place is kept by a heartbeat and lapses with its
 * server. While Redis is away every server gives out as many as the limits say by itself: work goes
 * on, and for that time the cluster may do more than it should.
 */
export async function redisSlots(
  options: RedisSlotsOptions,
): Promise<Slots & { close(): Promise<void> }> {
  const { url, log, clock = systemClock, ttl = 15_000, prefix = 'handrail:' } = options
  const redis = await connectRedis(
    { url, log, name: 'handrail-slots' },
    { commandTimeout: patience },
  )
  const here = localSlots(options)
  /** Places have an owner: who finds a leg taken must not give back the place of who drives it. */
  const memberOf = (legId: string) => `${legId} ${owner}`
  const owner = newId('slots')
  const held = new Map<string, { tenant: string; leave: () => void }>()
  const limits = [options.total ?? -1, options.perTenant ?? -1]
  const closed = new AbortController()
  let restUntil = 0

  /** In braces, so that a cluster keeps them together. */
  const keysFor = (tenant: string) => [
    `${prefix}{slots}:all`,
    `${prefix}{slots}:of:${keyOf(tenant)}`,
  ]

  /** Undefined: Redis does not say. */
  async function ask(tenant: string, legId: string, isHeld: boolean): Promise<boolean | undefined> {
    if (!isReady(redis) || clock.monotonic() < restUntil) return undefined
    try {
      const words = [memberOf(legId), ttl, isHeld ? 1 : 0, ...limits]
      return (await redis.eval(takeScript, 2, ...keysFor(tenant), ...words)) === 1
    } catch {
      restUntil = clock.monotonic() + rest
      return undefined
    }
  }

  function release(legId: string): void {
    const one = held.get(legId)
    if (!one) return
    held.delete(legId)
    one.leave()
    if (!isReady(redis)) return // it lapses
    for (const key of keysFor(one.tenant)) redis.zrem(key, memberOf(legId)).catch(() => {})
  }

  async function beat(): Promise<void> {
    for (;;) {
      await clock.sleep(ttl / 3, closed.signal)
      const all = [...held].map(([legId, { tenant }]) => ask(tenant, legId, true))
      await Promise.all(all)
    }
  }
  beat().catch(() => {})

  return {
    async take(tenant, legId) {
      const known = held.has(legId)
      const granted = await ask(tenant, legId, known)
      if (granted === false) return undefined
      // What is granted by all counts here too, for when Redis goes away; it cannot be refused here.
      const leave = await here.take(tenant, legId)
      if (!leave && granted === undefined) return undefined
      if (!known) held.set(legId, { tenant, leave: leave ?? (() => {}) })
      return () => release(legId)
    },
    async close() {
      for (const legId of [...held.keys()]) release(legId)
      closed.abort('closed')
      if (isReady(redis)) await redis.ping().catch(() => {})
      closeRedis(redis)
    },
  }
}
