import { type Clock, systemClock } from '../../lib/clock.ts'
import { type Connection, SessionGone } from './connection.ts'

/** Milliseconds after which a connection that nobody used is closed. */
const idleLimit = 5 * 60_000
/** Tenants that are connected to one server at once. */
const mostOpen = 64

interface Held {
  connection: Promise<Connection>
  users: number
  usedAt: number
  /** The last of those that wait for their turn. */
  turn: Promise<unknown>
}

export interface ConnectionsOptions {
  open: (tenant: string) => Promise<Connection>
  /** One user of a connection at a time. */
  serial?: boolean
  clock?: Clock
  most?: number
  idle?: number
}

/**
 * One connection to a server for each tenant: what a server remembers of one is not there for another.
 * Opened by who needs it first, and closed when nobody has for a while.
 */
export class Connections {
  readonly #held = new Map<string, Held>()
  /** When a server that could not be reached may be tried again, and how often it could not. */
  readonly #away = new Map<string, { until: number; times: number }>()
  readonly #options: Required<Omit<ConnectionsOptions, 'serial'>> & { serial: boolean }
  readonly #closing = new AbortController()

  constructor(options: ConnectionsOptions) {
    const defaults = { clock: systemClock, most: mostOpen, idle: idleLimit, serial: false }
    this.#options = { ...defaults, ...options }
    this.#tidy().catch(() => {})
  }

  get size(): number {
    return this.#held.size
  }

  /** Runs `work` on the tenant's connection. What the server forgot is made anew, once. */
  async use<T>(
    tenant: string,
    signal: AbortSignal,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#use(tenant, signal, work)
    } catch (error) {
      if (!(error instanceof SessionGone)) throw error
      this.#drop(tenant)
      return await this.#use(tenant, signal, work)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort('closing')
    const all = [...this.#held.values()]
    this.#held.clear()
    await Promise.all(all.map(closed))
  }

  async #use<T>(
    tenant: string,
    signal: AbortSignal,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const held = this.#hold(tenant)
    held.users++
    const before = held.turn
    const { promise: done, resolve } = deferred()
    if (this.#options.serial) held.turn = before.then(() => done)
    try {
      const connection = await orAborted(held.connection.catch(notOpened), signal)
      if (this.#options.serial) await orAborted(before, signal)
      return await work(connection)
    } finally {
      held.users--
      held.usedAt = this.#options.clock.monotonic()
      resolve()
    }
  }

  #hold(tenant: string): Held {
    const known = this.#held.get(tenant)
    if (known) return known
    const { clock, most, open } = this.#options
    const away = this.#away.get(tenant)
    if (away && clock.monotonic() < away.until)
      throw new Error(`${unreachable} It is tried again soon.`)
    if (this.#held.size >= most && !this.#makeRoom()) {
      throw new Error('Too many use this MCP server now. The call was not made.')
    }
    const connection = open(tenant)
    const held = { connection, users: 0, usedAt: clock.monotonic(), turn: Promise.resolve() }
    this.#held.set(tenant, held)
    connection.then(
      ({ gone }) => {
        this.#away.delete(tenant)
        const forget = () => void (this.#held.get(tenant) === held && this.#held.delete(tenant))
        gone.addEventListener('abort', forget, { once: true })
        if (gone.aborted) forget()
      },
      () => {
        this.#held.delete(tenant)
        const times = (away?.times ?? 0) + 1
        this.#away.set(tenant, { times, until: clock.monotonic() + backOff(times) })
      },
    )
    return held
  }

  /** The one that was not used for the longest goes, if any is free. */
  #makeRoom(): boolean {
    const free = [...this.#held].filter(([, { users }]) => users === 0)
    const [oldest] = free.sort(([, a], [, b]) => a.usedAt - b.usedAt)
    if (oldest) this.#drop(oldest[0])
    return oldest !== undefined
  }

  #drop(tenant: string): void {
    const held = this.#held.get(tenant)
    this.#held.delete(tenant)
    if (held) void closed(held)
  }

  async #tidy(): Promise<void> {
    const { clock, idle } = this.#options
    for (;;) {
      await clock.sleep(idle / 4, this.#closing.signal)
      for (const [tenant, { users, usedAt }] of this.#held) {
        if (users === 0 && clock.monotonic() - usedAt >= idle) this.#drop(tenant)
      }
      for (const [tenant, { until }] of this.#away) {
        if (clock.monotonic() > until + idle) this.#away.delete(tenant)
      }
    }
  }
}

const unreachable = 'The MCP server cannot be reached. The call was not made.'

function notOpened(error: unknown): never {
  throw new Error(`${unreachable} (${error instanceof Error ? error.message : String(error)})`)
}

/** Milliseconds to wait before a try, by how often it failed. */
export const backOff = (times: number): number => Math.min(500 * 2 ** (times - 1), 30_000)

const closed = async ({ connection }: Held): Promise<void> =>
  await connection.then((one) => one.close()).catch(() => {})

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** Whoever is told to stop while it waits has not begun. */
async function orAborted<T>(given: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const over = new AbortController()
  const stopped = new Promise<never>((_resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true, signal: over.signal })
  })
  return await Promise.race([given, stopped]).finally(() => over.abort())
}
