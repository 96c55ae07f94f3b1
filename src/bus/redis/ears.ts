import type { Redis } from 'ioredis'
import { isReady } from './connection.ts'
import type { Link } from './link.ts'
import { decode, listOf, type Message } from './messages.ts'

export interface EarsOptions {
  /** One connection that listens, and one to look things up. */
  ears: Redis
  redis: Redis
  ringChannel: string
  wantChannel: string
  keyFor: (link: Link) => string
  /** Rings of any server, this one too. */
  rung: (news: readonly unknown[]) => void
  /** Somebody needs the whole tail of a thread. */
  wanted: (threadId: string) => void
}

/** A thread that somebody reads here and nobody drives. */
interface Followed {
  link: Link
  /** What was heard while the stream is being read. */
  early: Message[] | undefined
  /** It must be read once more after that. */
  again: boolean
  /** Not all of it is here: it is read again by the poll. */
  missing: boolean
}

/** Messages that wait for a stream to be read; if there are more, it is read again. */
const earlyLimit = 10_000

/** Hears what other servers write and ring: the channel of each thread that is read here. */
export class Ears {
  readonly #options: EarsOptions
  readonly #followed = new Map<string, Followed>()

  constructor(options: EarsOptions) {
    this.#options = options
    const { ears, redis } = options
    ears.on('message', (channel: string, text: string) => this.#hear(channel, text))
    ears.on('ready', () => this.#listenAgain())
    if (isReady(ears)) this.#listenAgain()
    redis.on('ready', () => {
      for (const one of this.#followed.values()) if (one.missing) this.#catchUp(one)
    })
  }

  get threadIds(): string[] {
    return [...this.#followed.values()].map(({ link }) => link.threadId)
  }

  follow(link: Link): void {
    const one: Followed = { link, early: undefined, again: false, missing: true }
    this.#followed.set(this.#options.keyFor(link), one)
    if (isReady(this.#options.ears)) this.#listen([one])
  }

  leave(link: Link): void {
    const { ears, keyFor } = this.#options
    this.#followed.delete(keyFor(link))
    if (isReady(ears)) ears.unsubscribe(keyFor(link)).catch(() => {})
  }

  /** Streams that are further than what was heard of them are read. */
  async compareStreams(): Promise<void> {
    const { redis, keyFor } = this.#options
    const those = [...this.#followed.values()]
    if (!isReady(redis) || those.length === 0) return
    const pipeline = redis.pipeline()
    for (const { link } of those) pipeline.xrevrange(keyFor(link), '+', '-', 'COUNT', 1)
    const results = await pipeline.exec()
    for (const [i, one] of those.entries()) {
      const [top] = (results?.[i]?.[1] ?? []) as [string, string[]][]
      const [fence = 0, number = 0] = Array.isArray(top) ? top[0].split('-').map(Number) : []
      if (one.missing || one.link.isBefore(fence, number)) this.#catchUp(one)
    }
  }

  #listenAgain(): void {
    const { ears, ringChannel, wantChannel } = this.#options
    ears.subscribe(ringChannel, wantChannel).catch(() => {})
    this.#listen([...this.#followed.values()])
  }

  /** First to the channel, then the stream: what comes between the two is not missed. */
  #listen(those: readonly Followed[]): void {
    if (those.length === 0) return
    const { ears, keyFor } = this.#options
    ears.subscribe(...those.map(({ link }) => keyFor(link))).then(
      () => {
        for (const one of those) this.#catchUp(one)
      },
      () => {}, // the connection went; all is done again when it is back
    )
  }

  #hear(channel: string, text: string): void {
    const { ringChannel, wantChannel, rung, wanted } = this.#options
    if (channel === ringChannel) rung(listOf(text))
    if (channel === wantChannel) wanted(String(listOf(text)[0]))
    const one = this.#followed.get(channel)
    const message = one && decode(text)
    if (!message) return
    if (one.early) {
      if (one.early.push(message) > earlyLimit) one.early = [] // found missing, and read again
      return
    }
    const heard = one.link.hear(message)
    if (heard === 'applied') one.missing = false
    if (heard === 'missing' && !one.missing) this.#catchUp(one)
  }

  #catchUp(one: Followed): void {
    const { redis, keyFor, wantChannel } = this.#options
    const { link } = one
    if (this.#followed.get(keyFor(link)) !== one) return
    one.missing = true
    one.again = one.early !== undefined // what is being read may be older than what was missed
    if (one.again || !isReady(redis)) return
    one.early = []
    redis.xrange(keyFor(link), '-', '+').then(
      (entries) => {
        const early = one.early ?? []
        one.early = undefined
        if (one.again) return this.#catchUp(one)
        if (this.#followed.get(keyFor(link)) !== one) return
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
}

const isMessage = (message: Message | undefined): message is Message => message !== undefined
