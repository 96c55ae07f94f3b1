import fc from 'fast-check'
import { expect, test } from 'vitest'
import { piece } from '../../../test/contracts/bus.contract.ts'
import { Tail, type TailReader } from '../../core/tail.ts'
import { Link, type News, type Port } from './link.ts'
import { decode, type Message } from './messages.ts'

/** One thread on one of several servers, with a Redis that a test moves by hand. */
class Server {
  readonly tail = new Tail()
  readonly link: Link
  readonly #redis: Redis
  /** Messages on their way; undefined: not subscribed. */
  ears: string[] | undefined
  missing = false
  reader: TailReader | undefined
  /** What the reader was shown, by message. */
  shown = new Map<string, string>()

  constructor(redis: Redis) {
    this.#redis = redis
    const port: Port = {
      changed: () => {},
      flush: () => this.tell(),
      follow: () => {
        this.ears = []
        this.missing = true
      },
      leave: () => {
        this.ears = undefined
      },
      moved: () => {},
    }
    this.link = new Link('t', this.tail, port)
    this.tail.link = this.link
  }

  tell(): void {
    if (this.#redis.away) this.link.missed()
    const news = this.#redis.away ? undefined : this.link.take()
    if (!news) return
    const added = news.stored === undefined ? 'added' : this.#redis.add(news, news.stored)
    for (const server of this.#redis.servers) server.ears?.push(news.live)
    if (added === 'refused') this.link.lose()
    if (added === 'absent') this.link.missed()
  }

  hear(count = 1): void {
    for (const text of this.ears?.splice(0, count) ?? [])
      if (this.link.hear(decode(text)!) === 'missing') this.missing = true
  }

  catchUp(): void {
    if (!this.missing || !this.ears) return
    this.missing = !this.link.catchUp(this.#redis.stream.map((text) => decode(text) as Message))
  }

  take(): void {
    const { reader, tail } = this
    if (!reader) return
    for (const { id, text } of tail.pieces.slice(reader.offset))
      this.shown.set(id, (this.shown.get(id) ?? '') + text)
    reader.offset = tail.pieces.length
  }
}

class Redis {
  stream: string[] = []
  top = { fence: 0, number: 0 }
  away = false

  /** XADD, as the bus does it. */
  add({ fence, number, base }: News, text: string): 'added' | 'refused' | 'absent' {
    const { top } = this
    if (!base && this.stream.length === 0) return 'absent'
    if (fence < top.fence || (fence === top.fence && number <= top.number)) return 'refused'
    this.stream = base ? [text] : [...this.stream, text]
    this.top = { fence, number }
    return 'added'
  }

  readonly servers = [new Server(this), new Server(this), new Server(this)]
}

const often = { push: 30, tell: 20, hear: 15, take: 15, close: 5, catch: 6, entry: 4 } as const
const seldom = { begin: 1, leg: 1, deafen: 6, join: 6, leave: 2, flush: 1, away: 1 } as const
const kinds = Object.entries({ ...often, ...seldom }).map(([kind, weight]) => ({
  arbitrary: fc.constant(kind as keyof typeof often | keyof typeof seldom),
  weight,
}))

const steps = fc.array(fc.record({ do: fc.oneof(...kinds), at: fc.nat(2), of: fc.nat(3) }), {
  minLength: 20,
  maxLength: 200,
  size: 'max',
})

test('whatever is lost, late or flushed, a reader anywhere is shown each text from its start, once', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const redis = new Redis()
      const { servers } = redis
      const written = new Map<string, string>()
      let driver: Server | undefined
      let fence = 0
      let seq = 0
      let count = 0
      let open: string[] = []
      const check = () => {
        for (const { shown } of servers)
          for (const [id, text] of shown)
            if (!written.get(id)!.startsWith(text)) throw new Error(`${text} of ${written.get(id)}`)
      }
      const start = [{ do: 'begin' as const, at: 0, of: 0 }]
      for (const { do: what, at, of } of [...start, ...list]) {
        const server = servers[at]!
        switch (what) {
          case 'begin':
            driver = server
            open = []
            server.tail.begin(++fence, `run ${fence}`, seq)
            break
          case 'push': {
            if (!driver) break
            const id = `${fence}.${of}.${seq - (seq % 7)}`
            if (written.has(id) && !open.includes(id)) break // was closed
            if (!open.includes(id)) open.push(id)
            const text = `${++count};`
            written.set(id, (written.get(id) ?? '') + text)
            driver.tail.push(piece(id, text))
            break
          }
          case 'close': {
            if (!driver || open.length === 0) break
            const id = open.splice(of % open.length, 1)[0]!
            driver.tail.commit(++seq, new Set([id]), fence)
            break
          }
          case 'entry': // a command of anybody, seen here first
            if (driver) driver.tail.commit(++seq, new Set(), 0)
            else seq++
            if (server !== driver) server.tail.commit(seq, new Set(), 0)
            break
          case 'leg': // ends, and another begins at once, here by the same fence or elsewhere
            if (!driver) break
            driver.tail.commit(++seq, undefined, fence)
            open = []
            if (of === 0) driver = undefined
            else if (of === 1) {
              driver.reader?.close()
              driver.reader = undefined
              driver.shown = new Map()
            }
            driver?.tail.begin(fence, 'next leg', seq)
            break
          case 'tell':
            for (const one of servers) one.tell()
            break
          case 'hear':
            server.hear(of + 1)
            break
          case 'deafen':
            if (!server.ears) break
            server.ears.splice(0, of + 1)
            server.missing = true
            break
          case 'catch':
            server.catchUp()
            break
          case 'join':
            server.reader ??= server.tail.reader()
            break
          case 'leave':
            server.reader?.close()
            server.reader = undefined
            server.shown = new Map()
            break
          case 'take':
            server.take()
            break
          case 'flush':
            redis.stream = []
            redis.top = { fence: 0, number: 0 }
            break
          case 'away':
            redis.away = !redis.away
        }
        check()
      }
      // All is well again: the origin says everything once more, as after a reconnect.
      redis.away = false
      if (!driver) return
      driver.link.missed()
      driver.tell()
      for (const server of servers) {
        // Whoever still believed to drive learns from the entries that it does not.
        if (server !== driver) server.tail.commit(seq, new Set(), fence)
        server.hear(1_000)
        server.catchUp()
        server.take()
      }
      check()
      const { runId, carried, pieces } = driver.tail
      for (const { reader, tail, shown } of servers) {
        if (!reader) continue
        expect(tail).toMatchObject({ fence, runId, seq: driver.tail.seq, carried, pieces })
        expect(tail.known).toBe(true)
        for (const id of open) expect(shown.get(id)).toBe(written.get(id))
      }
    }),
    { numRuns: 500 },
  )
})

