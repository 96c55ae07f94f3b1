import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { accountAgents } from './account-analysis.ts'
import { openRemotes, type Remotes } from './agents/remote/remotes.ts'
import { remoteFrom } from './agents/remote/settings.ts'
import { toolLoop } from './agents/tool-loop/agent.ts'
import type { Config } from './config.ts'
import type { Agent } from './core/agent.ts'
import type { AgentEntry } from './core/agent-setups.ts'
import { callMeter } from './core/meter.ts'
import { Providers } from './core/providers.ts'
import { createRuntime } from './core/runtime.ts'
import { StoreClock } from './core/store-clock.ts'
import { lastOfEach, type Tool } from './core/tool.ts'
import type { Log } from './core/worker.ts'
import { openGuard } from './guardrails/guardrails.ts'
import type { Clock } from './lib/clock.ts'
import { systemClock } from './lib/clock.ts'
import { ConfigError } from './lib/config-error.ts'
import { crashAt } from './lib/crash.ts'
import { refuseNoDirectory } from './lib/directory.ts'
import { newId } from './lib/ids.ts'
import { isOpenToOthers, makePrivate } from './lib/private.ts'
import { fileSpool } from './lib/spool.ts'
import { type Listener, listen } from './listen.ts'
import { modelFor } from './models/choose.ts'
import type { Around, Load } from './models/maker.ts'
import { openAudit } from './open-audit.ts'
import { openLinks } from './open-links.ts'
import { openStore } from './open-store.ts'
import { createServer, localUser } from './server.ts'
import { type AgentSettings, policyOf, type Settings, toolsFrom } from './settings.ts'
import { settleSharedFiles } from './tools/files/workspace.ts'
import { builtInTools } from './tools/index.ts'
import { type Mcp, openMcp } from './tools/mcp/mcp.ts'
import { version } from './version.ts'
import { webhook } from './webhooks/webhook.ts'
import { aguiWire } from './wires/agui/wire.ts'
import { approvalsWire } from './wires/approvals/wire.ts'
import { readable } from './wires/chats/readable.ts'
import { chatsWire } from './wires/chats/wire.ts'
import { graphqlWire } from './wires/graphql/wire.ts'
import type { Route } from './wires/http.ts'
import { auditRoute } from './wires/ops/audit.ts'
import { governorRoutes } from './wires/ops/governor.ts'
import { grantRoutes } from './wires/ops/grants.ts'
import { journalRoute } from './wires/ops/journal.ts'
import { metricsRoute } from './wires/ops/metrics.ts'
import { opsWire } from './wires/ops/wire.ts'
import { requirePublicKey } from './wires/public-key.ts'
import { Heartbeats } from './wires/sse.ts'
import { workflowWire } from './wires/workflow/wire.ts'

