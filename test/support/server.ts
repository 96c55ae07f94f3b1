import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** A real server as a child process, on a port of its own: what tests kill. Runs `dist/`. */
export interface ServerProcess {
  url: string
  child: ChildProcess
  /** Resolves when the process is gone. */
  exited: Promise<{ code: number | null; signal: string | null }>
  /** SIGKILL, and wait. */
  kill(): Promise<void>
  /** SIGTERM, and wait. */
  stop(): Promise<void>
  output(): string
}

export async function startServer(env: Record<string, string> = {}): Promise<ServerProcess> {
  const child = spawn(process.execPath, [main], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      LOG_LEVEL: 'warn',
      HANDRAIL_DEMO_DELAY_MS: '1',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  let url: string | undefined
  const listens = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk
      if (url !== undefined) return
      const match = /listens on (http:\/\/\S+)/.exec(output)
      url = match?.[1]
      if (url !== undefined) resolve(url)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    void exited.then(({ code, signal }) =>
      reject(new Error(`the server ended before it listened (${signal ?? code}):\n${output}`)),
    )
  })
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await exited
  }
  return {
    url: listens,
    child,
    exited,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    output: () => output,
  }
}

export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'handrail-test-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
