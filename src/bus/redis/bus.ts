import type { Bus } from '../../core/store.ts'
import { Tail } from '../../core/tail.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { closeRedis, connectRedis, isReady, type RedisLog, watchRedis } from './connection.ts'
import { keyOf } from './keys.ts'
import { Link, type Port } from './link.ts'
import { decode, type Message } from './messages.ts'

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

/** Round trips under way after which even the end of a leg is not told: Redis hangs. */
const flightLimit = 100
/** Rings that wait; more are dropped, and the poll makes up for them. */
const ringLimit = 10_000
/** Messages that wait for a stream to be read; if there are more, it is read again. */
const earlyLimit = 10_000
/** Milliseconds after which the stream of an origin that went away is gone. */
const expiry = 300_000

/**
 * All that a server has to say after a turn. Ids only ever grow, so Redis itself refuses what an
 * earlier driver says after a later one; what is added to a stream that is gone is not kept.
 */
const tellScript = `
local results = {}
for i, key in ipairs(KEYS) do
  local at = 4 * i
  local id, how, stored, live = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local added = 'told'
  if how == 'base' then
    added = redis.pcall('XADD', key, 'MAXLEN', 1, id, 'm', stored)
    if type(added) ~= 'table' then redis.call('PEXPIRE', key, ARGV[3]) end
  elseif how == 'more' then
    added = redis.pcall('XADD', key, 'NOMKSTREAM', id, 'm', stored)
  end
  redis.call('PUBLISH', key, live == '' and stored or live)
  if not added then results[i] = 'absent'
  elseif type(added) ~= 'table' then results[i] = 'told'
  elseif string.find(added.err, 'equal or smaller') then results[i] = 'stale'
  else results[i] = 'refused' end
end
if ARGV[2] ~= '' then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return results`

/**
 * Tails and rings of many servers. Each thread's tail is a stream that begins with a base, for those
 * who come, and a channel for those who are there. Redis may lose all of it at any time: the origin
 * has its tail in memory and says it again, and entries are in the store.
 */
