import { randomBytes } from 'node:crypto'
import { RuntimeError } from '../../core/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Database } from './database.ts'
import { isCollision, outcomeOf, problemOf, sqlState } from './problems.ts'
import type { Statement, Statements } from './statements.ts'
import type { Erasure, Transition } from './transition.ts'

/** What Postgres says of one transition or erasure. */
export interface Verdict {
  first_seq: number | null
  refused: 'thread_not_found' | 'thread_exists' | 'fence' | 'fact' | 'busy' | null
  place: number | null
  actual: string | null
}

/** A transition, and its JSON as it is sent; or an erasure. */
export type Change = { append: Transition; json: string } | { erase: Erasure }

interface Waiting {
  change: Change
  /** What it must not be overtaken on: its thread, and the name it takes. */
  keys: string[]
  /** Not in one statement with others. */
  alone: boolean
  bytes: number
  /** By the monotonic clock; afterwards the caller no longer waits for an answer that means no. */
  until: number
  resolve(verdict: Verdict): void
  reject(error: unknown): void
}

const mostWaiting = 10_000
const mostBytes = 64 << 20
const batchSize = { least: 8, most: 64, bytes: 4 << 20 }

/**
 * Writes over a few connections. What comes while all of them are busy goes out together, one
 * statement for many; what concerns the same thread or name stays in its order.
 */
export class Writer {
  readonly #database: Database
  readonly #sql: Statements
  readonly #patience: number
  #free: number
  #waiting: Waiting[] = []
  #bytes = 0
  /** How many under way hold each key. */
  readonly #busy = new Map<string, number>()
  #scheduled = false
  #expiry: NodeJS.Timeout | undefined
  /** Accepted and not settled. */
  #open = 0
  #idle: (() => void)[] = []
  #stopped = false
  readonly #ended = new AbortController()

  /** `patience`: milliseconds that a change may wait for its turn, or be tried again. */
  constructor(database: Database, sql: Statements, lanes: number, patience: number) {
    this.#patience = patience
    this.#database = database
    this.#sql = sql
    this.#free = lanes
  }

