import type { JsonInput, Tool, ToolUse } from '../../core/tool.ts'
import { digestOf, sha256 } from '../../lib/canonical.ts'
import type { McpTool } from './connection.ts'
import { type CallResult, textOfResult } from './result.ts'
import type { McpOptions } from './servers.ts'

/** The longest name that all providers take. */
const longestName = 64
/** Characters of a description; a model reads all of them with every call. */
const longestDescription = 4_000

export interface Making {
  server: string
  options: McpOptions
  schema: (json: object) => JsonInput
  call: (tool: string, input: unknown, use: ToolUse) => Promise<CallResult>
}

/** A tool of a server as one of ours. Throws when its schema cannot be read. */
export function makeTool(given: McpTool, { server, options, schema, call }: Making): Tool {
  const { name, title = name, description = '', inputSchema, annotations } = given
  const { readOnlyHint, idempotentHint } = (options.trust && annotations) || {}
  return {
    name: toolName(server, name),
    description: (description || title).slice(0, longestDescription),
    schema: schema(inputSchema),
    server,
    ...(readOnlyHint && { access: 'read' as const }),
    ...((readOnlyHint || idempotentHint) && { idempotent: true }),
    ...(options.timeout !== undefined && { timeout: options.timeout }),
    describe: (input) => `Use ${title} of ${server}${summary(input)}`,
    async run(input, use) {
      const result = await call(name, input, use)
      const text = textOfResult(result)
      if (result.isError) throw new Error(text || 'The tool failed and did not say why.')
      return text
    },
  }
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
  if (entries.length === 0) return ''
  const list = entries.map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return `${key} ${text.length > 80 ? `${text.slice(0, 79)}…` : text}`
  })
  const all = list.join(', ')
  return ` with ${all.length > 300 ? `${all.slice(0, 299)}…` : all}`
}
