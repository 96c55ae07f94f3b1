import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { toolLoop } from './agents/tool-loop/agent.ts'
import type { Config } from './config.ts'
import type { AgentEntry } from './core/agent-setups.ts'
import type { Model } from './core/model.ts'
import { defaultPolicy } from './core/policy.ts'
import { createRuntime } from './core/runtime.ts'
import type { Tool } from './core/tool.ts'
import { openGuard } from './guardrails/guardrails.ts'
import type { Clock } from './lib/clock.ts'
import { systemClock } from './lib/clock.ts'
import { crashAt } from './lib/crash.ts'
import { newId } from './lib/ids.ts'
import { fileSpool } from './lib/spool.ts'
import { type Listener, listen } from './listen.ts'
import { demoModel } from './models/demo.ts'
import { openLinks } from './open-links.ts'
import { openStore } from './open-store.ts'
import { createServer } from './server.ts'
import { type AgentSettings, type Settings, toolsFrom } from './settings.ts'
import { builtInTools } from './tools/index.ts'
import { type Mcp, openMcp } from './tools/mcp/mcp.ts'
import { aguiWire } from './wires/agui/wire.ts'
import { readable } from './wires/chats/readable.ts'
import { chatsWire } from './wires/chats/wire.ts'
import { graphqlWire } from './wires/graphql/wire.ts'
import type { Route } from './wires/http.ts'
import { opsWire } from './wires/ops/wire.ts'
import { Heartbeats } from './wires/sse.ts'
import { workflowWire } from './wires/workflow/wire.ts'

/** Picks one of each part: the only file that knows everyone. */
export async function compose(config: Config, settings: Settings = {}, clock: Clock = systemClock) {
  const log = pino({ level: config.logLevel })
  const crash = crashAt(config.crash)
  const store = await openStore(config, { clock, log, crash })
  // Of this process alone: whoever comes after it must not be taken for it.
  const serverId = newId('server')
  const around = { store, serverId, clock, log }
  const { close: closeLinks, ...linked } = await openLinks(config, around)
  const mcp = await openMcp(settings.mcp ?? {}, { log, clock })
  const model = modelOf(config, settings, clock)
  const guard = await openGuard(settings.guardrails ?? {}, { model, log })
  const runtime = createRuntime({
    guard,
    store,
    ...linked,
    serverId,
    agents: agentsOf(config, settings, clock, mcp),
    log,
    clock,
    crash,
    spool: fileSpool(config.spool),
    maxLegs: config.maxLegs,
    viewTtl: config.sessionTtl,
    leaseTtl: config.leaseTtl,
    governor: config.governor,
    plainIds: config.apiKeys.size === 0,
    ...(settings.retry && { retry: settings.retry }),
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
  const open: Route[] = opsWire(runtime, () => [...routes, ...open], version())
  const { apiKeys, bodyLimit, origins } = config
  const { fetch } = createServer({ routes, open, apiKeys, bodyLimit, origins, log })
  const served = runtime.serve()
  let listener: Listener | undefined

  return {
    fetch,
    runtime,
    store,
    /** Resolves with the port once connections are taken. */
    async listen() {
      listener = await listen(fetch, config)
      return listener.port
    },
    /** Goes without a loss: says so first, hands over what runs, and leaves the files in order. */
    async close() {
      const { grace, drain } = config
      runtime.leave()
      listener?.leave()
      if (grace > 0) await systemClock.sleep(grace)
      const until = systemClock.monotonic() + drain
      listener?.close()
      await runtime.drained(drain)
      heartbeats.endAll()
      // Streams of clients that do not come back are served while their runs end elsewhere.
      const rest = store.shared ? until - systemClock.monotonic() : 0
      await listener?.answered(Math.max(rest, goodbye))
      await runtime.stop(0)
      await served
      await mcp.close()
      await closeLinks()
      await store.close()
    },
  }
}

/** Milliseconds for streams to end. */
const goodbye = 200

const modelOf = ({ demoDelay: delay }: Config, { model }: Settings, clock: Clock): Model =>
  model ?? demoModel({ clock, delay })

function agentsOf(config: Config, settings: Settings, clock: Clock, mcp: Mcp): AgentEntry[] {
  const { data } = config
  const model = modelOf(config, settings, clock)
  const builtIns = settings.builtIns === false ? [] : builtInTools({ root: join(data, 'files') })
  const tools = [...builtIns, ...toolsFrom(settings.tools ?? [], settings.actions)]
  const policy = [...(settings.policy ?? []), ...defaultPolicy]
  const description = 'Answers, and uses tools with your approval'
  const agents = settings.agents ?? [toolLoop({ name: 'assistant', description })]
  return agents.map((one, i) => {
    const entry: AgentSettings = 'agent' in one ? one : { agent: one }
    const own = entry.tools && toolsFrom(entry.tools)
    const { agent, mcp: servers = own && [] } = entry
    const aliases = i === 0 ? { aliases: ['default'] } : {}
    return {
      model: entry.model ?? model,
      agent,
      policy,
      ...aliases,
      tools: joined(own ?? tools, () => mcp.tools(servers)),
    }
  })
}

/** Tools that stay and tools that come and go. Those that stay win; the list is made anew when it changes. */
function joined(own: readonly Tool[], others: () => readonly Tool[]): () => readonly Tool[] {
  let last: readonly Tool[] | undefined
  let all: readonly Tool[] = own
  return () => {
    const now = others()
    if (now !== last) all = [...now, ...own]
    last = now
    return all
  }
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
