import { ByteCache } from '../lib/byte-cache.ts'
import { systemClock } from '../lib/clock.ts'
import { heapShare } from '../lib/heap.ts'
import { newId as freshId } from '../lib/ids.ts'
import { paced } from '../lib/paced.ts'
import { sharedAbort } from '../lib/signal.ts'
import { absent, agentDirectory, callRules, startingBudget, toolsOf } from './agent-setups.ts'
import { asides } from './asides.ts'
import { softLimits } from './budget-report.ts'
import { access } from './callers.ts'
import { bellsOf, changes } from './changes.ts'
import { deciding } from './deciding.ts'
import { keeping } from './keeping.ts'
import { forgetLarge } from './large-parts.ts'
import { heartbeat } from './leg.ts'
import { Outbox } from './outbox.ts'
import { defaultPolicy } from './policy.ts'
import { running } from './running.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { RunSecrets } from './secrets.ts'
import { serve } from './serving.ts'
import type { ThreadState } from './state.ts'
import type { ThreadName } from './store.ts'
import { Thread } from './thread.ts'
import { threadCache } from './thread-cache.ts'
import { ThreadUses } from './thread-uses.ts'
import { Worker } from './worker.ts'

export type { Caller } from './callers.ts'
export type { StartRequest } from './running.ts'
export type { RuntimeOptions } from './runtime-options.ts'

export type Runtime = ReturnType<typeof createRuntime>

/** Milliseconds between two questions to the store whether it takes work. */
const readinessEvery = 1_000

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
  const { warmBytes = heapShare(1 / 8) } = options
  const large = new ByteCache(warmBytes / 2)
  const around = {
    ...{ store, bus, clock, newId, crash, large },
    ...(hooks && { hooks }),
    ...(audit && { audit }),
    written(thread: Thread) {
      threads.keep(thread)
      ringHere(thread)
    },
  }
  const uses = new ThreadUses(options.usedBytes ?? heapShare(1 / 4))
  const threads = threadCache((threadId) => new Thread(threadId, around), warmBytes)
  const leaving = sharedAbort()
  const closing = sharedAbort()
  const beat = heartbeat(() => store.renew(serverId, leaseTtl), leaseTtl, clock)
  const rules = callRules(options.calls ?? {}, clock)
  const setups = agentDirectory({ ...options, rules })
  const secrets = new RunSecrets(options.keepHeaders && { headers: options.keepHeaders })

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

  /** A thread for a client's id that is not in use. Without auth the id is the key, unless another has it. */
  async function fresh({ tenant, owner, clientId }: ThreadName): Promise<Thread> {
    const row = options.plainIds ? await store.thread(clientId) : undefined
    const another =
      row && !(row.tenant === tenant && row.owner === owner && row.clientId === clientId)
    return threads.create(options.plainIds && !another ? clientId : newId('thread'))
  }
  const { find, open, upToDate, withThread } = access({ store, threads, fresh, forget })

  /** The thread was erased: its readers leave, and its id may be another's. */
  function forget(thread: Thread): void {
    threads.drop(thread.threadId)
    forgetLarge(large, thread.threadId)
    thread.close()
    void options.cache?.delete(thread.threadId)
  }

  const { warm, peek } = threads
  const watching = { store, bus, clock, listen: bellsOf(bus), warm, peek }
  const { guard, userLimit } = options
  const shared = { clock, newId, log, setups, closing: closing.signal }

  /** Anybody may ask for it: the store is asked at most once a second, and once for all who ask at once. */
  const storeProblem = paced(
    async () => {
      try {
        await store.work(1)
      } catch {
        return 'Storage is not available.'
      }
      return await store.probe().then(
        () => undefined,
        () => 'Storage takes no writes.',
      )
    },
    readinessEvery,
    clock,
  )

  const api = {
    ...running({
      ...{ ...shared, find, upToDate, withThread, rules, guard, secrets, budgetOf, ringHere },
      first: () => options.agents[0]!.agent.name,
    }),
    ...keeping({
      ...{ ...shared, upToDate, store, bus, audit, ringHere, forget },
      ...{ cache: options.cache, viewTtl: options.viewTtl },
    }),
    ...asides({ ...shared, find, withThread, rules, guard, userLimit }),
    ...deciding({
      ...{ ...shared, upToDate, secrets, store, bus, ringHere },
      warm: threads.warm,
      every: sweepEvery,
    }),
    clock,
    newId,
    closing: closing.signal,
    /** Counts the threads that a request of this owner keeps in memory, until `end` is called. */
    uses: (owner: string) => uses.request(owner),
    find,
    open,

    /** By its name or an alias. */
    agent: (name: string) => setups.get(name)?.agent,

    agents: () =>
      setups.list().map((one) => {
        const { agent, aliases = [], description = agent.description, version = '1.0' } = one
        const { policy = defaultPolicy, suggestions = agent.suggestions ?? [] } = one
        return { agent, aliases, tools: toolsOf(one), policy, description, suggestions, version }
      }),

    /** Limits in tokens and money that agents begin with and that their models cannot be held to. */
    softLimits: () =>
      softLimits(
        options.agents.map(({ agent }) => setups.get(agent.name)!),
        budgetOf,
      ),

    /** For files and inspectors: a thread by its key. */
    thread: (threadId: string) => threads.warm(threadId),

    /** Yields the result of `make` for a thread, now and after each change; see `changes`. */
    changes: <T>(threadId: string, make: (state: ThreadState) => T, signal: AbortSignal) =>
      changes(watching, threadId, make, signal),

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

    /** Resolves when calls that exceeded their timeout have returned and are recorded, or `wait` later. */
    lateReturned: (wait: number) => worker.lateReturned(wait),

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
      return await storeProblem()
    },

    get legs() {
      return worker.driving
    },
  }
  return api
}
