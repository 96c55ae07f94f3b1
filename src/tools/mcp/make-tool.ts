import type { JsonInput, Risk, Tool, ToolUse } from '../../core/tool.ts'
import { digestOf, sha256 } from '../../lib/canonical.ts'
import type { McpTool } from './listed.ts'
import { type CallResult, textOfResult } from './result.ts'
import type { McpServer } from './servers.ts'

/** The longest name that all providers take. */
const longestName = 64
/** Characters of a description; a model reads all of them with every call. */
const longestDescription = 4_000

export interface Making {
  server: string
  options: McpServer
  schema: (json: object) => JsonInput
  call: (tool: string, input: unknown, use: ToolUse) => Promise<CallResult>
}

/** A tool of a server as one of ours. Throws when its schema cannot be read. */
export function makeTool(given: McpTool, { server, options, schema, call }: Making): Tool {
  const { name, title = name, description = '', inputSchema, annotations } = given
  const { readOnlyHint, idempotentHint, destructiveHint } = (options.trust && annotations) || {}
  return {
    name: toolName(server, name),
    description: (description || title).slice(0, longestDescription),
    schema: schema(inputSchema),
    server,
    origin: originOf(options),
    ...(readOnlyHint && { access: 'read' as const }),
    ...((readOnlyHint || idempotentHint) && { idempotent: true }),
    ...(options.timeout !== undefined && { timeout: options.timeout }),
    describe: (input) => `Use ${title} of ${server}${summary(input)}`,
    target: () => `the MCP server ${server}`,
    ...(!readOnlyHint && { risk: () => riskOf(server, destructiveHint) }),
    async run(input, use) {
      const result = await call(name, input, use)
      const text = textOfResult(result)
      if (result.isError) throw new Error(text || 'The tool failed and did not say why.')
      return text
    },
  }
}

/** Another program or another address is another server, whatever it is called. Tokens may change. */
function originOf(server: McpServer): string {
  if (!('url' in server)) return digestOf([server.command, server.args ?? [], server.cwd ?? null])
  const { origin, pathname } = new URL(server.url)
  return digestOf([origin, pathname])
}

function riskOf(server: string, destructive: boolean | undefined): Risk {
  if (destructive === false)
    return {
      level: 'medium',
      why: `It changes something; ${server} says that it destroys nothing.`,
    }
  return { level: 'high', why: `What it does at ${server} is not known.` }
}

/** `server__tool`, in the characters that all providers take. */
export function toolName(server: string, tool: string): string {
  const plain = tool.replace(/[^a-zA-Z0-9_-]/g, '_')
  const name = `${server}__${plain}`
  if (plain === tool && name.length <= longestName) return name
  return `${name.slice(0, longestName - 9)}_${sha256(tool).slice(0, 8)}`
}

/** The same digest, the same tool: nothing of what we use of it has changed. */
export const toolDigest = ({ name, title, description, inputSchema, annotations }: McpTool) =>
  digestOf([name, title ?? null, description ?? null, inputSchema, annotations ?? null])

function summary(input: unknown): string {
  const entries = Object.entries((input ?? {}) as object)
  const short = entries.flatMap(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return text.length <= longestShown ? [`${key} ${text}`] : []
  })
  const told = short.slice(0, mostShown)
  const rest = entries.length - told.length
  if (told.length === 0) return rest === 0 ? '' : ` with ${rest} arguments`
  return ` with ${told.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`
}

/** Arguments that are told in a sentence; all are on the card. */
const mostShown = 3
const longestShown = 80
