import type { Redis, RedisOptions } from 'ioredis'

/** What is said about Redis; pino fits. */
export interface RedisLog {
  info(about: object, message: string): void
  warn(about: object, message: string): void
}

export interface ConnectionOptions {
  url: string
  /** Shown by `CLIENT LIST`. */
  name: string
  log: RedisLog
}

/** How long a start waits for Redis before it goes on without. */
const startWait = 2_000

/**
 * A connection that comes back by itself and keeps nothing while it is away: commands fail at once,
 * and whoever sent them knows what to do. Resolves when it is ready, or a while later without.
 */
export async function connectRedis(
  { url, name, log }: ConnectionOptions,
  options: RedisOptions = {},
): Promise<Redis> {
  const { Redis } = await import('ioredis') // only servers that use it pay for it
  const redis = new Redis(url, {
    connectionName: name,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 5), 1_000) * (0.5 + Math.random()),
    reconnectOnError: (error) => error.message.startsWith('READONLY'), // a replica since a failover
    lazyConnect: true,
    ...options,
  })
  let away = false
  const lost = (error?: Error) => {
    if (away || closing.has(redis)) return
    away = true
    log.warn({ name, ...(error && { err: error }) }, 'Redis is away; going on without it')
  }
  redis.on('error', lost)
  redis.on('close', () => lost())
  redis.on('ready', () => {
    if (away) log.info({ name }, 'Redis is back')
    away = false
  })
  let timer: NodeJS.Timeout | undefined
  await Promise.race([
    redis.connect().catch(() => {}),
    new Promise((resolve) => {
      timer = setTimeout(resolve, startWait)
    }),
  ])
  clearTimeout(timer)
  return redis
}

const closing = new WeakSet<Redis>()

export const isReady = (redis: Redis): boolean => redis.status === 'ready'

/** Leaves at once: what matters was sent and answered before. */
export function closeRedis(redis: Redis): void {
  closing.add(redis)
  redis.disconnect()
}

/**
 * Gives up a connection that does not answer, to be called every now and then: a network that
 * swallows everything looks like a quiet Redis.
 */
export function watchRedis(redis: Redis, now: () => number, patience = 10_000): () => void {
  let sentAt: number | undefined
  return () => {
    if (!isReady(redis)) sentAt = undefined
    else if (sentAt === undefined) {
      sentAt = now()
      redis.ping().then(
        () => {
          sentAt = undefined
        },
        () => {
          sentAt = undefined
        },
      )
    } else if (now() - sentAt > patience) redis.disconnect(true)
  }
}
