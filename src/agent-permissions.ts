import type { PolicyRule } from './core/policy.ts'
import type { Tool } from './core/tool.ts'

type Access = NonNullable<Tool['access']>

/** How far an agent's tools are trusted, in the words that agent frameworks have for it. */
export const permissionModes = ['default', 'acceptEdits', 'bypassPermissions', 'plan'] as const

export interface AgentPermissions {
  /**
   * `acceptEdits`: writing needs no approval; `bypassPermissions`: nothing does; `plan`: it may only read.
   * What the operator's policy says of a call stands before what these allow.
   */
  permissionMode?: (typeof permissionModes)[number]
  /** By the name of a tool: a decision, or what it may touch. A tool that does not say what it touches asks. */
  toolPermissions?: Readonly<Record<string, PolicyRule['decision'] | readonly Access[]>>
  /** The only tools that it is offered. */
  allowedTools?: readonly string[]
}

/** What is denied comes before the operator's rules, the rest after them. */
export function permissionRules(
  agent: string,
  { permissionMode = 'default', toolPermissions = {} }: AgentPermissions,
): { first: PolicyRule[]; last: PolicyRule[] } {
  const rule = (name: string, more: Omit<PolicyRule, 'name' | 'agent'>): PolicyRule => {
    return { name: `${agent}: ${name}`, agent, ...more }
  }
  const all: PolicyRule[] = []
  for (const [tool, given] of Object.entries(toolPermissions)) {
    const name = `toolPermissions.${tool}`
    if (typeof given === 'string') all.push(rule(name, { tool, decision: given }))
    else {
      for (const access of accesses)
        all.push(
          rule(`${name}.${access}`, {
            tool,
            access,
            decision: given.includes(access) ? 'allow' : 'deny',
          }),
        )
    }
  }
  const mode = `permissionMode ${permissionMode}`
  if (permissionMode === 'acceptEdits') all.push(rule(mode, { access: 'write', decision: 'allow' }))
  if (permissionMode === 'bypassPermissions') all.push(rule(mode, { decision: 'allow' }))
  if (permissionMode === 'plan') {
    const reason = 'This agent only plans.'
    all.push(rule(`${mode}, write`, { access: 'write', decision: 'deny', reason }))
    all.push(rule(`${mode}, execute`, { access: 'execute', decision: 'deny', reason }))
  }
  return {
    first: all.filter(({ decision }) => decision === 'deny'),
    last: all.filter(({ decision }) => decision !== 'deny'),
  }
}

const accesses: readonly Access[] = ['read', 'write', 'execute']
