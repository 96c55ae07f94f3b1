import type { Redis } from 'ioredis'
import { isReady } from './connection.ts'
import type { Link } from './link.ts'

export interface MouthOptions {
  redis: Redis
  serverId: string
  ringChannel: string
  keyFor: (link: Link) => string
}

/** Round trips under way after which even the end of a leg is not told: Redis hangs. */
const flightLimit = 100
/** Rings that wait; more are dropped, and the poll makes up for them. */
const ringLimit = 10_000
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

/** Tells other servers what is written and rung here: all that waits, one round trip at a time. */
export class Mouth {
  readonly #options: MouthOptions
  readonly #origins = new Set<Link>()
  readonly #waiting = new Set<Link>()
  /** Those whose news did not get there: they go with the next that does. */
  readonly #unsent = new Set<Link>()
  /** Those that Redis refuses, as when it is full: tried again by the poll, not before. */
  readonly #refused = new Set<Link>()
  readonly #rings = new Map<string, number>()
  #scheduled = false
  #flights = 0

  constructor(options: MouthOptions) {
    this.#options = options
    options.redis.on('ready', () => this.#sayAgain())
  }

  /** Threads that are driven here. */
  get threadIds(): string[] {
    const ids: string[] = []
    for (const { role, threadId } of this.#origins) if (role === 'origin') ids.push(threadId)
    return ids
  }

  changed(link: Link): void {
    this.#origins.add(link)
    this.#waiting.add(link)
    this.#schedule()
  }

  ring(threadId: string, seq: number): void {
    if (this.#rings.size < ringLimit) this.#rings.set(threadId, seq)
    this.#schedule()
  }

  /** At once, before the link is somebody else's. */
  flush(link: Link): void {
    this.#waiting.delete(link)
    if (this.#flights < flightLimit) this.#send([link])
  }

  flushAll(): void {
    const links = [...this.#waiting]
    this.#waiting.clear()
    this.#send(links)
  }

  /** Streams of origins live as long as they do; one that is gone is made again. */
  async keepStreams(): Promise<void> {
    const { redis, keyFor } = this.#options
    for (const link of this.#refused) if (link.role === 'origin') this.changed(link)
    this.#refused.clear()
    for (const link of this.#origins) if (link.role !== 'origin') this.#origins.delete(link)
    const links = [...this.#origins]
    if (!isReady(redis) || links.length === 0) return
    const pipeline = redis.pipeline()
    for (const link of links) pipeline.pexpire(keyFor(link), expiry)
    const results = await pipeline.exec()
    for (const [i, link] of links.entries()) if (results?.[i]?.[1] === 0) link.wanted()
  }

  /** Not while Redis has yet to answer: what happens meanwhile goes together. */
  #schedule(): void {
    if (this.#scheduled || this.#flights > 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.flushAll()
    })
  }

  #send(links: readonly Link[]): void {
    const { redis, serverId, ringChannel, keyFor } = this.#options
    if (!isReady(redis)) {
      for (const link of links) this.#missed(link)
      return // told when Redis is back
    }
    const told: { link: Link; fence: number }[] = []
    const keys: string[] = []
    const words: string[] = []
    for (const link of links) {
      if (this.#refused.has(link)) link.missed()
      const news = this.#refused.has(link) ? undefined : link.take()
      if (!news) continue
      const { fence, number, base, stored, live } = news
      told.push({ link, fence })
      keys.push(keyFor(link))
      const how = stored === undefined ? 'tell' : base ? 'base' : 'more'
      words.push(`${fence}-${number}`, how, stored ?? '', live === stored ? '' : live)
    }
    const rung = this.#rings.size > 0 ? JSON.stringify([serverId, ...[...this.#rings].flat()]) : ''
    this.#rings.clear()
    if (keys.length === 0 && rung === '') return
    this.#flights++
    const done = (results: readonly unknown[]) => {
      this.#flights--
      for (const [i, { link, fence }] of told.entries()) this.#answered(link, fence, results[i])
      for (const link of this.#unsent) this.#waiting.add(link)
      this.#unsent.clear()
      if (isReady(redis) && (this.#waiting.size > 0 || this.#rings.size > 0)) this.#schedule()
    }
    redis.eval(tellScript, keys.length, ...keys, ringChannel, rung, expiry, ...words).then(
      (results) => done(results as unknown[]),
      () => done([]),
    )
  }

  #answered(link: Link, fence: number, result: unknown): void {
    if (result === 'told' || link.tail.fence !== fence) return
    if (result === 'stale') link.lose()
    else {
      this.#missed(link)
      if (result !== 'absent' && isReady(this.#options.redis)) this.#refused.add(link)
    }
  }

  #missed(link: Link): void {
    link.missed()
    if (link.role === 'origin') this.#unsent.add(link)
  }

  /** Whatever Redis had, it may have lost. */
  #sayAgain(): void {
    this.#unsent.clear()
    for (const link of this.#origins) {
      link.missed()
      this.#waiting.add(link)
    }
    this.#schedule()
  }
}
