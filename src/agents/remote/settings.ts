import { z } from 'zod'
import { ConfigError } from '../../config.ts'
import type { Agent } from '../../core/agent.ts'
import { type AguiAgentOptions, aguiAgent } from './agui/agent.ts'
import { type CopilotKitEndpointOptions, copilotKitEndpoint } from './copilotkit/endpoint.ts'
import { type LangGraphPlatformOptions, langGraphPlatform } from './langgraph-platform/agents.ts'
import type { Remote } from './remotes.ts'

/**
 * Somewhere that agents run: an AG-UI agent by its name, a LangGraph Platform deployment by its
 * `deploymentUrl`, an endpoint of CopilotKit's Python SDK by its `url` alone.
 */
export type RemoteSettings = AguiAgentOptions | LangGraphPlatformOptions | CopilotKitEndpointOptions

const address = z.url({ protocol: /^https?$/ })
const ms = z.number().int().positive().optional()
const common = {
  idempotent: z.boolean().optional(),
  tools: z.array(z.string()).readonly().optional(),
  forward: z
    .strictObject({
      headers: z.array(z.string()).readonly().optional(),
      properties: z.array(z.string()).readonly().optional(),
    })
    .optional(),
  timeouts: z.strictObject({ connect: ms, silence: ms, total: ms }).optional(),
  maxSteps: z.number().int().positive().optional(),
  attempts: z.number().int().min(1).max(20).optional(),
  private: z.boolean().optional(),
}
const calls = z.custom<object>((value) => typeof value === 'function', 'must be a function')
const headers = z.union([z.record(z.string(), z.string()), calls]).optional()
const name = z.string().min(1).max(200)
const shapes = {
  agui: z
    .strictObject({
      ...common,
      headers,
      name,
      description: z.string().optional(),
      url: address.optional(),
      agent: z.looseObject({ run: calls, clone: calls }).optional(),
    })
    .refine(({ url, agent }) => url ?? agent, 'give the url of the agent, or the agent itself.'),
  langGraph: z.strictObject({
    ...common,
    headers,
    deploymentUrl: address,
    langsmithApiKey: z.string().optional(),
    agents: z
      .array(
        z.union([
          name,
          z.strictObject({ name, assistant: name.optional(), description: z.string().optional() }),
        ]),
      )
      .min(1),
  }),
  copilotKit: z.strictObject({ ...common, url: address, onBeforeRequest: calls.optional() }),
}

/** Agents that are known by their names, and endpoints that have to be asked what they have. */
export function remoteFrom(list: readonly RemoteSettings[]): {
  agents: Agent[]
  endpoints: Remote[]
} {
  const agents: Agent[] = []
  const endpoints: Remote[] = []
  list.forEach((one, i) => {
    if ('deploymentUrl' in one) agents.push(...langGraphPlatform(checked('langGraph', one, i)))
    else if ('name' in one) agents.push(aguiAgent(checked('agui', one, i)))
    else endpoints.push(copilotKitEndpoint(checked('copilotKit', one, i)))
  })
  return { agents, endpoints }
}

function checked<T extends RemoteSettings>(kind: keyof typeof shapes, one: T, i: number): T {
  const read = shapes[kind].safeParse(one)
  if (read.success) return one
  const { path, message } = read.error.issues[0]!
  throw new ConfigError(`${['remote', i, ...path].join('.')}: ${message}`)
}
