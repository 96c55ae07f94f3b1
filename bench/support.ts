import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))

export interface Usage {
  /** Microseconds. */
  cpu: number
  rss: number
  heapUsed: number
  syncs: number
  /** Milliseconds that the event loop was late since it was last asked for `lag`; with `BENCH_LAG=1`. */
  lag?: { p50: number; p99: number; max: number }
}

/** A server in a process of its own. */
export interface Measured {
  url: string
  /** Milliseconds from spawn to listening. */
  started: number
  usage(ask?: 'read' | 'collect' | 'release' | 'lag'): Promise<Usage>
  /** False once the process has ended. */
  running(): boolean
  stop(): Promise<void>
}

export const bareServer = () => start('./bare-server.mjs', {})

/** Nothing is sent to the makers of what is measured. */
export const silent = { COPILOTKIT_TELEMETRY_DISABLED: 'true', DO_NOT_TRACK: '1' }

/** The peers as they are installed. */
export const peerServer = () => start('./peer/server.mjs', silent)
export const graphqlPeer = () => start('./peer-graphql/server.mjs', silent)

export function handrail(directory: string, env: Record<string, string> = {}): Promise<Measured> {
  return start('../dist/main.js', {
    PORT: '0',
    LOG_LEVEL: 'warn',
    HANDRAIL_DATA: directory,
    HANDRAIL_SPOOL: join(directory, 'spool'),
    HANDRAIL_CONFIG: here('./handrail.config.mjs'),
    ...env,
  })
}

async function start(file: string, env: Record<string, string>): Promise<Measured> {
  const since = performance.now()
  const profile = process.env.BENCH_PROFILE ? ['--cpu-prof', '--cpu-prof-dir=.cpu-profiles'] : []
  const child = spawn(process.execPath, ['--expose-gc', ...profile, here(file)], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  return {
    url: await listening(child),
    started: performance.now() - since,
    async usage(ask = 'read') {
      child.send(ask)
      return (await once(child, 'message'))[0] as Usage
    },
    running: () => child.exitCode === null && child.signalCode === null,
    async stop() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

function listening(child: ChildProcess): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    child.stdout!.on('data', (chunk) => {
      output += chunk
      const match = /listens on (http:\/\/\S+)/.exec(output)
      if (match) resolve(match[1]!)
    })
    child.once('exit', () => reject(new Error(`A measured server ended: ${output}`)))
  })
}

const agent = new Agent({ keepAlive: true })

/** The light client: a POST whose response the caller reads or leaves unread. */
export async function post(url: string, message: string): Promise<IncomingMessage> {
  const body = JSON.stringify({ user_message: message })
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const sent = request(url, { method: 'POST', agent, headers })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`)
  return response
}

export async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** A whole interaction; throws unless it completed. */
export async function play(url: string, message: string): Promise<string> {
  const text = await textOf(await post(url, message))
  if (!text.includes('"status":"COMPLETED"')) throw new Error(`did not complete: ${text}`)
  return text
}

/** Until the server has nothing to do. */
export async function quiet(server: Measured): Promise<void> {
  for (let last = -Infinity; ; ) {
    const { cpu } = await server.usage()
    if (cpu - last < 20_000) return
    last = cpu
    await sleep(500)
  }
}

export const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!
}

export const us = (value: number) => `${value.toFixed(value < 100 ? 2 : 0)} us`
export const ms = (value: number) => `${value.toFixed(value < 100 ? 2 : 0)} ms`
export const kb = (bytes: number) => `${(bytes / 1024).toFixed(1)} KB`
export const mb = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`
export const percent = (share: number) => `${Math.round(share * 100)}%`
export const times = (value: number) => `${value.toFixed(2)}x`

export const median = (values: readonly number[]) => quantile(values, 0.5)

export async function withDirectory<T>(use: (path: string) => Promise<T>, root = tmpdir()) {
  const path = await mkdtemp(join(root, 'handrail-bench-'))
  try {
    return await use(path)
  } finally {
    // A server that failed may still be writing: what went wrong with it is what is to be told.
    await rm(path, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
  }
}

/** Where a hundred thousand small files are made and removed soonest. */
export const quickest = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export function table(title: string, rows: readonly (readonly string[])[], notes: string[] = []) {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  ')
  const [head, ...body] = rows
  const rule = widths.map((width) => '-'.repeat(width)).join('  ')
  console.log(['', title, '', line(head!), rule, ...body.map(line), ...notes, ''].join('\n'))
}