/** Picks one of each part: the only file that knows everyone. */
export async function compose(
  config: Config,
  settings: Settings = {},
  ownClock: Clock = systemClock,
  log: Log = pino({ level: config.logLevel }),
) {
  const crash = crashAt(config.crash)
  const clock = new StoreClock(ownClock)
  const closing = new AbortController()
  let mcp: Mcp | undefined
  let remotes: Remotes | undefined
  const elsewhere = remoteFrom(settings.remote ?? [])
  const { load, loaded } = loads()
  // First: what is missing is told before anything is opened.
  const { agents, others } = agentsOf(config, settings, clock, {
    mcpTools: (servers) => mcp?.tools(servers) ?? noTools,
    remoteTools: () => remotes?.tools() ?? noTools,
    remoteAgents: () => remotes?.agents() ?? [],
    fixed: elsewhere.agents,
    load,
  })
  refuseNoDirectory(config.spool, 'HANDRAIL_SPOOL')
  await loaded()
  const store = await openStore(config, { clock: ownClock, log, crash })
  if (store.time) await clock.follow(store.time, log, closing.signal)
  if (settings.builtIns !== false) await settleFiles(config, log)
  for (const directory of [config.data, config.spool])
    if (await isOpenToOthers(directory))
      log.warn(
        { directory },
        'other users of this machine have rights on this directory: set its mode to 700',
      )
  const { keys: audit, notice } = await openAudit(config, log)
  // Of this process alone: whoever comes after it must not be taken for it.
  const serverId = newId('server')
  const around = { store, serverId, clock, log }
  const { close: closeLinks, ...linked } = await openLinks(config, around)
  mcp = await openMcp(settings.mcp ?? {}, { log, clock })
  remotes = await openRemotes(elsewhere.endpoints, { log, clock })
  const guard = await openGuard(settings.guardrails ?? {}, { model: agents[0]!.model, log })
  const providers = new Providers(clock, settings.providers)
  const meter = callMeter(providers)
  const calls = {
    providers,
    meter: meter.take,
    ...pick(settings, ['retry', 'silence', 'sizes', 'prices', 'windows', 'maxOutput']),
    ...(config.clientKeys && { keyHeader: clientKeyHeader }),
  }
  const sessionTtl = secondsOf(settings.workflow?.sessionTtl) ?? config.sessionTtl
  const runtime = createRuntime({
    guard,
    store,
    ...linked,
    serverId,
    agents,
    others,
    log,
    clock,
    crash,
    spool: fileSpool(config.spool),
    maxLegs: config.maxLegs,
    warmBytes: config.cacheBytes,
    viewTtl: sessionTtl,
    leaseTtl: config.leaseTtl,
    governor: config.governor,
    whenUnattended: config.whenUnattended,
    ...(config.userLimit !== undefined && { userLimit: config.userLimit }),
    ...(audit && { audit }),
    plainIds: config.apiKeys.size === 0,
    keepHeaders: keptHeadersOf(settings),
    calls,
    ...hooksOf(config, clock),
  })
  for (const told of runtime.softLimits())
    log.warn(told, 'budget limit is best-effort for these agents')
  store.onDescribe?.((threadId, runIds) => readable(runtime, threadId, runIds))

  const heartbeats = new Heartbeats(config.heartbeat)
  const basePaths = [...new Set([config.basePath, '/api/copilotkit'])]
  const agui = { runtime, heartbeats, basePaths, whenBusy: config.aguiBusy, version: version() }
  const { publicKey, ...graphql } = config.graphql
  const routes: Route[] = [
    ...chatsWire(runtime, heartbeats),
    ...approvalsWire(runtime, heartbeats),
    ...requirePublicKey(aguiWire({ ...agui, bodyLimit: config.bodyLimit }), publicKey),
    ...workflowWire({ runtime, heartbeats, basePaths, version: version(), sessionTtl, log }),
    ...governorRoutes(runtime),
    ...requirePublicKey(
      graphqlWire({ runtime, heartbeats, basePaths, log, ...graphql }),
      publicKey,
    ),
  ]
  routes.push(...grantRoutes(runtime))
  routes.push(auditRoute(runtime))
  routes.push(journalRoute(runtime))
  routes.push(metricsRoute(() => meter.text()))
  const open: Route[] = opsWire(runtime, () => [...routes, ...open], version())
  const { apiKeys, bodyLimit, origins } = config
  const { uses } = runtime
  const { fetch } = createServer({ routes, open, apiKeys, bodyLimit, origins, log, uses })
  const served = runtime.serve()
  let listener: Listener | undefined

  return {
    fetch,
    runtime,
    store,
    /** For whoever starts it. */
    notice,
    /** Resolves with the port once connections are taken. */
    async listen() {
      listener = await listen(fetch, config)
      return listener.port
    },
    /** Loads what first requests need, in steps, while the server already takes requests. */
    async warmUp() {
      for (const load of new Set([...routes, ...open].flatMap(({ warmUp = [] }) => warmUp))) {
        if (closing.signal.aborted) return
        await setImmediate()
        await load().catch((err: unknown) => log.warn({ err }, 'warm-up failed'))
      }
    },
    /** Goes without a loss: says so first, hands over what runs, and leaves the files in order. */
    async close() {
      const { grace, drain } = config
      runtime.leave()
      closing.abort()
      listener?.leave()
      if (grace > 0) await systemClock.sleep(grace)
      const until = systemClock.monotonic() + drain
      listener?.close()
      await runtime.drained(drain)
      heartbeats.endAll()
      // Streams of clients that do not come back are served while their runs end elsewhere.
      const rest = store.shared ? until - systemClock.monotonic() : 0
      await listener?.answered(Math.max(rest, goodbye))
      await runtime.lateReturned(until - systemClock.monotonic())
      await runtime.stop(0)
      await served
      await mcp?.close()
      await remotes?.close()
      await closeLinks()
      await store.close()
    },
  }
}

/** Directory with one workspace for each tenant and user. */
const filesOf = (data: string) => join(data, 'files')

/** Gives the files of the former shared workspace to the only user of a server without keys. */
async function settleFiles({ data, apiKeys }: Config, log: Log): Promise<void> {
  const directory = filesOf(data)
  try {
    await makePrivate(directory)
    const owner = apiKeys.size === 0 ? localUser : undefined
    const { moved, left } = await settleSharedFiles(directory, owner)
    if (moved.length > 0)
      log.info({ directory, moved }, 'files of the shared workspace moved to the local user')
    if (left.length > 0)
      log.warn(
        { directory, left },
        'files of the former shared workspace were not moved: no tool reaches them, move them by hand',
      )
  } catch (error) {
    log.error({ directory, error }, 'files of the shared workspace could not be moved')
  }
}

function hooksOf({ webhook: options }: Config, { now }: Clock) {
  if (!options) return {}
  const { about, again } = options
  return { hooks: { about, again, deliver: webhook({ ...options, now }) } }
}

/** Milliseconds for streams to end. */
const goodbye = 200

const noTools: readonly Tool[] = []

/** What is found out after the agents are made. */
interface Later {
  mcpTools: Mcp['tools']
  remoteTools: () => readonly Tool[]
  remoteAgents: () => readonly Agent[]
  /** Agents elsewhere that are known by their names. */
  fixed: readonly Agent[]
  load: Load
}