export async function redisBus(options: RedisBusOptions): Promise<Bus> {
  const { url, serverId, log, clock = systemClock, poll = 2_000, prefix = 'handrail:' } = options
  const [redis, ears] = await Promise.all([
    connectRedis({ url, log, name: 'handrail-bus' }),
    connectRedis({ url, log, name: 'handrail-bus-ears' }),
  ])
  const ringChannel = `${prefix}rings`
  const wantChannel = `${prefix}wants`
  const tails = new Map<string, WeakRef<Tail>>()
  const collected = new FinalizationRegistry<string>((threadId) => {
    if (tails.get(threadId)?.deref() === undefined) tails.delete(threadId)
  })
  const listeners = new Set<(threadId: string, seq: number) => void>()
  /** Links that drive or read: held, while others go with their tails. */
  const origins = new Set<Link>()
  const followed = new Map<string, Followed>()
  const waiting = new Set<Link>()
  /** Those whose news could not be sent: they go with the next that can. */
  const unsent = new Set<Link>()
  /** Those that Redis refuses, as when it is full: tried again by the poll, not before. */
  const refused = new Set<Link>()
  const rings = new Map<string, number>()
  let scheduled = false
  /** Round trips to Redis under way. While there is one, news waits and goes together with more. */
  let flights = 0
  const closed = new AbortController()

  /** Also the channel. In braces, so that a cluster keeps a thread's things together. */
  const keyFor = ({ threadId }: Link) => `${prefix}tail:{${keyOf(threadId)}}`

  function tellListeners(threadId: string, seq: number): void {
    for (const listener of listeners) listener(threadId, seq)
  }

  function schedule(): void {
    if (scheduled || flights > 0 || closed.signal.aborted) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      const links = [...waiting]
      waiting.clear()
      send(links)
    })
  }

  /** One round trip for all that happened in this turn. */
  function send(links: readonly Link[]): void {
    if (!isReady(redis)) {
      for (const link of links) missed(link)
      return // told when Redis is back
    }
    const told: { link: Link; fence: number }[] = []
    const keys: string[] = []
    const words: string[] = []
    for (const link of links) {
      if (refused.has(link)) link.missed()
      const news = refused.has(link) ? undefined : link.take()
      if (!news) continue
      const { fence, number, base, stored, live } = news
      told.push({ link, fence })
      keys.push(keyFor(link))
      const how = stored === undefined ? 'tell' : base ? 'base' : 'more'
      words.push(`${fence}-${number}`, how, stored ?? '', live === stored ? '' : live)
    }
    const rung = rings.size > 0 ? JSON.stringify([serverId, ...[...rings].flat()]) : ''
    rings.clear()
    if (keys.length === 0 && rung === '') return
    flights++
    const done = (results: readonly unknown[]) => {
      flights--
      for (const [i, { link, fence }] of told.entries()) heardBack(link, fence, results[i])
      for (const link of unsent) waiting.add(link)
      unsent.clear()
      if (isReady(redis) && (waiting.size > 0 || rings.size > 0)) schedule()
    }
    redis.eval(tellScript, keys.length, ...keys, ringChannel, rung, expiry, ...words).then(
      (results) => done(results as unknown[]),
      () => done([]),
    )
  }

  function heardBack(link: Link, fence: number, result: unknown): void {
    if (result === 'told' || link.tail.fence !== fence) return
    if (result === 'stale') link.lose()
    else {
      missed(link)
      if (result !== 'absent' && isReady(redis)) refused.add(link)
    }
  }

  function missed(link: Link): void {
    link.missed()
    if (link.role === 'origin') unsent.add(link)
  }

  const port: Port = {
    changed(link) {
      origins.add(link)
      waiting.add(link)
      schedule()
    },
    flush(link) {
      waiting.delete(link)
      if (flights < flightLimit) send([link])
    },
    follow(link) {
      origins.delete(link)
      const one: Followed = { link, early: undefined, again: false, missing: false }
      followed.set(keyFor(link), one)
      if (isReady(ears)) listenTo([one])
    },
    leave(link) {
      const key = keyFor(link)
      followed.delete(key)
      if (isReady(ears)) ears.unsubscribe(key).catch(() => {})
    },
    moved: tellListeners,
  }

  /** First to the channel, then the stream: what comes between the two is not missed. */
  function listenTo(those: readonly Followed[]): void {
    if (those.length === 0) return
    ears.subscribe(...those.map(({ link }) => keyFor(link))).then(
      () => {
        for (const one of those) catchUp(one)
      },
      () => {}, // the connection went; all is done again when it is back
    )
  }

  function catchUp(one: Followed): void {
    const { link } = one
    one.missing = true
    one.again = one.early !== undefined // what is being read may be older than what was missed
    if (one.again) return
    if (!isReady(redis)) return // looked at again by the poll
    one.early = []
    const isCurrent = () => followed.get(keyFor(link)) === one
    redis.xrange(keyFor(link), '-', '+').then(
      (entries) => {
        const early = one.early ?? []
        one.early = undefined
        if (!isCurrent()) return
        if (one.again) return catchUp(one)
        const stored = entries.map(([, [, text = '']]) => decode(text)).filter(isMessage)
        one.missing = !link.catchUp([...stored, ...early])
        // The stream may have begun again without its base: after a flush, or by a stale driver.
        if (one.missing) redis.publish(wantChannel, JSON.stringify([link.threadId])).catch(() => {})
      },
      () => {
        one.early = undefined
      },
    )
  }

  ears.on('message', (channel: string, text: string) => {
    if (channel === ringChannel) return heardRings(text)
    if (channel === wantChannel) return heardWant(text)
    const one = followed.get(channel)
    const message = one && decode(text)
    if (!message) return
    if (one.early) {
      if (one.early.push(message) > earlyLimit) one.early = [] // found missing, and read again
    } else if (one.link.hear(message)) one.missing = false
    else if (!one.missing) catchUp(one)
  })

  function heardRings(text: string): void {
    const news = listOf(text)
    if (news[0] === serverId) return
    for (let i = 1; i + 1 < news.length; i += 2) tellListeners(String(news[i]), Number(news[i + 1]))
  }

  function heardWant(text: string): void {
    const tail = tails.get(String(listOf(text)[0]))?.deref()
    if (tail?.link instanceof Link) tail.link.wanted()
  }

  const hearAgain = () => {
    ears.subscribe(ringChannel, wantChannel).catch(() => {})
    listenTo([...followed.values()])
  }
  ears.on('ready', hearAgain)
  if (isReady(ears)) hearAgain()
  redis.on('ready', () => {
    unsent.clear()
    for (const link of origins) {
      link.missed()
      port.changed(link)
    }
    for (const one of followed.values()) if (one.missing) catchUp(one)
  })

  /** The safety net: whatever got lost, it is found within this time. */
  async function keepLooking(): Promise<void> {
    const watches = [watchRedis(redis, clock.monotonic), watchRedis(ears, clock.monotonic)]
    for (;;) {
      await clock.sleep(poll, closed.signal)
      for (const watch of watches) watch()
      for (const { link } of [...followed.values()])
        tellListeners(link.threadId, Number.MAX_SAFE_INTEGER)
      for (const link of [...origins]) {
        if (link.role !== 'origin') origins.delete(link)
        else tellListeners(link.threadId, Number.MAX_SAFE_INTEGER)
      }
      for (const link of refused) if (link.role === 'origin') port.changed(link)
      refused.clear()
      await Promise.all([keepStreams(), compareStreams()])
    }
  }

  /** Streams that are further than what was heard of them are read. */
  async function compareStreams(): Promise<void> {
    if (!isReady(redis) || followed.size === 0) return
    const those = [...followed.values()]
    const pipeline = redis.pipeline()
    for (const { link } of those) pipeline.xrevrange(keyFor(link), '+', '-', 'COUNT', 1)
    const results = await pipeline.exec().catch(() => null)
    for (const [i, one] of those.entries()) {
      const [top] = (results?.[i]?.[1] ?? []) as [string, string[]][]
      const [fence = 0, number = 0] = top?.[0].split('-').map(Number) ?? []
      if (one.missing || one.link.isBefore(fence, number)) catchUp(one)
    }
  }

  /** Streams of origins live as long as they do; one that is gone is made again. */
  async function keepStreams(): Promise<void> {
    if (!isReady(redis) || origins.size === 0) return
    const links = [...origins]
    const pipeline = redis.pipeline()
    for (const link of links) pipeline.pexpire(keyFor(link), expiry)
    const results = await pipeline.exec().catch(() => null)
    for (const [i, link] of links.entries()) {
      if (results?.[i]?.[1] !== 0 || link.role !== 'origin') continue
      link.missed()
      port.changed(link)
    }
  }

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
      if (rings.size < ringLimit) rings.set(threadId, seq)
      schedule()
    },
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      send([...waiting])
      closed.abort('closed')
      listeners.clear()
      await looking
      if (isReady(redis)) {
        // What was just sent gets there, unless Redis takes its time.
        const late = new AbortController()
        await Promise.race([
          redis.ping().catch(() => {}),
          clock.sleep(500, late.signal).catch(() => {}),
        ])
        late.abort('in time')
      }
      closeRedis(redis)
      closeRedis(ears)
    },
  }
}

/** A thread that somebody reads here and nobody drives. */
interface Followed {
  link: Link
  /** What was heard while the stream is being read. */
  early: Message[] | undefined
  /** It must be read once more after that. */
  again: boolean
  /** Not all of it is here: it is read again now and then, and when something new is heard. */
  missing: boolean
}

/** Nothing for what is not a list: the channel is open to whoever shares the Redis. */
function listOf(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

const isMessage = (message: Message | undefined): message is Message => message !== undefined
