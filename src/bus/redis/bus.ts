import type { Bus } from '../../core/store.ts'
import { Tail } from '../../core/tail.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { closeRedis, connectRedis, isReady, type RedisLog, watchRedis } from './connection.ts'
import { Ears } from './ears.ts'
import { keyOf } from './keys.ts'
import { Link, type Port } from './link.ts'
import { Mouth } from './mouth.ts'

export interface RedisBusOptions {
  url: string
  /** Tells own rings from those of others: no two servers may share it. */
  serverId: string
  log: RedisLog
  clock?: Clock
  /** Milliseconds between looks at threads whose news may have been lost. */
  poll?: number
  /** Before every key and channel. */
  prefix?: string
}

/**
 * Tails and rings of many servers. Each thread's tail is a stream that begins with a base, for those
 * who come, and a channel for those who are there. Redis may lose all of it at any time: the origin
 * has its tail in memory and says it again, and entries are in the store.
 */
export async function redisBus(options: RedisBusOptions): Promise<Bus> {
  const { url, serverId, log, clock = systemClock, poll = 2_000, prefix = 'handrail:' } = options
  const [redis, listening] = await Promise.all([
    connectRedis({ url, log, name: 'handrail-bus' }),
    connectRedis({ url, log, name: 'handrail-bus-ears' }),
  ])
  const tails = new Map<string, WeakRef<Tail>>()
  const collected = new FinalizationRegistry<string>((threadId) => {
    if (tails.get(threadId)?.deref() === undefined) tails.delete(threadId)
  })
  const listeners = new Set<(threadId: string, seq: number) => void>()
  const tellListeners = (threadId: string, seq: number) => {
    for (const listener of listeners) listener(threadId, seq)
  }

  const names = {
    ringChannel: `${prefix}rings`,
    wantChannel: `${prefix}wants`,
    /** Also the channel. In braces, so that a cluster keeps a thread's things together. */
    keyFor: ({ threadId }: Link) => `${prefix}tail:{${keyOf(threadId)}}`,
  }
  const mouth = new Mouth({ ...names, redis, serverId })
  const ears = new Ears({
    ...names,
    redis,
    ears: listening,
    rung([from, ...news]) {
      if (from === serverId) return
      for (let i = 0; i + 1 < news.length; i += 2)
        tellListeners(String(news[i]), Number(news[i + 1]))
    },
    wanted(threadId) {
      const link = tails.get(threadId)?.deref()?.link
      if (link instanceof Link) link.wanted()
    },
  })
  const port: Port = {
    changed: (link) => mouth.changed(link),
    flush: (link) => mouth.flush(link),
    follow: (link) => ears.follow(link),
    leave: (link) => ears.leave(link),
    moved: tellListeners,
  }

  /** The safety net: whatever got lost, it is found within this time. */
  async function keepLooking(): Promise<void> {
    const watches = [redis, listening].map((one) => watchRedis(one, clock.monotonic))
    let checking = false
    for (;;) {
      await clock.sleep(poll, closed.signal)
      for (const watch of watches) watch()
      for (const threadId of [...mouth.threadIds, ...ears.threadIds])
        tellListeners(threadId, Number.MAX_SAFE_INTEGER)
      if (checking) continue // Redis takes its time; the rest does not wait for it
      checking = true
      void Promise.allSettled([mouth.keepStreams(), ears.compareStreams()]).then(() => {
        checking = false
      })
    }
  }
  const closed = new AbortController()
  const looking = keepLooking().catch(() => {})

  return {
    // Held weakly: a tail lives as long as the thread's driver or a reader holds it.
    tail(threadId) {
      const known = tails.get(threadId)?.deref()
      if (known) return known
      const tail = new Tail()
      tail.link = new Link(threadId, tail, port)
      tails.set(threadId, new WeakRef(tail))
      collected.register(tail, threadId)
      return tail
    },
    ring(threadId, seq) {
      tellListeners(threadId, seq)
      mouth.ring(threadId, seq)
    },
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      closed.abort('closed')
      listeners.clear()
      mouth.flushAll()
      await looking
      if (isReady(redis)) {
        // What was just sent gets there, unless Redis takes its time.
        const late = new AbortController()
        const patience = clock.sleep(500, late.signal).catch(() => {})
        await Promise.race([redis.ping().catch(() => {}), patience])
        late.abort('in time')
      }
      closeRedis(redis)
      closeRedis(listening)
    },
  }
}
