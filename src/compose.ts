import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { pino } from 'pino'
import { toolLoop } from './agents/tool-loop/agent.ts'
import type { Config } from './config.ts'
import type { AgentEntry } from './core/agent-setups.ts'
import { callMeter } from './core/meter.ts'
import { defaultPolicy } from './core/policy.ts'
import { Providers } from './core/providers.ts'
import { createRuntime } from './core/runtime.ts'
import type { Clock } from './lib/clock.ts'
import { systemClock } from './lib/clock.ts'
import { crashAt } from './lib/crash.ts'
import { newId } from './lib/ids.ts'
import { fileSpool } from './lib/spool.ts'
import { modelFor } from './models/choose.ts'
import type { Around } from './models/maker.ts'
import { openLinks } from './open-links.ts'
import { openStore } from './open-store.ts'
import { createServer } from './server.ts'
import type { AgentSettings, Settings } from './settings.ts'
import { builtInTools } from './tools/index.ts'
import { aguiWire } from './wires/agui/wire.ts'
import { readable } from './wires/chats/readable.ts'
import { chatsWire } from './wires/chats/wire.ts'
import { graphqlWire } from './wires/graphql/wire.ts'
import type { Route } from './wires/http.ts'
import { metricsRoute } from './wires/ops/metrics.ts'
import { opsWire } from './wires/ops/wire.ts'
import { Heartbeats } from './wires/sse.ts'
import { workflowWire } from './wires/workflow/wire.ts'

/** Idle connections are a balancer's to close, mostly after 60 s: closed by us first, a request may be lost. */
const serverOptions = { keepAliveTimeout: 75_000 }

/** Picks one of each part: the only file that knows everyone. */
export async function compose(config: Config, settings: Settings = {}, clock: Clock = systemClock) {
  const log = pino({ level: config.logLevel })
  const crash = crashAt(config.crash)
  const agents = agentsOf(config, settings, clock) // first: what is missing is told before anything is opened
  const store = await openStore(config, { clock, log, crash })
  // Of this process alone: whoever comes after it must not be taken for it.
  const serverId = newId('server')
  const around = { store, serverId, clock, log }
  const { close: closeLinks, ...linked } = await openLinks(config, around)
  const providers = new Providers(clock, settings.providers)
  const meter = callMeter(providers)
  const calls = {
    providers,
    meter: meter.take,
    ...pick(settings, ['retry', 'silence', 'sizes', 'prices', 'windows']),
    ...(config.clientKeys && { keyHeader: clientKeyHeader }),
  }
  const runtime = createRuntime({
    store,
    ...linked,
    serverId,
    agents,
    log,
    clock,
    crash,
    spool: fileSpool(config.spool),
    maxLegs: config.maxLegs,
    viewTtl: config.sessionTtl,
    leaseTtl: config.leaseTtl,
    governor: config.governor,
    plainIds: config.apiKeys.size === 0,
    calls,
  })
  store.onDescribe?.((threadId, runIds) => readable(runtime, threadId, runIds))

  const heartbeats = new Heartbeats(config.heartbeat)
  const basePaths = [...new Set([config.basePath, '/api/copilotkit'])]
  const agui = { runtime, heartbeats, basePaths, whenBusy: config.aguiBusy, version: version() }
  const routes: Route[] = [
    ...chatsWire(runtime, heartbeats),
    ...aguiWire({ ...agui, bodyLimit: config.bodyLimit }),
    ...workflowWire({ runtime, basePaths, version: version() }),
    ...graphqlWire({ runtime, heartbeats, basePaths, log, ...config.graphql }),
  ]
  routes.push(metricsRoute(() => meter.text()))
  const open: Route[] = opsWire(runtime, () => [...routes, ...open], version())
  const { apiKeys, bodyLimit, origins } = config
  const { fetch } = createServer({ routes, open, apiKeys, bodyLimit, origins, log })
  const served = runtime.serve()
  const closers: (() => void)[] = []

  return {
    fetch,
    runtime,
    store,
    /** Resolves with the port once connections are taken. */
    async listen() {
      const server = serve({ fetch, port: config.port, hostname: config.host, serverOptions })
      await new Promise<void>((resolve, reject) => {
        server.once('listening', resolve)
        server.once('error', reject)
      })
      closers.push(() => {
        server.close()
        if ('closeIdleConnections' in server) server.closeIdleConnections()
      })
      return (server.address() as AddressInfo).port
    },
    /** Takes no more, hands over what runs, and leaves the files in order. */
    async close() {
      for (const closer of closers) closer()
      await runtime.stop(config.drain)
      await served
      await closeLinks()
      await store.close()
    },
  }
}

function agentsOf(config: Config, settings: Settings, clock: Clock): AgentEntry[] {
  const { data } = config
  const around: Around = { clock, ...config }
  const model = modelFor(settings.model ?? config.model ?? 'demo', around)
  const standIn = settings.fallback ?? config.fallbackModel
  const fallback = standIn === undefined ? {} : { fallback: modelFor(standIn, around) }
  const builtIns = settings.builtIns === false ? [] : builtInTools({ root: join(data, 'files') })
  const tools = [...builtIns, ...(settings.tools ?? [])]
  const policy = [...(settings.policy ?? []), ...defaultPolicy]
  const description = 'Answers, and uses tools with your approval'
  const agents = settings.agents ?? [toolLoop({ name: 'assistant', description })]
  return agents.map((one, i) => {
    const settings: AgentSettings = 'agent' in one ? one : { agent: one }
    const { model: own, fallback: other, ...entry } = settings
    return {
      model: own === undefined ? model : modelFor(own, around),
      ...(other === undefined ? fallback : { fallback: modelFor(other, around) }),
      tools,
      policy,
      ...entry,
      ...(i === 0 && { aliases: ['default'] }),
    }
  })
}

/** Brings a client's own key; what is called a key is never written down. */
const clientKeyHeader = 'x-model-api-key'

function pick<T extends object, K extends keyof T>(
  from: T,
  keys: readonly K[],
): Partial<Pick<T, K>> {
  const given = keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])
  return Object.fromEntries(given) as Partial<Pick<T, K>>
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
