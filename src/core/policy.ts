import { digestOf, digestOnce } from '../lib/canonical.ts'
import type { Ask } from './entries.ts'
import type { ThreadState } from './state.ts'
import { jsonSchemaOf, type Tool } from './tool.ts'

/** Rules are read in order; the first that fits decides. */
export interface PolicyRule {
  /** The tool's name; `*` stands for any characters. Absent: every tool. */
  tool?: string
  /** The MCP server that the tool is of. */
  server?: string
  agent?: string
  access?: Tool['access']
  /** A further condition on the arguments. */
  when?: (input: unknown) => boolean
  decision: 'allow' | 'ask' | 'deny'
  /** Milliseconds a person has, and what happens then. */
  timeout?: number
  atTimeout?: Ask['atTimeout']
  audience?: string[]
  /** Told to the model when it is denied. */
  reason?: string
}

export interface Verdict extends Omit<PolicyRule, 'tool' | 'server' | 'agent' | 'when' | 'access'> {
  timeout: number
  atTimeout: Ask['atTimeout']
}

/** Reading is allowed; writing, running code, and what nobody described, is asked about. */
export const defaultPolicy: readonly PolicyRule[] = [
  { access: 'read', decision: 'allow' },
  { decision: 'ask' },
]

export const defaultAskTimeout = 300_000

export function judge(
  rules: readonly PolicyRule[],
  call: { tool: Tool; agent: string; input: unknown },
  state: ThreadState,
  now: number,
): Verdict {
  const rule = rules.find((one) => fits(one, call)) ?? { decision: 'ask' as const }
  const verdict = { timeout: defaultAskTimeout, atTimeout: 'reject' as const, ...rule }
  if (verdict.decision !== 'ask') return verdict
  const schema = schemaDigest(call.tool)
  for (const grant of state.grants.values()) {
    if (grant.tool !== call.tool.name || grant.schema !== schema) continue
    if (grant.until === undefined || grant.until > now) return { ...verdict, decision: 'allow' }
  }
  return verdict
}

function fits(rule: PolicyRule, call: { tool: Tool; agent: string; input: unknown }): boolean {
  if (rule.tool !== undefined && !globs(rule.tool, call.tool.name)) return false
  if (rule.server !== undefined && rule.server !== call.tool.server) return false
  if (rule.agent !== undefined && rule.agent !== call.agent) return false
  if (rule.access !== undefined && rule.access !== call.tool.access) return false
  return rule.when?.(call.input) ?? true
}

/** Whether a name is of a pattern, in which `*` stands for any characters. */
export function globs(pattern: string, name: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(name)
}

export const schemaDigest = (tool: Tool): string => digestOnce(jsonSchemaOf(tool) as object)

/** What the person sees and what runs are the same when this is the same (I11). */
export const callDigest = (tool: Tool, input: unknown): string =>
  digestOf([tool.name, schemaDigest(tool), input])
