import type { Agent } from '../../core/agent.ts'
import type { Tool } from '../../core/tool.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'

/** What an endpoint offers, as far as it is known. */
export interface Found {
  agents: readonly Agent[]
  tools: readonly Tool[]
}

/** Somewhere that agents run. */
export interface Remote {
  readonly name: string
  /** Asks it what it has. */
  find(signal: AbortSignal): Promise<Found>
}

export interface Remotes {
  /** As they are now; the same list until they change. */
  agents(): readonly Agent[]
  tools(): readonly Tool[]
  close(): Promise<void>
}

export interface RemotesSetup {
  log: { info(about: object, message: string): void; warn(about: object, message: string): void }
  clock?: Clock
  /** Milliseconds to wait at the start, between two looks, and for one. */
  wait?: number
  every?: number
  patience?: number
}

/**
 * Knows what endpoints have. One that is down stops nobody: what it had stays in the list, and what it has
 * comes when it does.
 */
export async function openRemotes(
  remotes: readonly Remote[],
  { log, clock = systemClock, wait = 3_000, every = 60_000, patience = 5_000 }: RemotesSetup,
): Promise<Remotes> {
  const closing = new AbortController()
  const found = new Map<Remote, Found>()
  let agents: readonly Agent[] = []
  let tools: readonly Tool[] = []
  const join = () => {
    const all = remotes.map((remote) => found.get(remote)).filter((one) => one !== undefined)
    agents = all.flatMap((one) => one.agents)
    tools = all.flatMap((one) => one.tools)
  }
  const watch = async (remote: Remote, ready: () => void) => {
    for (let times = 0; !closing.signal.aborted; ) {
      let next = every
      try {
        const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(patience)])
        const now = await remote.find(signal)
        const before = found.get(remote)
        found.set(remote, now)
        if (!(before && alike(before, now))) {
          join()
          const about = { remote: remote.name, agents: now.agents.length, tools: now.tools.length }
          log.info(about, 'what a remote endpoint has')
        }
        times = 0
        ready()
      } catch (error) {
        next = Math.min(500 * 2 ** times++, 30_000)
        const why = error instanceof Error ? error.message : String(error)
        if (!closing.signal.aborted)
          log.warn({ remote: remote.name, why, inMs: next }, 'a remote endpoint is away')
      }
      await clock.sleep(next, closing.signal).catch(() => {})
    }
  }
  const readies: Promise<void>[] = []
  const watching = remotes.map((remote) => {
    let ready = () => {}
    readies.push(
      new Promise((resolve) => {
        ready = resolve
      }),
    )
    return watch(remote, ready)
  })
  const over = new AbortController()
  await Promise.race([Promise.all(readies), clock.sleep(wait, over.signal).catch(() => {})])
  over.abort('over')
  return {
    agents: () => agents,
    tools: () => tools,
    async close() {
      closing.abort('closing')
      await Promise.all(watching)
    },
  }
}

const alike = (a: Found, b: Found): boolean => same(a.agents, b.agents) && same(a.tools, b.tools)

const same = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i])
