import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Settings } from '../../src/settings.ts'
import type { McpServer } from '../../src/tools/mcp/servers.ts'
import { type ServeOptions, serve } from './serve.ts'
import { temporaryDirectory } from './server.ts'

const script = fileURLToPath(new URL('./mcp-server.mjs', import.meta.url))

/** What the servers of a test share: the schema that they tell, and the record of what they did. */
export interface McpStage {
  env: { CONTROL: string }
  /** Our server over stdio. */
  stdio: Extract<McpServer, { command: string }>
  /** Each `pay`, in the order they were done. */
  done(): string[]
  /** What `pay` says its amount is. */
  amount(schema: object): void
}

export async function mcpStage(): Promise<McpStage> {
  const directory = await temporaryDirectory()
  onTestFinished(directory.remove)
  const control = join(directory.path, 'control.json')
  const done = join(directory.path, 'done')
  const amount = (schema: object) =>
    writeFileSync(control, JSON.stringify({ amount: schema, done }))
  amount({ type: 'number' })
  const env = { CONTROL: control }
  return {
    env,
    stdio: { command: process.execPath, args: [script], env },
    done: () => (existsSync(done) ? readFileSync(done, 'utf8').trim().split('\n') : []),
    amount,
  }
}

/** Our server over HTTP, on this machine only. */
export const mcpOverHttp = (stage: McpStage, port = 0) =>
  overHttp([script, 'http', String(port)], stage.env)

/** A server as npm has it over HTTP. Left alone it would listen for everybody. */
export const npmOverHttp = (entry: string, words: string[], port = 0) =>
  overHttp(['--import', loopback, entry, ...words], { PORT: String(port) })

const loopback = new URL('./loopback.mjs', import.meta.url).href

/** Runs a server that prints its `port`. */
async function overHttp(args: string[], env: Record<string, string>) {
  const child: ChildProcess = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  onTestFinished(kill)
  const taken = await new Promise<number>((resolve, reject) => {
    let said = ''
    child.stdout?.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(-1_000)
      const port = /^port (\d+)$/m.exec(said)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
    child.once('exit', () => reject(new Error('the MCP server did not start')))
  })
  return { url: `http://127.0.0.1:${taken}/mcp`, port: taken, kill }
}

/** A server of ours whose model makes one call of the named tool for each message, and then is done. */
export async function withMcp(
  mcp: Record<string, McpServer>,
  use: (message: string) => [tool: string, input: unknown],
  more: Settings = {},
  options?: ServeOptions,
) {
  let calls = 0
  const model = scriptedModel((request) => {
    const last = request.messages.at(-1)!
    if (last.role !== 'user') return [text('Done.')]
    const said = last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
    return [call(`call_${++calls}_${last.id}`, ...use(said))]
  })
  const server = await serve({ model, builtIns: false, mcp, ...more }, options)
  return { ...server, model }
}

/** Where a server of npm begins. */
export const entryOf = (name: string) => {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return join(dirname(manifest), 'dist/index.js')
}

export const allow = [{ decision: 'allow' as const }]
