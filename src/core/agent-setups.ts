import type { Clock } from '../lib/clock.ts'
import type { Agent } from './agent.ts'
import type { AgentSetup } from './context.ts'
import { RuntimeError } from './errors.ts'
import type { UnattendedRule } from './governor.ts'
import { type Guard, guardedModel } from './guard.ts'
import type { Model } from './model.ts'
import type { CallRules } from './model-calls.ts'
import { checkPolicy, defaultPolicy, type PolicyRule } from './policy.ts'
import { Providers } from './providers.ts'
import { defaultRetry } from './retry.ts'
import { lastOfEach, type Tool } from './tool.ts'
import { defaultSilence } from './watch.ts'

/** An agent with what it may use. */
export interface AgentEntry {
  agent: Agent
  /** In place of the agent's own. */
  description?: string
  /** In place of the agent's own. */
  suggestions?: readonly string[]
  version?: string
  /** The only tools that it is offered, by their names. Default: all that it has. */
  allowedTools?: readonly string[]
  /** Also found under these names. */
  aliases?: string[]
  model: Model
  fallback?: Model
  /** Offered in its place when the budget is spent. */
  cheaper?: Model
  /** What its threads begin with, and what happens to runs that nobody attends. */
  governor?: AgentGovernor
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
    governor: { whenUnattended: 'ask' },
  }
}

/** How much an agent may do before a person is asked. */
export interface AgentGovernor extends Partial<StartingBudget> {
  /** Nobody attends any run of it. */
  unattended?: boolean
  whenUnattended?: UnattendedRule
}

/** What a thread's budget is to begin with; `null` is no limit. */
export interface StartingBudget {
  isHitlEnabled: boolean
  actionLimit: number
  tokenLimit?: number | null
  moneyLimit?: number | null
}

/** What a new thread of the agent begins with. */
export function startingBudget(entry: AgentEntry | undefined, all: StartingBudget): StartingBudget {
  const { unattended: _, whenUnattended: __, ...own } = entry?.governor ?? {}
  return { ...all, ...own }
}

/** What an operator may say of model calls; the rest is as it should be for most. */
export type CallOptions = {
  [Key in 'retry' | 'silence' | 'sizes']?: Partial<CallRules[Key]>
} & Partial<
  Pick<CallRules, 'prices' | 'windows' | 'maxOutput' | 'keyHeader' | 'meter' | 'providers'>
>

export function callRules(options: CallOptions, clock: Clock): CallRules {
  const { retry, silence, sizes, ...rest } = options
  return {
    providers: rest.providers ?? new Providers(clock),
    prices: {},
    windows: {},
    maxOutput: {},
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
  whenUnattended?: UnattendedRule
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
  for (const entry of options.agents) {
    const { agent, aliases = [], model, fallback, cheaper, tools = [], policy, governor } = entry
    const whenUnattended = governor?.whenUnattended ?? options.whenUnattended ?? 'ask'
    const setup: AgentSetup = {
      agent,
      model: guardedModel(model, options.guard),
      ...(fallback && { fallback: guardedModel(fallback, options.guard) }),
      ...(cheaper && { cheaper: guardedModel(cheaper, options.guard) }),
      governor: {
        whenUnattended,
        ...(governor?.unattended && { unattended: true }),
        ...(cheaper && { cheaper: cheaper.name }),
      },
      rules: options.rules,
      toolbox: {
        agent: agent.name,
        policy: checkPolicy(policy ?? defaultPolicy),
        tools: toolsByName({
          agent,
          tools,
          ...(entry.allowedTools && { allowedTools: entry.allowedTools }),
        }),
        parallel: options.parallelCalls ?? 8,
        evidence: async (effectId) => await options.spool?.find(effectId),
        ...(options.guard && { guard: options.guard }),
      },
    }
    for (const name of [agent.name, ...aliases]) setups.set(name, setup)
  }
  return setups
}

/** The tools of an agent as they are now, its own first; only those that it may have. */
export function toolsOf({ allowedTools, ...of }: OfTools): readonly Tool[] {
  const all = allToolsOf(of)
  if (!allowedTools) return all
  const lists = allowed.get(allowedTools) ?? new WeakMap<readonly Tool[], readonly Tool[]>()
  allowed.set(allowedTools, lists)
  const some = lists.get(all) ?? all.filter(({ name }) => allowedTools.includes(name))
  lists.set(all, some)
  return some
}

type OfTools = Pick<AgentEntry, 'tools' | 'agent' | 'allowedTools'>

/** What is left of a list: the same for the same two. */
const allowed = new WeakMap<readonly string[], WeakMap<readonly Tool[], readonly Tool[]>>()

function allToolsOf({ tools = [], agent }: OfTools): readonly Tool[] {
  const given = typeof tools === 'function' ? tools() : tools
  if (!agent.tools?.length) return given
  const lists = joinedTools.get(agent) ?? new WeakMap<readonly Tool[], readonly Tool[]>()
  joinedTools.set(agent, lists)
  const all = lists.get(given) ?? lastOfEach([...given, ...agent.tools])
  lists.set(given, all)
  return all
}

/** The same lists joined are the same list. */
const joinedTools = new WeakMap<Agent, WeakMap<readonly Tool[], readonly Tool[]>>()

/** Made anew only when the list is another one. */
function toolsByName(of: OfTools): () => ReadonlyMap<string, Tool> {
  let known: readonly Tool[] | undefined
  let byName: ReadonlyMap<string, Tool> = new Map()
  return () => {
    const list = toolsOf(of)
    if (list !== known) byName = new Map(list.map((tool) => [tool.name, tool]))
    known = list
    return byName
  }
}

export function missing(name: string): never {
  throw new RuntimeError('agent_not_found', `There is no agent named ${name}.`)
}
