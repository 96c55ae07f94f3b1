import { type Clock, systemClock } from '../lib/clock.ts'
import { newId as freshId, type NewId } from '../lib/ids.ts'
import { sharedAbort } from '../lib/signal.ts'
import { admit } from './admit.ts'
import {
  type AgentEntry,
  absent,
  agentDirectory,
  type CallOptions,
  callRules,
  missing,
  type StartingBudget,
  startingBudget,
  toolsOf,
} from './agent-setups.ts'
import { asides } from './asides.ts'
import type { AuditKeys } from './audit.ts'
import { eraseThread } from './audit-residue.ts'
import { auditor } from './audit-watch.ts'
import { softLimits } from './budget-report.ts'
import { access, actorOf, type Caller, nameOf } from './callers.ts'
import { cancel } from './cancel.ts'
import type { Spool } from './channel.ts'
import { deciding } from './deciding.ts'
import { draft, type RunOptions } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import type { UnattendedRule } from './governor.ts'
import type { ClientRules, Guard } from './guard.ts'
import { showBranch } from './head.ts'
import { idle } from './idle.ts'
import { heartbeat } from './leg.ts'
import type { Message } from './messages.ts'
import { refuseMedia } from './model.ts'
import { Outbox, type OutboxOptions } from './outbox.ts'
import { noteReturn } from './returned.ts'
import { RunSecrets, splitSecrets } from './secrets.ts'
import { serve } from './serving.ts'
import { creation, retry, type Start, start } from './start.ts'
import type { RunStatus, ThreadState } from './state.ts'
import type { Cache, ThreadRow } from './store.ts'
import {
  type Bus,
  gone,
  inboxBell,
  type Page,
  type Queue,
  type Slots,
  type Store,
} from './store.ts'
import { Thread } from './thread.ts'
import { threadCache } from './thread-cache.ts'
import { isUserBudget } from './user-budget.ts'
import { view } from './view.ts'
import { type Log, Worker } from './worker.ts'

export interface RuntimeOptions {
  store: Store
  bus: Bus
  queue: Queue
  agents: readonly AgentEntry[]
  /** Agents that come and go; the same list until they change. */
  others?: () => readonly AgentEntry[]
  log: Log
  clock?: Clock
  newId?: NewId
  crash?: (point: string) => void
  spool?: Spool
  /** What may be said, shown and done. */
  guard?: Guard
  serverId?: string
  /** How models are called. */
  calls?: CallOptions
  /** Legs driven at once by this server, and calls of one step made at once. */
  maxLegs?: number
  /** Keeps what is made of threads, for this many milliseconds. */
  cache?: Cache
  viewTtl?: number
  /** Limits legs of all servers together. */
  slots?: Slots
  parallelCalls?: number
  /** Tells the outside of asks: what of them, and how. */
  hooks?: OutboxOptions & { about: 'raised' | 'both' }
  leaseTtl?: number
  sweepEvery?: number
  /** What new threads begin with, and what happens to runs that nobody attends. */
  governor?: StartingBudget
  whenUnattended?: UnattendedRule
  /** Model calls outside of threads that a user may make in a day; absent: no limit, and no count. */
  userLimit?: number
  /** With keys, every entry is linked to the one before it. */
  audit?: AuditKeys
  /** True where clients' ids are used as thread keys: one owner, no auth. */
  plainIds?: boolean
}

export interface StartRequest {
  messages: readonly Message[]
  imported?: readonly Message[]
  state?: { value: unknown }
  agent?: string
  whenBusy?: 'reject' | 'queue' | 'cancel'
  replaces?: string
  results?: Start['results']
  request?: string
  key?: { key: string; digest: string }
  options?: RunOptions
  /** The client's own rules for what is said. */
  rules?: ClientRules
}

export type { Caller } from './callers.ts'

export type Runtime = ReturnType<typeof createRuntime>

