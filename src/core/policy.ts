import { digestOf, digestOnce } from '../lib/canonical.ts'
import { ConfigError } from '../lib/config-error.ts'
import type { Ask } from './entries.ts'
import { readRule } from './policy-rules.ts'
import type { Arguments } from './predicates.ts'
import { jsonSchemaOf, type Tool } from './tool.ts'

/** Rules are read in order; the first that fits decides. */
export interface PolicyRule {
  /** As people are told; by default where it stands: `policy.0`. */
  name?: string
  /** The tool's name; `*` stands for any characters. Absent: every tool. */
  tool?: string
  /** The MCP server that the tool is of. */
  server?: string
  agent?: string
  access?: Tool['access']
  /** What the arguments must be, as data: such a rule can be replayed over what was asked before. */
  arguments?: Arguments
  /** A further condition on the arguments. What is not true or false cannot be judged. */
  when?: (input: unknown) => boolean
  decision: 'allow' | 'ask' | 'deny'
  /** Milliseconds a person has, and what happens then. */
  timeout?: number
  atTimeout?: Ask['atTimeout']
  /** All who may decide: `owner`, and names of roles. Absent: the owner, and approvers. */
  audience?: readonly string[]
  /** Told to the model when it is denied. */
  reason?: string
}

export interface Verdict extends Pick<PolicyRule, 'decision' | 'audience' | 'reason'> {
  /** The rule that says so, by its name or its place, and what it is, wherever it stands. */
  rule: string
  ruleDigest: string
  timeout: number
  atTimeout: Ask['atTimeout']
}

export interface Judged {
  tool: Pick<Tool, 'name' | 'server' | 'access'>
  agent: string
  input: unknown
  /** JSON that stands for an input which JSON cannot represent; see `ParsedInput`. */
  shown?: unknown
}

/** Reading is allowed; writing, running code, and what nobody described, is asked about. */
export const defaultPolicy: readonly PolicyRule[] = [
  { name: 'reading is allowed', access: 'read', decision: 'allow' },
  { name: 'everything else is asked about', decision: 'ask' },
]

export const defaultAskTimeout = 300_000

/** What the rules say of a call. What nothing is said of is asked about. */
export function judge(rules: readonly PolicyRule[], call: Judged): Verdict {
  const place = rules.findIndex((one) => fits(one, call))
  const found = rules[place] ?? noRule
  const { name, decision, audience, reason, timeout, atTimeout } = found
  return {
    rule: name ?? `policy.${place}`,
    ruleDigest: ruleDigest(found),
    decision,
    timeout: timeout ?? defaultAskTimeout,
    atTimeout: atTimeout ?? 'reject',
    ...(audience && { audience }),
    ...(reason !== undefined && { reason }),
  }
}

const noRule: PolicyRule = { name: 'no rule fits', decision: 'ask' }

/**
 * What a rule is about and says: a grant is of that, and not of a place in a list, where another rule stands
 * tomorrow, or in another agent's list today. Of a condition in code only its text can be told apart.
 */
export function ruleDigest(rule: PolicyRule): string {
  const known = ruleDigests.get(rule)
  if (known !== undefined) return known
  const { name, tool, server, agent, access, arguments: given, when, decision } = rule
  const about = { name, tool, server, agent, access, arguments: given, decision }
  const digest = digestOf({ ...about, ...(when && { when: String(when) }) })
  ruleDigests.set(rule, digest)
  return digest
}

const ruleDigests = new WeakMap<PolicyRule, string>()

/** Refuses at the start what can never work, by the rule's place and what is wrong there. */
export function checkPolicy(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  for (const [i, rule] of rules.entries()) {
    readRule(rule, `policy.${i}`)
    const { name } = rule
    if (name !== undefined && rules.slice(0, i).some((one) => one.name === name))
      throw new ConfigError(`policy.${i}.name: another rule is called so. Grants name their rule.`)
  }
  return rules
}

/**
 * Arguments that cannot be judged fall to the safe side: a rule that allows does not fit, one that asks or
 * denies does.
 */
function fits(rule: PolicyRule, { tool, agent, input, shown = input }: Judged): boolean {
  if (rule.tool !== undefined && !globs(rule.tool, tool.name)) return false
  if (rule.server !== undefined && rule.server !== tool.server) return false
  if (rule.agent !== undefined && rule.agent !== agent) return false
  if (rule.access !== undefined && rule.access !== tool.access) return false
  const reading = readRule(rule).arguments(input, shown)
  return reading === 'yes' || (reading === 'unread' && rule.decision !== 'allow')
}

/** Whether a name fits a pattern, in which `*` stands for any characters. Takes linear time. */
export function globs(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

export const schemaDigest = (tool: Tool): string => digestOnce(jsonSchemaOf(tool) as object)

/** What the person sees and what runs are the same when this is the same (I11). */
export function callDigest(
  tool: Tool,
  input: unknown,
  { raw, precondition }: Pick<Ask, 'raw' | 'precondition'> = {},
): string {
  const origin = tool.origin ? [tool.origin] : []
  const more = { ...(raw && { raw }), ...(precondition !== undefined && { precondition }) }
  const bound = Object.keys(more).length === 0 ? [] : [more]
  return digestOf([tool.name, schemaDigest(tool), input, ...origin, ...bound])
}
