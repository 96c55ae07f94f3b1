import { type AgentPermissions, permissionModes, permissionRules } from './agent-permissions.ts'
import type { AccountAnalysisOptions } from './agents/account-analysis/steps.ts'
import type { RemoteSettings } from './agents/remote/settings.ts'
import { ConfigError } from './config.ts'
import type { Agent } from './core/agent.ts'
import type { AgentGovernor } from './core/agent-setups.ts'
import { checkPolicy, defaultPolicy, type PolicyRule } from './core/policy.ts'
import type { ProviderRules } from './core/providers.ts'
import type { RetryRule } from './core/retry.ts'
import type { Tool } from './core/tool.ts'
import type { Prices } from './core/usage.ts'
import type { Silence } from './core/watch.ts'
import type { Sizes } from './core/writing.ts'
import type { Guardrails } from './guardrails/guardrails.ts'
import type { ModelChoice } from './models/choose.ts'
import { type Action, actionTool } from './tools/actions.ts'
import { namedTools, type ToolList } from './tools/define.ts'
import type { McpServer } from './tools/mcp/servers.ts'

/** What `handrail.config.ts` may export as its default. */
export interface Settings {
  /** Replaces the built-in agent; the first one is also `default`. */
  agents?: readonly (Agent | AgentSettings)[]
  /** The model of agents that name none: `openai/gpt-5`, `openai({ ... })`, or a model of your own. */
  model?: ModelChoice
  /** Asked when that one does not answer. */
  fallback?: ModelChoice
  /** Offered in its place when the budget of a chat is spent. */
  cheaper?: ModelChoice
  /** Added to the built-in tools, or in their place with `builtIns: false`. */
  tools?: ToolList
  /** Server actions as CopilotKit's runtime takes them. */
  actions?: readonly Action[]
  builtIns?: boolean
  /** MCP servers by name; their tools are called `name__tool`. */
  mcp?: Record<string, McpServer>
  /** Agents that run elsewhere: AG-UI, LangGraph Platform, endpoints of CopilotKit's Python SDK. */
  remote?: readonly RemoteSettings[]
  /** The account analysis that is there when no agents are named. */
  workflow?: WorkflowSettings
  /** Read before the default rules: the first that fits decides. */
  policy?: readonly PolicyRule[]
  retry?: Partial<RetryRule>
  /** What may be said, shown and done. */
  guardrails?: Guardrails
  /** Limits of one provider on this server, and when it counts as dead. */
  providers?: Partial<ProviderRules>
  /** How long a model may be silent, and how much it may write. */
  silence?: Partial<Silence>
  sizes?: Partial<Sizes>
  /** Money per million tokens, by the name of the model. */
  prices?: Prices
  /** Tokens that a model takes, by its name, where we do not know or know better. */
  windows?: Readonly<Record<string, number>>
  /** Names of `x-` headers that are written to the journal, so that a run has them after a restart too. */
  keepHeaders?: readonly string[]
  /** Tokens that a model may write in one answer, by its name: limits in tokens and money need it. */
  maxOutput?: Readonly<Record<string, number>>
}

export interface WorkflowSettings extends AccountAnalysisOptions {
  /** The model of its agents, and the key for it. */
  model?: ModelChoice
  apiKey?: string
  /** Seconds for which what was made of a session is kept. */
  sessionTtl?: number
}

export interface AgentSettings extends AgentPermissions {
  agent: Agent
  /** In place of the agent's own. */
  description?: string
  /** First messages that a page offers, in place of the agent's own. */
  suggestions?: readonly string[]
  /** Default 1.0. */
  version?: string
  model?: ModelChoice
  /** The key for its model, in place of the environment's. */
  apiKey?: string
  fallback?: ModelChoice
  cheaper?: ModelChoice
  /** What its chats begin with, and what happens to runs of it that nobody attends. */
  governor?: AgentGovernor
  /** In place of those that all agents have. */
  tools?: ToolList
  /** The MCP servers whose tools it has. Default: all, or none for an agent with tools of its own. */
  mcp?: readonly string[]
}

export const defineConfig = (settings: Settings): Settings => settings

/**
 * The operator's rules, then the default ones; around them what an agent's own permissions say. Throws with
 * one sentence for what can never work.
 */
export function policyOf({ policy = [] }: Settings, entry?: AgentSettings): readonly PolicyRule[] {
  if (!Array.isArray(policy)) throw new ConfigError('policy: write a list of rules.')
  if (!entry) return checkPolicy([...policy, ...defaultPolicy])
  const { permissionMode = 'default', agent } = entry
  if (!permissionModes.includes(permissionMode))
    throw new ConfigError(`${agent.name}.permissionMode: write ${permissionModes.join(' or ')}.`)
  const { first, last } = permissionRules(agent.name, entry)
  return checkPolicy([...first, ...policy, ...last, ...defaultPolicy])
}

/** The tools of a list, and actions, as tools with names. */
export const toolsFrom = (given: ToolList, actions: readonly Action[] = []): Tool[] =>
  orConfigError(() => [...namedTools(given), ...actions.map(actionTool)])

function orConfigError<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error))
  }
}
