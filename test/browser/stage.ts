import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ServerProcess, startServer, temporaryDirectory } from '../support/server.ts'

const config = fileURLToPath(new URL('./handrail.config.mjs', import.meta.url))
const dist = fileURLToPath(new URL('./dist', import.meta.url))

/** A real server with a scripted model, killed and started again as the story wants it. */
export interface Stage {
  readonly url: string
  /** Lets a model that stands at this gate go on, now and in every later life of the server. */
  open(gate: string): void
  /** Who was signed into the book, one entry per execution of the tool. */
  guests(): string[]
  /** SIGKILL; nothing listens afterwards. */
  kill(): Promise<void>
  /** Another life on the same port, with the same data. */
  start(): Promise<void>
  /** What a story that ended early has killed lives again, for those that follow. */
  revive(): Promise<void>
  /** The runs of a thread as the journal has them: what was said, and how it ended. */
  runs(threadId: string): Promise<{ said: string; status: string }[]>
  /** The threads that the server lists. */
  threads(): Promise<string[]>
  close(): Promise<void>
}

export async function openStage(
  configFile = config,
  more: Record<string, string> = {},
): Promise<Stage> {
  const directory = await temporaryDirectory()
  const stage = join(directory.path, 'stage')
  await mkdir(stage)
  const env = {
    HANDRAIL_CONFIG: configFile,
    HANDRAIL_DATA: join(directory.path, 'data'),
    HANDRAIL_SPOOL: join(directory.path, 'spool'),
    HANDRAIL_DRAIN_MS: '0',
    BROWSER_STAGE: stage,
    ...more,
  }
  let server: ServerProcess = await startServer(env)
  let dead = false
  const { url } = server
  const start = async () => {
    server = await startServer({ ...env, PORT: new URL(url).port })
    dead = false
  }
  const guests = join(stage, 'guests')
  return {
    url,
    open: (gate) => writeFileSync(join(stage, gate), ''),
    guests: () =>
      existsSync(guests) ? readFileSync(guests, 'utf8').split('\n').filter(Boolean) : [],
    async kill() {
      dead = true
      await server.kill()
    },
    start,
    async revive() {
      if (dead) await start()
    },
    async runs(threadId) {
      const response = await fetch(`${url}/chats/${threadId}`)
      if (!response.ok) throw new Error(`chat ${threadId}: ${response.status}`)
      const { interactions } = (await response.json()) as { interactions: Interaction[] }
      return interactions.map(({ user_message, status }) => ({ said: user_message, status }))
    },
    async threads() {
      const { threads } = (await (await fetch(`${url}/copilotkit/threads`)).json()) as Threads
      return threads.map(({ id }) => id)
    },
    async close() {
      await server.kill()
      await directory.remove()
    },
  }
}

interface Threads {
  threads: { id: string }[]
}

interface Interaction {
  user_message: string
  status: string
}

const types: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.woff2': 'font/woff2',
}

/** The built page on a port of its own, so that the server is another origin to it. */
export async function servePage(): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = join(dist, normalize(new URL(request.url ?? '/', 'http://page').pathname))
    if (extname(path) === '' || !existsSync(path)) {
      response.writeHead(404).end('Not here.')
      return
    }
    const type = types[extname(path)] ?? 'application/octet-stream'
    // As in production: assets have a digest in their names and need not be asked for twice.
    const cache = path.includes('/assets/') ? 'max-age=3600, immutable' : 'no-cache'
    response.writeHead(200, { 'content-type': type, 'cache-control': cache })
    response.end(readFileSync(path))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
