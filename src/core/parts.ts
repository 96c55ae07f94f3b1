import type { Agent } from './agent.ts'
import type { AgentSetup } from './context.ts'

type Find<T> = (name: string) => T

/** What an agent works with that does a part for another: its own setup, or that of the other with its tools. */
export function partSetup<T>(part: string | Agent, of: AgentSetup, find: Find<T>): T | AgentSetup {
  if (typeof part === 'string') return find(part)
  const { toolbox } = of
  const tools = () => new Map([...toolbox.tools(), ...(part.tools ?? []).map(byName)])
  return { ...of, agent: part, toolbox: { ...toolbox, agent: part.name, tools } }
}

const byName = <T extends { name: string }>(one: T) => [one.name, one] as const

/** Who works at a path, as far as the agents on the way to it say who does their parts. */
export function setupAt(
  path: string,
  of: AgentSetup,
  find: Find<AgentSetup | undefined>,
): AgentSetup | undefined {
  const { parts = {} } = of.agent
  const keys = Object.keys(parts).filter((key) => `${path}/`.startsWith(`${key}/`))
  const key = keys.sort((a, b) => b.length - a.length)[0]
  if (key === undefined) return undefined
  const part = partSetup(parts[key]!, of, find)
  return key === path || !part ? part : setupAt(path.slice(key.length + 1), part, find)
}