test('a driver that was replaced while it slept is not heard any more', () => {
  const redis = new Redis()
  const [a, b, c] = redis.servers as [Server, Server, Server]
  c.reader = c.tail.reader()
  c.catchUp()
  a.tail.begin(1, 'run', 1)
  a.tail.push(piece('m', 'old'))
  a.tell()
  b.tail.begin(2, 'run', 2)
  b.tail.push(piece('n', 'new'))
  b.tell()
  a.tail.push(piece('m', 'older'))
  a.tell()
  c.hear(10)
  expect(c.tail).toMatchObject({ fence: 2, pieces: [{ id: 'n', text: 'new' }] })
  expect(a.link.role).toBe('idle')
})

test('the stream stays short while much is open and much is committed', () => {
  const redis = new Redis()
  const [a] = redis.servers as [Server]
  a.tail.begin(1, 'run', 0)
  for (let n = 0; n < 200; n++) a.tail.push(piece('open', 'x'))
  a.tell()
  let characters = 0
  for (let seq = 1; seq < 2_000; seq++) {
    a.tail.push(piece(`m${seq}`, 'y'))
    a.tail.commit(seq, new Set([`m${seq}`]), 1)
    a.tell()
    characters += redis.stream.at(-1)!.length
    expect(redis.stream.length).toBeLessThan(500)
  }
  expect(characters / 2_000).toBeLessThan(100)
})

test('what is too long for the stream waits for the next base', () => {
  const redis = new Redis()
  const [a, b] = redis.servers as [Server, Server]
  a.tail.begin(1, 'run', 0)
  a.tell()
  for (let n = 0; n < 10; n++) {
    a.tail.push(piece('m', 'x'.repeat(1 << 20)))
    a.tell()
  }
  expect(redis.stream.reduce((sum, text) => sum + text.length, 0)).toBeLessThan(9 << 20)
  b.reader = b.tail.reader()
  b.catchUp()
  a.tail.push(piece('m', 'y'))
  a.tell()
  b.hear()
  b.catchUp()
  expect(b.missing).toBe(true)
  a.tail.commit(1, new Set(['m']), 1)
  a.tail.push(piece('n', 'z'))
  a.tell()
  b.hear()
  b.catchUp()
  expect(b.tail).toMatchObject({ seq: 1, pieces: [{ id: 'n', text: 'z' }] })
})
