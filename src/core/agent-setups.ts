import type { Clock } from '../lib/clock.ts'
import type { Agent } from './agent.ts'
import type { AgentSetup } from './context.ts'
import { RuntimeError } from './errors.ts'
import { type Guard, guardedModel } from './guard.ts'
import type { Model } from './model.ts'
import type { CallRules } from './model-calls.ts'
import { defaultPolicy, type PolicyRule } from './policy.ts'
import { Providers } from './providers.ts'
import { defaultRetry } from './retry.ts'
import type { Tool } from './tool.ts'
import { defaultSilence } from './watch.ts'

/** An agent with what it may use. */
export interface AgentEntry {
  agent: Agent
  /** Also found under these names. */
  aliases?: string[]
  model: Model
  fallback?: Model
  /** A function where they come and go: it is asked for each step. */
  tools?: readonly Tool[] | (() => readonly Tool[])
  policy?: readonly PolicyRule[]
}

/** An agent that is gone from the configuration: its runs end, and say why. */
export function absent(name: string, rules: CallRules): AgentSetup {
  const run = () => missing(name)
  const evidence = async () => undefined
  const toolbox = { agent: name, tools: () => new Map(), policy: [], parallel: 1, evidence }
  return {
    agent: { name, run },
    model: { name: 'none', stream: run },
    toolbox,
    rules,
  }
}

/** What an operator may say of model calls; the rest is as it should be for most. */
export type CallOptions = {
  [Key in 'retry' | 'silence' | 'sizes']?: Partial<CallRules[Key]>
} & Partial<Pick<CallRules, 'prices' | 'windows' | 'keyHeader' | 'meter' | 'providers'>>

export function callRules(options: CallOptions, clock: Clock): CallRules {
  const { retry, silence, sizes, ...rest } = options
  return {
    providers: rest.providers ?? new Providers(clock),
    prices: {},
    windows: {},
    ...rest,
    retry: { ...defaultRetry, ...retry },
    silence: { ...defaultSilence, ...silence },
    sizes: { input: 1_000_000, message: 4_000_000, ...sizes },
  }
}

interface SetupOptions {
  guard?: Guard
  agents: readonly AgentEntry[]
  /** Those that come and go; the same list until they change. Those that stay win. */
  others?: () => readonly AgentEntry[]
  rules: CallRules
  parallelCalls?: number
  spool?: { find(effectId: string): Promise<unknown> }
}

/** The agents as they are now. */
export function agentDirectory(options: SetupOptions) {
  const lasting = agentSetups(options)
  const { others = () => none } = options
  let listed: readonly AgentEntry[] = none
  let passing = new Map<string, AgentSetup>()
  const now = () => {
    const list = others()
    if (list !== listed) passing = agentSetups({ ...options, agents: list })
    listed = list
    return list
  }
  return {
    get(name: string): AgentSetup | undefined {
      now()
      return lasting.get(name) ?? passing.get(name)
    },
    list: (): readonly AgentEntry[] => {
      const more = now().filter(({ agent }) => !lasting.has(agent.name))
      return more.length === 0 ? options.agents : [...options.agents, ...more]
    },
  }
}

const none: readonly AgentEntry[] = []

/** Every agent, under its name and its aliases, with what it works with. */
function agentSetups(options: SetupOptions): Map<string, AgentSetup> {
  const setups = new Map<string, AgentSetup>()
  for (const { agent, aliases = [], model, fallback, tools = [], policy } of options.agents) {
    const setup: AgentSetup = {
      agent,
      model: guardedModel(model, options.guard),
      ...(fallback && { fallback: guardedModel(fallback, options.guard) }),
      rules: options.rules,
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
