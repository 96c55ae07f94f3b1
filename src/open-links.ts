import { localBus } from './bus/local/bus.ts'
import { localCache } from './cache/local/cache.ts'
import type { Config } from './config.ts'
import type { Bus, Cache, Queue, Slots, Store } from './core/store.ts'
import type { Log } from './core/worker.ts'
import type { Clock } from './lib/clock.ts'
import { localQueue } from './queue/local/queue.ts'
import { localSlots } from './queue/local/slots.ts'

interface Around {
  store: Store
  serverId: string
  clock: Clock
  log: Log
}

/** What ties servers together. */
export interface Links {
  bus: Bus
  queue: Queue
  slots?: Slots
  cache: Cache
  close(): Promise<void>
}

/** By Redis with `REDIS_URL`, else within this process. */
export async function openLinks(config: Config, around: Around): Promise<Links> {
  const { redis: url, legLimits: limits, leaseTtl } = config
  const { store, serverId, clock, log } = around
  const limited = Object.keys(limits).length > 0
  if (url === undefined) {
    if (store.shared)
      log.info({}, 'one server on this database: with more, set REDIS_URL, or streams lag behind')
    const bus = localBus(store.shared ? { clock, poll: 2_000 } : undefined)
    const cache = localCache({ clock, log })
    const slots = limited ? { slots: localSlots(limits) } : {}
    const close = async () => {
      await bus.close()
      await cache.close()
    }
    return { bus, queue: localQueue(clock), cache, ...slots, close }
  }
  // Read when they are needed: a server without Redis does not pay for its libraries.
  const [{ redisBus }, { bullmqQueue }, { redisSlots }, { redisCache }] = await Promise.all([
    import('./bus/redis/bus.ts'),
    import('./queue/bullmq/queue.ts'),
    import('./queue/bullmq/slots.ts'),
    import('./cache/redis/cache.ts'),
  ])
  const to = { url, log, clock }
  const [bus, queue, cache, slots] = await Promise.all([
    redisBus({ ...to, serverId }),
    bullmqQueue(to),
    redisCache(to),
    limited ? redisSlots({ ...to, ...limits, ttl: leaseTtl }) : undefined,
  ])
  return {
    bus,
    queue,
    cache,
    ...(slots && { slots }),
    async close() {
      await slots?.close()
      await queue.close()
      await bus.close()
      await cache.close()
    },
  }
}
