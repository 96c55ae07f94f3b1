import type { Agent } from './agent.ts'
import type { AgentSetup } from './context.ts'
import { RuntimeError } from './errors.ts'
import { type Guard, guardedModel } from './guard.ts'
import type { Model } from './model.ts'
import { defaultPolicy, type PolicyRule } from './policy.ts'
import { defaultRetry, type RetryRule } from './retry.ts'
import type { Tool } from './tool.ts'

/** An agent with what it may use. */
export interface AgentEntry {
  agent: Agent
  /** Also found under these names. */
  aliases?: string[]
  model: Model
  /** A function where they come and go: it is asked for each step. */
  tools?: readonly Tool[] | (() => readonly Tool[])
  policy?: readonly PolicyRule[]
}

/** An agent that is gone from the configuration: its runs end, and say why. */
export function absent(name: string): AgentSetup {
  const run = () => missing(name)
  const evidence = async () => undefined
  const toolbox = { agent: name, tools: () => new Map(), policy: [], parallel: 1, evidence }
  return {
    agent: { name, run },
    model: { name: 'none', stream: run },
    toolbox,
    retry: defaultRetry,
  }
}

interface SetupOptions {
  guard?: Guard
  agents: readonly AgentEntry[]
  retry?: Partial<RetryRule>
  parallelCalls?: number
  spool?: { find(effectId: string): Promise<unknown> }
}

/** Every agent, under its name and its aliases, with what it works with. */
export function agentSetups(options: SetupOptions): Map<string, AgentSetup> {
  const setups = new Map<string, AgentSetup>()
  for (const { agent, aliases = [], model, tools = [], policy } of options.agents) {
    const setup: AgentSetup = {
      agent,
      model: guardedModel(model, options.guard),
      retry: { ...defaultRetry, ...options.retry },
      toolbox: {
        agent: agent.name,
        tools: toolsByName(tools),
        policy: policy ?? defaultPolicy,
        parallel: options.parallelCalls ?? 8,
        evidence: async (effectId) => await options.spool?.find(effectId),
        ...(options.guard && { guard: options.guard }),
      },
    }
    for (const name of [agent.name, ...aliases]) setups.set(name, setup)
  }
  return setups
}

/** The tools of an agent as they are now. */
export const toolsOf = ({ tools = [] }: Pick<AgentEntry, 'tools'>): readonly Tool[] =>
  typeof tools === 'function' ? tools() : tools

/** Made anew only when the list is another one. */
function toolsByName(tools: AgentEntry['tools']): () => ReadonlyMap<string, Tool> {
  let known: readonly Tool[] | undefined
  let byName: ReadonlyMap<string, Tool> = new Map()
  return () => {
    const list = toolsOf({ tools })
    if (list !== known) byName = new Map(list.map((tool) => [tool.name, tool]))
    known = list
    return byName
  }
}

export function missing(name: string): never {
  throw new RuntimeError('agent_not_found', `There is no agent named ${name}.`)
}