/** Loads the modules of providers while the server starts. `loaded` rejects if one of them cannot be loaded. */
function loads() {
  const all: Promise<unknown>[] = []
  const load: Load = (begin) => {
    const loading = begin()
    loading.catch(() => {}) // reported by `loaded`
    all.push(loading)
    return () => loading
  }
  const loaded = async () => {
    await Promise.all(all).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error)
      throw new ConfigError(`A model cannot be loaded: ${why}`)
    })
  }
  return { load, loaded }
}

function agentsOf(config: Config, settings: Settings, clock: Clock, later: Later) {
  const { data } = config
  const around: Around = { clock, load: later.load, ...config }
  const model = modelFor(settings.model ?? config.model ?? 'demo', around)
  const standIn = settings.fallback ?? config.fallbackModel
  const fallback = standIn === undefined ? {} : { fallback: modelFor(standIn, around) }
  const builtIns = settings.builtIns === false ? [] : builtInTools({ root: filesOf(data) })
  const tools = lastOfEach([...builtIns, ...toolsFrom(settings.tools ?? [], settings.actions)])
  const policy = policyOf(settings)
  const description = 'Answers, and uses tools with your approval'
  const own = settings.agents ?? [
    toolLoop({ name: 'assistant', description, suggestions: suggestionsFor(builtIns) }),
    ...accountAgents(config, settings, clock.now),
  ]
  const modelOf = ({ model: named, apiKey }: AgentSettings) =>
    named === undefined && apiKey === undefined
      ? model
      : modelFor(named ?? settings.model ?? config.model ?? 'demo', withKey(around, apiKey))
  const entryOf = (one: Agent | AgentSettings, i = -1): AgentEntry => {
    const entry: AgentSettings = 'agent' in one ? one : { agent: one }
    const given = entry.tools && toolsFrom(entry.tools)
    const { agent, mcp: servers = given && [], cheaper: less = settings.cheaper } = entry
    const fromMcp = () => later.mcpTools(servers)
    return {
      agent,
      model: modelOf(entry),
      ...(entry.fallback === undefined ? fallback : { fallback: modelFor(entry.fallback, around) }),
      ...(less !== undefined && { cheaper: modelFor(less, around) }),
      ...(entry.governor && { governor: entry.governor }),
      policy: 'agent' in one ? policyOf(settings, entry) : policy,
      ...pick(entry, ['description', 'suggestions', 'version', 'allowedTools']),
      ...(i === 0 && { aliases: ['default'] }),
      tools: given ? joined(given, fromMcp) : joined(tools, later.remoteTools, fromMcp),
    }
  }
  const agents = [...own, ...later.fixed].map(entryOf)
  const entries = new WeakMap<Agent, AgentEntry>()
  let listed: readonly Agent[] = []
  let others: readonly AgentEntry[] = []
  return {
    agents,
    others: () => {
      const now = later.remoteAgents()
      if (now === listed) return others
      listed = now
      others = now.map((agent) => {
        const entry = entries.get(agent) ?? entryOf(agent)
        entries.set(agent, entry)
        return entry
      })
      return others
    },
  }
}

/** Tools that stay and tools that come and go. Those that stay win; the list is made anew when it changes. */
function joined(
  own: readonly Tool[],
  ...others: readonly (() => readonly Tool[])[]
): () => readonly Tool[] {
  let last: readonly (readonly Tool[])[] = []
  let all: readonly Tool[] = own
  return () => {
    const now = others.map((list) => list())
    if (now.some((list, i) => list !== last[i])) all = lastOfEach([...now.flat(), ...own])
    last = now
    return all
  }
}

function withKey(around: Around, apiKey: string | undefined): Around {
  if (apiKey === undefined) return around
  const { openai, anthropic, google } = around.access
  const access = {
    openai: { ...openai, apiKey },
    anthropic: { ...anthropic, apiKey },
    google: { ...google, apiKey },
  }
  return { ...around, access }
}

/** Headers that the operator names: those to keep, and those that remote agents are sent. */
const keptHeadersOf = ({ keepHeaders = [], remote = [] }: Settings) => [
  ...keepHeaders,
  ...remote.flatMap(({ forward }) => forward?.headers ?? []),
]

const secondsOf = (seconds: number | undefined) =>
  seconds === undefined ? undefined : seconds * 1_000

/** Brings a client's own key; what is called a key is never written down. */
const clientKeyHeader = 'x-model-api-key'

function pick<T extends object, K extends keyof T>(
  from: T,
  keys: readonly K[],
): Partial<Pick<T, K>> {
  const given = keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])
  return Object.fromEntries(given) as Partial<Pick<T, K>>
}

/** First messages for the built-in agent, of which each works with the tools that the server has. */
function suggestionsFor(tools: readonly Tool[]): string[] {
  const byTool = {
    weather: "What's the weather in Barcelona?",
    write_file: 'Write a file named notes.txt with the text hello',
    run_code: 'Run this code: 6 * 7',
  }
  const has = (name: string) => tools.some((tool) => tool.name === name)
  const possible = Object.entries(byTool).filter(([name]) => has(name))
  return ['What can you do?', ...possible.map(([, message]) => message)]
}
