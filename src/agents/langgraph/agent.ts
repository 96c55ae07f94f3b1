import type { Agent, AgentContext, AgentEvent } from '../../core/agent.ts'
import type { AnyGraph, GraphSource, LangGraphOptions, Settled } from './options.ts'
import { toolsIn } from './tools.ts'

/**
 * A LangGraph graph as an agent. Its checkpoints are in the thread's journal; a leg goes on from the last one,
 * whatever happened. LangGraph itself is loaded with the first leg.
 */
export function langgraph(source: GraphSource, options: LangGraphOptions): Agent {
  const graph = compiled(source)
  const { description, suggestions, retry = {} } = options
  const settled = settle(graph, options)
  return {
    name: options.name,
    ...(description !== undefined && { description }),
    ...(suggestions && { suggestions }),
    supportsRetry: retry !== false,
    ...(retry !== false && { retry: ruleOf(retry) }),
    tools: settled.tools,
    async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
      const { GraphLeg } = await import('./leg.ts')
      yield* new GraphLeg(graph, settled, ctx).run()
    },
  }
}

const compiled = (source: GraphSource): AnyGraph =>
  'compile' in source ? (source as { compile(): AnyGraph }).compile() : (source as AnyGraph)

function settle(graph: AnyGraph, options: LangGraphOptions): Settled {
  const { name, stateSchema, configurable = {}, context = {}, tools = [] } = options
  return {
    name,
    maxIterations: options.maxIterations ?? 10,
    timeoutSeconds: options.timeoutSeconds ?? 300,
    tracing: options.tracing ?? true,
    streamMode: options.streamMode ?? 'events',
    streamChunkSize: options.streamChunkSize ?? 1024,
    keys: stateSchema && ('shape' in stateSchema ? Object.keys(stateSchema.shape) : stateSchema),
    configurable,
    context,
    tools: toolsIn(graph, tools),
  }
}

function ruleOf(retry: Exclude<LangGraphOptions['retry'], false | undefined>) {
  const { maxRetries = 3, backoffMultiplier = 2, maxBackoffSeconds = 60 } = retry
  return { attempts: maxRetries, factor: backoffMultiplier, most: maxBackoffSeconds * 1_000 }
}
