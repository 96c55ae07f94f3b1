import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A Redis of one's own, on a free port, that keeps nothing. */
export interface RedisServer {
  url: string
  port: number
  /** SIGSTOP and SIGCONT: there, and silent. */
  pause(): void
  resume(): void
  /** Kills it, and all it knew. */
  kill(): Promise<void>
  /** On the same port, empty. */
  start(): Promise<void>
  /** One command, by a connection of its own; the reply as it is on the wire. */
  command(...words: string[]): Promise<string>
  stop(): Promise<void>
}

export async function startRedis(): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'handrail-redis-'))
  const port = await freePort()
  let child: ChildProcess | undefined

  const command = (...words: string[]) =>
    new Promise<string>((resolve, reject) => {
      const socket = createConnection(port, '127.0.0.1')
      let reply = ''
      socket.setEncoding('utf8')
      socket.on('data', (chunk) => {
        reply += chunk
      })
      socket.on('error', reject)
      socket.on('end', () => resolve(reply.replace(/\+OK\r\n$/, '')))
      socket.write(`${resp(words)}${resp(['QUIT'])}`)
    })

  async function start(): Promise<void> {
    const given = {
      bind: '127.0.0.1',
      port: String(port),
      dir: directory,
      save: '',
      appendonly: 'no',
      'maxmemory-policy': 'noeviction',
    }
    const args = Object.entries(given).flatMap(([name, value]) => [`--${name}`, value])
    child = spawn('redis-server', args, { stdio: 'ignore' })
    const failed = new Promise<never>((_, reject) => child!.once('error', reject))
    for (let tries = 0; ; tries++) {
      const answer = await Promise.race([command('PING').catch(() => ''), failed])
      if (answer.includes('PONG')) return
      if (tries > 200) throw new Error('redis-server did not begin to listen')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async function kill(): Promise<void> {
    const last = child
    child = undefined
    if (!last || last.exitCode !== null || last.signalCode !== null) return
    const exited = once(last, 'exit')
    last.kill('SIGKILL')
    await exited
  }

  const orphan = () => child?.kill('SIGKILL')
  process.once('exit', orphan) // a test run that is cut short leaves nothing behind
  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pause: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
    kill,
    start,
    command,
    async stop() {
      await kill()
      process.off('exit', orphan)
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const resp = (words: readonly string[]) =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
