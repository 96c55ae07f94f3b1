import type { Tool } from '../../core/tool.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { Catalog, type Log } from './catalog.ts'
import { connect } from './connection.ts'
import { Connections } from './connections.ts'
import { schemaReader } from './schema.ts'
import { checkServers, type McpServer } from './servers.ts'

/** The tools of all configured MCP servers. */
export interface Mcp {
  /** Those of the named servers, or of all, as they are now; the same list until they change. */
  tools(servers?: readonly string[]): readonly Tool[]
  close(): Promise<void>
}

export interface McpSetup {
  log: Log
  clock?: Clock
  /** Milliseconds to wait for servers at the start; those that take longer come later. */
  wait?: number
}

const startWait = 5_000

/** Starts to know the servers. One that is down stops nobody: its tools come when it does. */
export async function openMcp(
  servers: Record<string, McpServer>,
  { log, clock = systemClock, wait = startWait }: McpSetup,
): Promise<Mcp> {
  checkServers(servers)
  const entries = Object.entries(servers)
  if (entries.length === 0) return { tools: () => [], close: async () => {} }
  const schema = await schemaReader()
  let lists = new Map<string, readonly Tool[]>()
  const changed = () => {
    lists = new Map()
  }
  const all = entries.map(([name, server]) => {
    const heard = {
      changed: () => catalog.refresh(),
      unasked: (why: string) => log.warn({ server: name, why }, 'an MCP server asked in vain'),
    }
    const connections = new Connections({
      open: (tenant) => connect(server, heard, { tenant }),
      ...(server.serial && { serial: true }),
      clock,
    })
    const catalog: Catalog = new Catalog({
      ...{ name, server, schema, changed, clock, log },
      call: (tool, input, use) =>
        connections.use(use.tenant, use.signal, (one) => one.call(tool, input, use)),
    })
    return { name, connections, catalog }
  })
  const over = new AbortController()
  const ready = Promise.all(all.map(({ catalog }) => catalog.ready))
  await Promise.race([ready, clock.sleep(wait, over.signal).catch(() => {})])
  over.abort('over')

  return {
    tools(names) {
      const key = names?.join() ?? '*'
      let list = lists.get(key)
      if (!list) {
        const some = all.filter(({ name }) => names?.includes(name) ?? true)
        list = some.flatMap(({ catalog }) => catalog.tools)
        lists.set(key, list)
      }
      return list
    },
    async close() {
      const ends = all.flatMap(({ catalog, connections }) => [catalog.close(), connections.close()])
      await Promise.all(ends)
    },
  }
}
