import pg from 'pg'
import { isReadOnly, outcomeOf, Silence } from './problems.ts'
import type { Statement } from './statements.ts'

export interface Log {
  info(details: object, message: string): void
  warn(details: object, message: string): void
}

export interface DatabaseOptions {
  url?: string
  /** A pool that somebody else made, and will end. */
  pool?: pg.Pool
  /** Connections at most. */
  connections?: number
  /** Milliseconds after which a statement is given up, by Postgres and, a little later, by us. */
  statementLimit?: number
  log?: Log
}

/** Core waits five seconds for a write. */
export const statementLimit = 4_000
/** Milliseconds to come by a connection: less than core waits for a write. */
const connectLimit = 3_000
/** Postgres should be first to give up: then it is known that nothing happened. */
const patience = 500

type Row = Record<string, unknown>

/** Numbers are numbers: none of ours exceeds 2^53. */
const types = {
  getTypeParser: ((id: number, format?: 'text') =>
    id === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(id, format)) as never,
}

/** Connections, and one statement at a time on each of them. */
export class Database {
  #pool: pg.Pool
  readonly #given: pg.Pool | undefined
  readonly #settings: pg.PoolConfig
  readonly #limit: number
  readonly #log: Log | undefined
  #away = false

  constructor({
    url,
    pool,
    connections = 10,
    statementLimit: limit = statementLimit,
    log,
  }: DatabaseOptions) {
    this.#log = log
    this.#limit = limit + patience
    this.#given = pool
    this.#settings = {
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: connectLimit,
      statement_timeout: limit,
      keepAlive: true,
      application_name: 'handrail',
    }
    this.#pool = pool ?? this.#newPool()
  }

  /** A connection of its own; `release(true)` throws it away. */
  async connect(): Promise<pg.PoolClient> {
    try {
      const client = await this.#pool.connect()
      if (!client.listeners('error').includes(ignore)) client.on('error', ignore)
      return client
    } catch (error) {
      this.#tell(error)
      throw error
    }
  }

  /** One statement on that connection, which is gone if this rejects with what is no SQL error. */
  async on<T extends Row>(
    client: pg.PoolClient,
    statement: Statement,
    values: unknown[],
  ): Promise<T[]> {
    let timer: NodeJS.Timeout | undefined
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Silence()), this.#limit)
    })
    let broken = true
    try {
      const answered = client.query<T>({ ...statement, values, types })
      answered.catch(ignore) // of a connection that was thrown away meanwhile
      const { rows } = await Promise.race([answered, silence])
      broken = false
      this.#tell()
      return rows
    } catch (error) {
      broken = outcomeOf(error) === 'unknown' || isReadOnly(error)
      if (broken && !isReadOnly(error)) this.#tell(error)
      if (error instanceof Silence) this.startAfresh()
      throw error
    } finally {
      clearTimeout(timer)
      client.release(broken)
    }
  }

  /** A statement that may be made twice: a connection that broke since it was last used is no failure. */
  async query<T extends Row>(statement: Statement, values: unknown[] = []): Promise<T[]> {
    const client = await this.connect()
    try {
      return await this.on<T>(client, statement, values)
    } catch (error) {
      if (outcomeOf(error) === 'undone' || error instanceof Silence) throw error
      return await this.on<T>(await this.connect(), statement, values)
    }
  }

  /** A connection for a while, with no limit of time. */
  async borrow<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.connect()
    let broken = true
    try {
      const result = await use(client)
      broken = false
      return result
    } finally {
      client.release(broken)
    }
  }

  /** One connection that hears nothing is seldom alone: the idle ones may be as dead. */
  startAfresh(): void {
    if (this.#given) return
    this.#pool.end().catch(ignore) // those in use end when they are given back
    this.#pool = this.#newPool()
  }

  async close(): Promise<void> {
    if (!this.#given) await this.#pool.end()
  }

  #newPool(): pg.Pool {
    const pool = new pg.Pool(this.#settings)
    pool.on('error', ignore) // an idle connection broke: the pool makes another
    return pool
  }

  /** Once when it goes, and once when it is back. */
  #tell(error?: unknown): void {
    if (this.#away === (error !== undefined)) return
    this.#away = error !== undefined
    if (this.#away) this.#log?.warn({ err: error }, 'Postgres is away')
    else this.#log?.info({}, 'Postgres is back')
  }
}

function ignore(): void {}
