#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { pino } from 'pino'
import { toolLoop } from './agents/tool-loop/agent.ts'
import { localBus } from './bus/local/bus.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { type AgentEntry, createRuntime } from './core/runtime.ts'
import { defaultPolicy } from './core/policy.ts'
import { systemClock } from './lib/clock.ts'
import { crashAt } from './lib/crash.ts'
import { fileSpool } from './lib/spool.ts'
import { demoModel } from './models/demo.ts'
import { localQueue } from './queue/local/queue.ts'
import { createServer } from './server.ts'
import { loadSettings, type Settings } from './settings.ts'
import { fileStore } from './stores/file/store.ts'
import { builtInTools } from './tools/index.ts'
import { readable } from './wires/chats/readable.ts'
import { chatsWire } from './wires/chats/wire.ts'
import type { Route } from './wires/http.ts'
import { opsWire } from './wires/ops/wire.ts'
import { Heartbeats } from './wires/sse.ts'

/** Picks one of each part and listens: the only file that knows everyone. */
async function main(): Promise<void> {
  const config = readConfig(process.env)
  const settings = await loadSettings(config.configFile)
  const log = pino({ level: config.logLevel })
  const clock = systemClock
  const crash = crashAt(config.crash)
  const store = await fileStore({ directory: config.data, clock, log, crash })
  const runtime = createRuntime({
    store,
    bus: localBus(),
    queue: localQueue(clock),
    agents: agentsOf(config, settings),
    log,
    clock,
    crash,
    spool: fileSpool(config.spool),
    maxLegs: config.maxLegs,
    leaseTtl: config.leaseTtl,
    governor: config.governor,
    plainIds: config.apiKeys.size === 0,
    ...(settings.retry && { retry: settings.retry }),
  })
  store.onDescribe((threadId, runIds) => readable(runtime, threadId, runIds))

  const routes: Route[] = chatsWire(runtime, new Heartbeats())
  const open: Route[] = opsWire(runtime, () => [...routes, ...open], version())
  const { apiKeys, bodyLimit } = config
  const { fetch } = createServer({ routes, open, apiKeys, bodyLimit, log })
  const served = runtime.serve()
  const server = serve({ fetch, port: config.port, hostname: config.host }, ({ port }) => {
    const where = config.apiKeys.size === 0 ? ' (this machine only: no HANDRAIL_API_KEYS set)' : ''
    process.stdout.write(`Handrail listens on http://${shown(config.host)}:${port}${where}\n`)
  })
  server.on('error', (error) => die(error))

  let stopping = false
  const stop = async () => {
    if (stopping) return
    stopping = true
    server.close()
    await runtime.stop(config.drain)
    await served
    await store.close()
    process.exit(0)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop().catch(die))
}

function agentsOf(config: Config, settings: Settings): AgentEntry[] {
  const model = settings.model ?? demoModel({ clock: systemClock, delay: config.demoDelay })
  const builtIns = settings.builtIns === false ? [] : builtInTools({ root: join(config.data, 'files') })
  const tools = [...builtIns, ...(settings.tools ?? [])]
  const policy = [...(settings.policy ?? []), ...defaultPolicy]
  const assistant = toolLoop({
    name: 'assistant',
    description: 'Answers, and uses tools with your approval',
  })
  const agents = settings.agents ?? [assistant]
  return agents.map((one, i) => {
    const entry = 'agent' in one ? one : { agent: one }
    return { model, tools, policy, ...entry, ...(i === 0 && { aliases: ['default'] }) }
  })
}

const shown = (host: string) => (host === '0.0.0.0' || host === '::' ? 'localhost' : host)

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

function die(error: unknown): never {
  const { code } = error as { code?: string }
  const sentence =
    code === 'EADDRINUSE'
      ? 'The port is taken by another program. Set PORT to a free one.'
      : error instanceof Error
        ? error.message
        : String(error)
  process.stderr.write(`Handrail cannot go on: ${sentence}\n`)
  if (!(error instanceof ConfigError) && code === undefined) process.stderr.write(`${(error as Error)?.stack}\n`)
  process.exit(1)
}

await main().catch(die)