  submit(change: Change, keys: string[]): Promise<Verdict> {
    if (this.#stopped) return Promise.reject(new RuntimeError('stopping'))
    if (this.#waiting.length >= mostWaiting || this.#bytes > mostBytes)
      return Promise.reject(new RuntimeError('overloaded', undefined, { retryAfter: 1 }))
    return new Promise<Verdict>((resolve, reject) => {
      const until = systemClock.monotonic() + this.#patience
      this.#open++
      const alone = 'erase' in change
      const bytes = alone ? 0 : change.json.length
      this.#wait([{ change, keys, alone, bytes, until, resolve, reject }])
    })
  }

  /** Refuses everything from here on, and returns when what was accepted is settled, or `ms` later. */
  async stop(ms: number): Promise<void> {
    this.#stopped = true
    if (this.#open > 0) {
      const idle = new Promise<void>((resolve) => this.#idle.push(resolve))
      const late = new AbortController()
      await Promise.race([idle, systemClock.sleep(ms, late.signal).catch(() => {})])
      late.abort('idle')
    }
    this.#ended.abort()
    for (const item of this.#waiting.splice(0)) this.#reject(item, new RuntimeError('stopping'))
  }

  #wait(items: Waiting[], first = false): void {
    if (items.length === 0) return
    if (first) this.#waiting.unshift(...items)
    else this.#waiting.push(...items)
    for (const { bytes } of items) this.#bytes += bytes
    this.#expiry ??= setInterval(() => this.#expire(), 250).unref()
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(() => this.#dispatch()) // whoever comes in this turn of the event loop comes along
  }

  #dispatch(): void {
    this.#scheduled = false
    while (this.#free > 0) {
      const batch = this.#take()
      if (batch.length === 0) break
      this.#free--
      void this.#write(batch).finally(() => {
        this.#free++
        this.#dispatch()
      })
    }
    if (this.#waiting.length > 0) return
    clearInterval(this.#expiry)
    this.#expiry = undefined
  }

  /** The next ones whose threads nobody else is busy with: a fair share, so that no lane stays idle. */
  #take(): Waiting[] {
    const share = Math.ceil(this.#waiting.length / this.#free)
    const size = Math.min(batchSize.most, Math.max(batchSize.least, share))
    const batch: Waiting[] = []
    const rest: Waiting[] = []
    const blocked = new Set(this.#busy.keys())
    let bytes = 0
    for (const [n, item] of this.#waiting.entries()) {
      const { alone } = item
      const full = batch.length >= size || bytes > batchSize.bytes || (alone && batch.length > 0)
      if (full) {
        rest.push(...this.#waiting.slice(n))
        break
      }
      if (item.keys.some((key) => blocked.has(key))) {
        rest.push(item)
        for (const key of item.keys) blocked.add(key)
        continue
      }
      batch.push(item)
      bytes += item.bytes
      if (!alone) continue
      rest.push(...this.#waiting.slice(n + 1))
      break
    }
    this.#waiting = rest
    this.#bytes -= bytes
    for (const { keys } of batch)
      for (const key of keys) this.#busy.set(key, (this.#busy.get(key) ?? 0) + 1)
    return batch
  }

  async #write(batch: Waiting[]): Promise<void> {
    const attempt = randomBytes(8).readBigInt64BE().toString()
    let client: Awaited<ReturnType<Database['connect']>>
    try {
      client = await this.#database.connect()
    } catch (error) {
      this.#refuse(batch, error) // nothing was sent
      return
    }
    try {
      const verdicts = await this.#database.on<Verdict & Record<string, unknown>>(
        client,
        ...this.#statement(batch, attempt),
      )
      const locked: Waiting[] = []
      for (const [n, item] of batch.entries()) {
        const verdict = verdicts[n] ?? done
        if (verdict.refused === 'busy') locked.push(item)
        else this.#settle(item, verdict)
      }
      for (const item of locked) item.alone = true
      this.#again(locked, new Error('The thread is locked'))
    } catch (error) {
      if (outcomeOf(error) === 'unknown') void this.#findOut(batch, attempt)
      else if (batch.length > 1) for (const item of batch) await this.#write([item])
      else this.#undone(batch[0]!, error)
    }
  }

  #statement(batch: Waiting[], attempt: string): [Statement, unknown[]] {
    const [{ change }] = batch as [Waiting]
    if ('append' in change) {
      const transitions = batch.map((item) => ('json' in item.change ? item.change.json : ''))
      return [this.#sql.append, [attempt, `[${transitions.join()}]`]]
    }
    const { thread, fence, expected, residue } = change.erase
    const guard = [fence ?? null, expected && JSON.stringify(expected)]
    return [this.#sql.erase, [attempt, thread, ...guard, residue?.id, residue?.text]]
  }

  /** Postgres rolled it back, and it was alone. */
  #undone(item: Waiting, error: unknown): void {
    if (isCollision(error)) this.#again([item], error)
    else if (sqlState(error) === uniqueViolation)
      this.#settle(item, { ...done, refused: 'thread_exists' })
    else this.#refuse([item], error)
  }

  /**
   * The connection went before the answer came. Nobody is told anything until it is known what became
   * of the attempt, however long Postgres is away; its threads wait for that.
   */
  async #findOut(batch: Waiting[], attempt: string): Promise<void> {
    const appends = batch.flatMap(({ change }) => ('append' in change ? [change.append] : []))
    const firsts = appends.map(({ thread, entries }) => ({
      thread,
      envelope: entries[0]?.envelope ?? null,
    }))
    for (let pause = 50; !this.#ended.signal.aborted; pause = Math.min(pause * 2, 1_000)) {
      try {
        const values = [attempt, JSON.stringify(firsts)]
        const found = await this.#database.query<Written>(this.#sql.giveUp, values)
        const gone = await this.#isErased(batch[0]!)
        for (const [n, item] of batch.entries()) {
          const firstSeq = found[n]?.first_seq ?? null
          if (firstSeq !== null || gone) this.#settle(item, { ...done, first_seq: firstSeq })
        }
        const unwritten = gone ? [] : batch.filter((_, n) => (found[n]?.first_seq ?? null) === null)
        this.#again(unwritten, new Error('The connection to Postgres broke'))
        this.#dispatch() // for whoever waited behind them
        return
      } catch {
        await systemClock.sleep(pause, this.#ended.signal).catch(() => {})
      }
    }
    this.#refuse(batch, new RuntimeError('outcome_unknown'))
  }

  /** Of an erasure that may have happened: gone is gone, whoever did it. */
  async #isErased({ change }: Waiting): Promise<boolean> {
    if (!('erase' in change)) return false
    return (await this.#database.query(this.#sql.thread, [change.erase.thread])).length === 0
  }

  /** Known not to be written: another try if the caller still waits, in its old place. */
  #again(items: Waiting[], error: unknown): void {
    const now = systemClock.monotonic()
    const intime = this.#stopped ? [] : items.filter(({ until }) => now < until)
    this.#refuse(
      items.filter((item) => !intime.includes(item)),
      error,
    )
    for (const item of intime) this.#release(item)
    this.#wait(intime, true)
  }

  #expire(): void {
    const now = systemClock.monotonic()
    const late = this.#waiting.filter(({ until }) => until <= now)
    if (late.length === 0) return
    this.#waiting = this.#waiting.filter(({ until }) => until > now)
    for (const item of late) {
      this.#bytes -= item.bytes
      this.#reject(item, new Error('Postgres is too slow'))
    }
  }

  #settle(item: Waiting, verdict: Verdict): void {
    this.#release(item)
    this.#close()
    item.resolve(verdict)
  }

  #refuse(items: Waiting[], error: unknown): void {
    for (const item of items) {
      this.#release(item)
      this.#reject(item, error)
    }
  }

  #reject(item: Waiting, error: unknown): void {
    this.#close()
    item.reject(problemOf(error))
  }

  #release({ keys }: Waiting): void {
    for (const key of keys) {
      const others = (this.#busy.get(key) ?? 1) - 1
      if (others > 0) this.#busy.set(key, others)
      else this.#busy.delete(key)
    }
  }

  #close(): void {
    this.#open--
    if (this.#open === 0) for (const idle of this.#idle.splice(0)) idle()
  }
}

interface Written extends Record<string, unknown> {
  first_seq: number | null
}

const done: Verdict = { first_seq: null, refused: null, place: null, actual: null }
const uniqueViolation = '23505'
