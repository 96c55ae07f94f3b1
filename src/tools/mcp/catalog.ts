import { setImmediate } from 'node:timers/promises'
import type { JsonInput, Tool, ToolUse } from '../../core/tool.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Connection, connect } from './connection.ts'
import { backOff } from './connections.ts'
import { nameOf, readTool } from './listed.ts'
import { makeTool, toolDigest, toolName } from './make-tool.ts'
import type { CallResult } from './result.ts'
import type { McpServer } from './servers.ts'

/** Milliseconds between two looks at the tools of a server that does not tell of changes. */
const lookEvery = 60_000
/** Tools of one server that are offered. */
const mostTools = 500

export interface Log {
  info(about: object, message: string): void
  warn(about: object, message: string): void
}

export interface CatalogOptions {
  name: string
  server: McpServer
  schema: (json: object) => JsonInput
  call: (tool: string, input: unknown, use: ToolUse) => Promise<CallResult>
  /** The tools are others now. */
  changed: () => void
  clock: Clock
  log: Log
}

/**
 * Knows which tools one server has, by a connection of its own on which nothing is called. What it knew
 * stays while the server is away: calls say that it is.
 */
export class Catalog {
  tools: readonly Tool[] = []
  /** Resolves when the tools were listed for the first time. */
  readonly ready: Promise<void>
  readonly #options: CatalogOptions
  readonly #closing = new AbortController()
  readonly #watching: Promise<void>
  #known = new Map<string, { digest: string; tool: Tool }>()
  #wake = () => {}

  constructor(options: CatalogOptions) {
    this.#options = options
    let ready = () => {}
    this.ready = new Promise((resolve) => {
      ready = resolve
    })
    this.#watching = this.#watch(ready).catch(() => {})
  }

  /** Somebody heard that the tools are others now. */
  refresh(): void {
    this.#wake()
  }

  async close(): Promise<void> {
    this.#closing.abort('closing')
    this.#wake()
    await this.#watching
  }

  async #watch(ready: () => void): Promise<void> {
    const { name, server, clock, log } = this.#options
    const { signal } = this.#closing
    const heard = { changed: () => this.refresh(), unasked: () => {} }
    for (let times = 0; !signal.aborted; ) {
      let connection: Connection | undefined
      try {
        connection = await connect(server, heard, { signal })
        for (;;) {
          const changed = this.#next(connection.gone)
          await this.#take(await connection.list())
          times = 0
          ready()
          await changed
          if (signal.aborted || connection.gone.aborted) break
        }
        if (!signal.aborted) throw new Error('It ended.')
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        const pause = backOff(++times)
        if (!signal.aborted) log.warn({ server: name, why, inMs: pause }, 'an MCP server is away')
        await clock.sleep(pause, signal).catch(() => {})
      } finally {
        await connection?.close().catch(() => {})
      }
    }
  }

  /** Resolves when the tools may be others. Asked for before they are listed, so that none is missed. */
  async #next(gone: AbortSignal): Promise<void> {
    const over = new AbortController()
    const { signal } = over
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      gone.addEventListener('abort', () => resolve(), { once: true, signal })
      this.#options.clock.sleep(lookEvery, signal).then(resolve, () => {})
      if (gone.aborted) resolve()
    })
    over.abort('over')
  }

  async #take(listed: readonly unknown[]): Promise<void> {
    const { name: server, server: options, log, schema, call } = this.#options
    const known = new Map<string, { digest: string; tool: Tool }>()
    const wanted = listed.filter((one) => options.tools?.includes(nameOf(one)) ?? true)
    for (const listedTool of wanted.slice(0, mostTools)) {
      await setImmediate() // compiling a schema takes up to 30 ms
      try {
        const one = readTool(listedTool)
        const digest = toolDigest(one)
        const before = this.#known.get(one.name)
        const making = { server, options, schema, call }
        const same = before?.digest === digest
        const tool = same ? before.tool : makeTool(one, making)
        if ([...known.values()].some((other) => other.tool.name === tool.name)) {
          throw new Error(`another one is called ${toolName(server, one.name)} already`)
        }
        known.set(one.name, { digest, tool })
      } catch (error) {
        const tool = nameOf(listedTool)
        log.warn({ server, tool, why: String(error) }, 'an MCP tool is left out')
      }
    }
    if (same(this.#known, known)) return
    this.#known = known
    this.tools = [...known.values()].map(({ tool }) => tool)
    log.info({ server, tools: this.tools.length }, 'tools of an MCP server')
    this.#options.changed()
  }
}

function same<V extends { tool: unknown }>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>) {
  if (a.size !== b.size) return false
  return [...b].every(([name, { tool }]) => a.get(name)?.tool === tool)
}
