import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Postgres, startPostgres } from './postgres.ts'
import { freePort, type RedisServer, startRedis } from './redis.ts'
import { type RoundRobin, roundRobin } from './round-robin.ts'
import { type ServerProcess, startServer, temporaryDirectory } from './server.ts'

/** One of several servers, always at the same address. */
export interface OneOfMany {
  name: string
  url: string
  /** What it has written, in all its lives. */
  output(): string
  kill(signal?: NodeJS.Signals): Promise<void>
  /** SIGSTOP: the process keeps its connections and does nothing until `resume`. */
  suspend(): void
  /** SIGCONT. */
  resume(): void
  /** SIGTERM, and wait. */
  stop(): Promise<void>
  /** A new life, after it was killed or stopped. */
  restart(): Promise<void>
}

export interface Servers {
  servers: OneOfMany[]
  /** Gives each request to the next server. */
  turns: RoundRobin
  postgres: Postgres
  /** Absent when each server is to be alone. */
  redis: RedisServer | undefined
  /** A directory that the servers and the test can both see. */
  path: string
  stop(): Promise<void>
}

export interface ServersOptions {
  count?: number
  /** Without Redis the servers have only the database in common. */
  redis?: boolean
  /** Of Postgres, if not the fastest: those forget what was committed last when it crashes. */
  settings?: string
  env?: (place: { name: string; path: string }) => Record<string, string>
}

/** Real server processes on one Postgres and one Redis, and nothing else in common. */
export async function startServers(options: ServersOptions = {}): Promise<Servers> {
  const { count = 3, env = () => ({}) } = options
  const { path, remove } = await temporaryDirectory()
  const [postgres, redis] = await Promise.all([
    startPostgres(options.settings),
    options.redis === false ? undefined : startRedis(),
  ])
  const shared = { DATABASE_URL: postgres.url, ...(redis && { REDIS_URL: redis.url }) }
  const names = Array.from({ length: count }, (_, n) => String.fromCharCode(65 + n))
  const servers = await Promise.all(
    names.map(async (name) => {
      const own = join(path, name)
      await mkdir(own)
      return await oneOfMany(name, {
        ...shared,
        PORT: String(await freePort()),
        HANDRAIL_DATA: join(own, 'data'),
        HANDRAIL_SPOOL: join(own, 'spool'),
        HANDRAIL_DATABASE_CONNECTIONS: '5',
        ...env({ name, path }),
      })
    }),
  )
  const turns = await roundRobin(servers.map(({ url }) => url))
  return {
    servers,
    turns,
    postgres,
    redis,
    path,
    async stop() {
      await turns.close()
      await Promise.all(servers.map((one) => one.stop()))
      await Promise.all([postgres.stop(), redis?.stop()])
      await remove()
    },
  }
}

async function oneOfMany(name: string, env: Record<string, string>): Promise<OneOfMany> {
  let past = ''
  let life = await begin(env)
  const { url } = life
  const end = async (signal: NodeJS.Signals) => {
    life.child.kill(signal)
    await life.exited
  }
  return {
    name,
    url,
    output: () => past + life.output(),
    kill: (signal = 'SIGKILL') => end(signal),
    suspend: () => void life.child.kill('SIGSTOP'),
    resume: () => void life.child.kill('SIGCONT'),
    stop: () => end('SIGTERM'),
    async restart() {
      past += life.output()
      life = await begin(env)
    },
  }
}

/** A life that is not longer than ours: a test run that is cut short leaves nothing behind. */
async function begin(env: Record<string, string>): Promise<ServerProcess> {
  const life = await startServer(env)
  const orphan = () => life.child.kill('SIGKILL')
  process.once('exit', orphan)
  void life.exited.then(() => process.off('exit', orphan))
  return life
}
