import { remoteFrom } from './agents/remote/settings.ts'
import type { Agent } from './core/agent.ts'
import { isZod, type JsonInput, type Tool, unfitField } from './core/tool.ts'
import { ConfigError } from './lib/config-error.ts'
import { settingFields } from './setting-fields.ts'
import { type AgentSettings, type Settings, toolsFrom } from './settings.ts'
import { builtInTools } from './tools/index.ts'
import { checkServers } from './tools/mcp/servers.ts'

/**
 * Refuses with one sentence what can never work, and what would be passed over in silence: found at the
 * start, and not by the first run that needs it.
 */
export function checkSettings(settings: Settings): void {
  settingFields(settings, '')
  if (settings.agents?.length === 0)
    throw new ConfigError('agents: name one, or leave it out to have the built-in agent.')
  checkServers(settings.mcp ?? {})
  const { agents: remote, endpoints } = remoteFrom(settings.remote ?? [])
  const own = (settings.agents ?? []).map(setupOf)
  const all = toolsFrom(settings.tools ?? [], settings.actions)
  checkTools(all, 'tools')
  // What an endpoint has is known only once it was asked.
  const open = endpoints.length > 0
  own.forEach((one, i) => {
    const given = one.tools && toolsFrom(one.tools)
    if (given) checkTools(given, `agents.${i}.tools`)
    checkServersOf(one, i, settings)
    const builtIns = settings.builtIns === false || given ? [] : builtInTools({ root: '' })
    const tools = [...builtIns, ...(given ?? all), ...(one.agent.tools ?? [])]
    if (!open || given) checkAllowed(one, i, tools, settings)
  })
  const agents = [...own.map(({ agent }) => agent), ...remote]
  refuseTwice(agents, (name) => `agents: two are called ${name}. Give each a name of its own.`)
  if (!open) for (const agent of agents) checkParts(agent, agents)
}

const setupOf = (one: Agent | AgentSettings): AgentSettings =>
  'agent' in one ? one : { agent: one }

function checkTools(tools: readonly Tool[], named: string): void {
  for (const { name, schema } of tools) {
    if (!isZod(schema)) {
      if (typeof (schema as JsonInput | undefined)?.issues === 'function') continue
      throw new ConfigError(`${named}: the schema of ${name} is not of zod 4. Make it with zod 4.`)
    }
    const field = unfitField(schema)
    if (field !== undefined)
      throw new ConfigError(
        `${named}: no JSON value fits ${field || 'the input'} of ${name}. Use z.coerce, or transform a type that JSON has.`,
      )
  }
  refuseTwice(tools, (name) => `${named}: two are called ${name}. Give each a name of its own.`)
}

function refuseTwice(all: readonly { name: string }[], told: (name: string) => string): void {
  const names = all.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) throw new ConfigError(told(twice))
}

function checkServersOf({ mcp = [] }: AgentSettings, i: number, settings: Settings): void {
  const known = Object.keys(settings.mcp ?? {})
  const strange = mcp.find((name) => !known.includes(name))
  if (strange !== undefined)
    throw new ConfigError(
      `agents.${i}.mcp: there is no MCP server ${strange}. Known: ${known.join(', ') || 'none'}.`,
    )
}

/** Tools of MCP servers come and go: of those only the server must be there. */
function checkAllowed(
  { allowedTools = [] }: AgentSettings,
  i: number,
  tools: readonly Tool[],
  { mcp = {} }: Settings,
): void {
  const known = tools.map(({ name }) => name)
  const servers = Object.keys(mcp).map((name) => `${name}__`)
  const strange = allowedTools.find(
    (name) => !known.includes(name) && !servers.some((server) => name.startsWith(server)),
  )
  if (strange === undefined) return
  const list = [...new Set(known), ...servers.map((server) => `${server}...`)].join(', ') || 'none'
  throw new ConfigError(`agents.${i}.allowedTools: there is no tool ${strange}. Known: ${list}.`)
}

function checkParts(agent: Agent, known: readonly Agent[]): void {
  for (const [step, part] of Object.entries(agent.parts ?? {})) {
    if (typeof part === 'object') checkParts(part, known)
    else if (part !== 'default' && !known.some(({ name }) => name === part))
      throw new ConfigError(
        `The step ${step} of ${agent.name} is for the agent ${part}, which is not there. ` +
          `Known: ${known.map(({ name }) => name).join(', ')}.`,
      )
  }
}
