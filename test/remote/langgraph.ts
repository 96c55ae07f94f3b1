import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../support/redis.ts'

const source = fileURLToPath(new URL('./langgraph-server', import.meta.url))

/** The official LangGraph server, in development mode, with graphs of ours. */
export interface LangGraphServer {
  url: string
  /** What its graphs did to the outside world, oldest first. */
  marks(): string[]
  /** Ends it at once, with all it has started. */
  kill(): Promise<void>
  /** A new life at the same address, with what it kept. */
  restart(): Promise<void>
  close(): Promise<void>
}

export async function startLangGraph(): Promise<LangGraphServer> {
  const folder = mkdtempSync(join(tmpdir(), 'handrail-langgraph-'))
  for (const name of ['graphs.mjs', 'langgraph.json', 'package.json'])
    cpSync(join(source, name), join(folder, name))
  symlinkSync(join(source, 'node_modules'), join(folder, 'node_modules'))
  const marks = join(folder, 'marks')
  writeFileSync(marks, '')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  let life = await begin(folder, port, marks)
  const kill = async () => {
    const gone = life.exitCode !== null || life.signalCode !== null
    const exited = gone ? undefined : once(life, 'exit')
    end(life)
    await exited
    while (await isHeard(port)) await sleep(20) // those it has started go when they go
  }
  return {
    url,
    marks: () => readFileSync(marks, 'utf8').split('\n').filter(Boolean),
    kill,
    async restart() {
      await kill()
      life = await begin(folder, port, marks)
    },
    async close() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Whether somebody still takes connections there. */
const isHeard = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/** It starts processes of its own: they are one group, and go together. */
function end({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // all of it is gone
  }
}

async function begin(folder: string, port: number, marks: string): Promise<ChildProcess> {
  const bin = join(folder, 'node_modules/.bin/langgraphjs')
  const args = ['dev', '--no-browser', '--host', '127.0.0.1', '--port', String(port)]
  const child = spawn(bin, args, {
    cwd: folder,
    detached: true,
    env: {
      ...{ PATH: process.env.PATH, HOME: folder, TEST_MARKS: marks },
      ...{ LANGSMITH_TRACING: 'false', LANGGRAPH_CLI_NO_ANALYTICS: '1' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const orphan = () => end(child)
  process.once('exit', orphan)
  child.once('exit', () => process.off('exit', orphan))
  for (let tries = 0; tries < 300; tries++) {
    const ok = await fetch(`http://127.0.0.1:${port}/ok`).then(
      (response) => response.ok,
      () => false,
    )
    if (ok) return child
    if (child.exitCode !== null) break
    await sleep(200)
  }
  end(child)
  throw new Error(`the LangGraph server did not start:\n${output}`)
}
