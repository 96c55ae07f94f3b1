import { z } from 'zod'
import { ConfigError } from '../../config.ts'

/** An MCP server of the operator: a program to start, or an address. Requests never name one. */
export type McpServer = McpOptions & (Program | Address)

export interface Program {
  command: string
  args?: readonly string[]
  /** Added to the few variables that programs need; ours are not handed on. */
  env?: PerTenant
  cwd?: string
}

export interface Address {
  url: string
  headers?: PerTenant
}

/** The same for all, or made for each tenant; without one, for finding out which tools there are. */
export type PerTenant = Record<string, string> | ((tenant?: string) => Record<string, string>)

export interface McpOptions {
  /** Only these of its tools. */
  tools?: readonly string[]
  /** Believes its hints: what it calls read-only is allowed by default, what it calls idempotent is. */
  trust?: boolean
  /** Milliseconds that a call may take, not counting what a person is asked meanwhile. */
  timeout?: number
  /** Milliseconds that a person has for what the server asks. */
  askTimeout?: number
  /** One call after the other: then it is always known whose call a question of the server is about. */
  serial?: boolean
}

const perTenant = z.union([
  z.record(z.string(), z.string()),
  z.custom<(tenant?: string) => Record<string, string>>((value) => typeof value === 'function'),
])
const options = {
  tools: z.array(z.string()).readonly().optional(),
  trust: z.boolean().optional(),
  timeout: z.number().int().positive().optional(),
  askTimeout: z.number().int().positive().optional(),
  serial: z.boolean().optional(),
}
const program = z.strictObject({
  ...options,
  command: z.string().min(1),
  args: z.array(z.string()).readonly().optional(),
  env: perTenant.optional(),
  cwd: z.string().optional(),
})
const address = z.strictObject({
  ...options,
  url: z.url({ protocol: /^https?$/ }),
  headers: perTenant.optional(),
})

/** Refuses what is not a server, before anything is started. */
export function checkServers(servers: Record<string, McpServer>): void {
  for (const [name, server] of Object.entries(servers)) {
    if (!/^[a-zA-Z0-9-]{1,24}$/.test(name)) {
      throw new ConfigError(`mcp.${name}: name servers with 1 to 24 letters, digits or hyphens.`)
    }
    if (!('url' in server) && !('command' in server)) {
      throw new ConfigError(`mcp.${name}: give it a command to start, or the url of a server.`)
    }
    const shape = 'url' in server ? address : program
    const read = shape.safeParse(server)
    if (read.success) continue
    const [{ path, message }] = read.error.issues as [z.core.$ZodIssue]
    throw new ConfigError(`${['mcp', name, ...path].join('.')}: ${message}`)
  }
}

export const forTenant = (given: PerTenant | undefined, tenant: string | undefined) =>
  typeof given === 'function' ? given(tenant) : given