/** The small surface that wires talk to: commands that are durable when they resolve, and reads. */
export function createRuntime(options: RuntimeOptions) {
  const { store, bus, queue, log } = options
  const clock = options.clock ?? systemClock
  const newId = options.newId ?? freshId
  const crash = options.crash ?? (() => {})
  const serverId = options.serverId ?? newId('server')
  const leaseTtl = options.leaseTtl ?? 15_000
  const budgetOf = (agent: string) => {
    const entry = options.agents.find((one) => one.agent.name === agent)
    return startingBudget(entry, options.governor ?? { isHitlEnabled: false, actionLimit: 10 })
  }
  const sweepEvery = options.sweepEvery ?? Math.min(5_000, leaseTtl / 3)
  const { about: hooks, ...telling } = options.hooks ?? {}
  const { audit } = options
  const around = {
    ...{ store, bus, clock, newId, crash },
    ...(hooks && { hooks }),
    ...(audit && { audit }),
  }
  const threads = threadCache((threadId) => new Thread(threadId, around))
  const verdictOf = auditor(store, audit)
  const leaving = sharedAbort()
  const closing = sharedAbort()
  const beat = heartbeat(() => store.renew(serverId, leaseTtl), leaseTtl, clock)
  const rules = callRules(options.calls ?? {}, clock)
  const setups = agentDirectory({ ...options, rules })
  const secrets = new RunSecrets()

  const outbox = new Outbox({
    ...telling,
    ...{ clock, log, leaving: leaving.signal, closing: closing.signal },
    ring: (threadId, at) => queue.ringAt(threadId, at),
  })
  const offer = (thread: Thread) => outbox.offer(thread)

  const worker = new Worker({
    ...around,
    serverId,
    leaseTtl,
    maxLegs: options.maxLegs ?? 256,
    ...(options.slots && { slots: options.slots }),
    ...(options.spool && { spool: options.spool }),
    heartbeat: beat,
    leaving: leaving.signal,
    closing: closing.signal,
    secrets,
    agent: (name) => setups.get(name) ?? absent(name, rules),
    open: (threadId) => threads.warm(threadId),
    offer,
    ring: (threadId, at) => (at === undefined ? ring(threadId) : queue.ringAt(threadId, at)),
    log,
  })

  function ring(threadId: string): void {
    queue.ring(threadId, worker.hasRoom)
  }

  /**
   * Work is done where it comes in, while there is room: its reader and its secrets are here, and what
   * is written goes to them without a detour.
   */
  function ringHere({ threadId }: Thread): void {
    worker.expect(threadId)
    ring(threadId)
  }

  const { find, open, upToDate, withThread } = access({
    store,
    threads,
    fresh: async (clientId) =>
      options.plainIds ? await threads.warm(clientId) : new Thread(newId('thread'), around),
  })

  /** The thread was erased: its readers leave, and its id may be another's. */
  function forget(thread: Thread): void {
    threads.drop(thread.threadId)
    thread.close()
  }

  function agentName(name: string | undefined): string {
    if (name === undefined) return options.agents[0]!.agent.name
    return (setups.get(name) ?? missing(name)).agent.name
  }

  const { guard, userLimit } = options
  const shared = { clock, newId, log, setups }

  const api = {
    ...asides({ ...shared, find, withThread, rules, guard, userLimit, closing: closing.signal }),
    ...deciding({
      ...{ ...shared, upToDate, secrets, store, bus, ringHere },
      warm: threads.warm,
      every: sweepEvery,
    }),
    clock,
    newId,
    closing: closing.signal,
    find,
    open,

    agents: () =>
      setups.list().map((one) => {
        const { agent, aliases = [], description = agent.description, version = '1.0' } = one
        return { agent, aliases, tools: toolsOf(one), description, version }
      }),

    /** Accepts a message on a thread, made if it is new. Durable when it resolves. */
    async start(caller: Caller, clientId: string, request: StartRequest) {
      if (closing.signal.aborted) throw new RuntimeError('stopping', undefined, { retryAfter: 2 })
      const agent = agentName(request.agent)
      const { whenBusy = 'reject', agent: _, rules: client, ...rest } = request
      const brought = request.options && splitSecrets(request.options)
      const key = rules.keyHeader && request.options?.headers?.[rules.keyHeader]
      if (brought) rest.options = { ...brought.options, ...(key && { clientKey: true }) }
      refuseMedia(
        [...(request.imported ?? []), ...request.messages],
        (setups.get(agent) ?? missing(agent)).model,
      )
      const governor = budgetOf(agent)
      const { thread, result } = await withThread(caller, clientId, async (thread) => {
        const name = nameOf(caller, clientId)
        const actor = actorOf(caller)
        const { key, messages, imported = [] } = rest
        const known = key !== undefined && thread.state.keys.has(key.key)
        const said = { messages, imported, actor, ...(client && { client }) }
        const made = { creation: creation({ name, agent, governor }), rules }
        if (options.guard && !known)
          Object.assign(rest, await admit(thread, options.guard, { ...said, ...made }, newId))
        return await start(thread, { ...rest, agent, actor, whenBusy, name, governor }, newId)
      })
      if (brought && result.fresh) secrets.keep(thread, result.runId, brought.secrets)
      ringHere(thread)
      return { thread, ...result }
    },

    /** Notes that somebody asks for what runs on a thread, which a client had left. */
    async returned(caller: Caller, clientId: string): Promise<void> {
      const thread = await find(caller, clientId)
      if (thread) await noteReturn(thread, actorOf(caller))
    },

    /** An empty thread; the one that is there, if it is. */
    async create(caller: Caller, clientId: string, request: { agent?: string; title?: string }) {
      const agent = agentName(request.agent)
      const governor = budgetOf(agent)
      const name = nameOf(caller, clientId)
      const { thread, result } = await withThread(caller, clientId, async (thread) => {
        if (thread.state.seq > 0) return false
        const drafts = creation({ name, agent, governor })
        const { title } = request
        const titled = title === undefined ? [] : [draft('thread.renamed', { title })]
        const expect = [{ fact: 'active', is: null }]
        await thread.commit([...drafts, ...titled], { guard: { expect }, actor: actorOf(caller) })
        return true
      })
      return { thread, fresh: result }
    },

    /** Limits in tokens and money that agents begin with and that their models cannot be held to. */
    softLimits: () =>
      softLimits(
        options.agents.map(({ agent }) => setups.get(agent.name)!),
        budgetOf,
      ),

    async cancel(caller: Caller, clientId: string, runId: string): Promise<RunStatus> {
      const thread = await upToDate(caller, clientId)
      const status = await cancel(thread, runId, newId, actorOf(caller))
      ringHere(thread)
      return status
    },

    async retry(caller: Caller, clientId: string, runId: string, options: RunOptions = {}) {
      const thread = await upToDate(caller, clientId)
      await retry(thread, runId, newId, actorOf(caller))
      secrets.keep(thread, runId, splitSecrets(options).secrets)
      ringHere(thread)
      return thread
    },

    /** Shows the newest branch that a run is on. */
    async show(caller: Caller, clientId: string, runId: string): Promise<string> {
      return await showBranch(await upToDate(caller, clientId), runId, actorOf(caller))
    },

    async rename(caller: Caller, clientId: string, title: string): Promise<void> {
      const thread = await upToDate(caller, clientId)
      const drafts = [draft('thread.renamed', { title })]
      await thread.commit(drafts, { guard: {}, actor: actorOf(caller) })
    },

    async archive(caller: Caller, clientId: string, archived: boolean): Promise<void> {
      const thread = await upToDate(caller, clientId)
      const drafts = [draft('thread.archived', { archived })]
      await thread.commit(drafts, { guard: {}, actor: actorOf(caller) })
    },

    /** Removes the thread. What runs on it is cancelled first. */
    async erase(caller: Caller, clientId: string): Promise<void> {
      const thread = await upToDate(caller, clientId)
      while (thread.state.active !== null) {
        const runId = thread.state.line.at(-1) ?? thread.state.active
        await cancel(thread, runId, newId, actorOf(caller)).catch(unlessEnded)
        ringHere(thread)
        if (runId === thread.state.active) await idle(thread, clock, closing.signal)
      }
      const expect = [{ fact: 'active', is: null }]
      await eraseThread(store, audit, thread.threadId, { expect }, clock.now())
      await options.cache?.delete(thread.threadId)
      forget(thread)
      bus.ring(thread.threadId, gone)
      bus.ring(inboxBell(caller.tenant), gone)
    },

    async list(
      caller: Caller,
      query: { limit: number; cursor?: string; archived?: boolean; active?: boolean },
    ): Promise<Page<ThreadRow>> {
      const page = await store.threads({ tenant: caller.tenant, owner: caller.user, ...query })
      return { ...page, rows: page.rows.filter(({ clientId }) => !isUserBudget(clientId)) }
    },

    /** What is made of the thread as it is now; a cache may hold it while nothing is added. */
    async view<T>(caller: Caller, clientId: string, make: (state: ThreadState) => T): Promise<T> {
      const { cache, viewTtl: ttl = 3_600_000 } = options
      const open = () => upToDate(caller, clientId)
      const threadId = await store.locate(nameOf(caller, clientId))
      if (!cache || threadId === undefined) return make((await open()).state)
      return await view({ store, cache, ttl }, threadId, open, make)
    },

    /** Whether anything of the thread was changed since it was written. */
    audit: async (caller: Caller, clientId: string) =>
      await verdictOf(await upToDate(caller, clientId)),

    /** For files and inspectors: a thread by its key. */
    thread: (threadId: string) => threads.warm(threadId),

    /** Begins to drive. Resolves when `stop` is done. */
    serve: () =>
      serve({
        ...{ store, bus, queue, clock, log, forget, offer, ring },
        peek: threads.peek,
        look: (threadId) => worker.look(threadId),
        every: sweepEvery,
        leaving: leaving.signal,
        closing: closing.signal,
      }),

    /**
     * Takes no more legs; those it has are handed over before their next effect. Requests are served as
     * before: what they begin is for other servers.
     */
    leave(): void {
      leaving.abort()
    },

    /** After `leave`: resolves when no leg is driven here any more, or `wait` later. */
    drained: (wait: number) => worker.drained(wait),

    /** Takes no more, lets legs come to an end for a while, cuts the rest. */
    async stop(wait = 5_000): Promise<void> {
      leaving.abort()
      await worker.drained(wait)
      closing.abort()
      await worker.cut()
      beat.stop()
    },

    /** Why work cannot be taken now, if it cannot. */
    async problem(): Promise<string | undefined> {
      if (leaving.signal.aborted) return 'The server is stopping.'
      return await store.work(1).then(
        () => undefined,
        () => 'Storage is not available.',
      )
    },

    get legs() {
      return worker.driving
    },
  }
  return api
}

function unlessEnded(error: unknown): void {
  if (!isRuntimeError(error, 'run_ended')) throw error
}
