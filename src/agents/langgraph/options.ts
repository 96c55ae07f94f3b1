import type { Pregel } from '@langchain/langgraph'
import type { Tool } from '../../core/tool.ts'

/** A compiled graph of any state. */
// biome-ignore lint/suspicious/noExplicitAny: what a graph's nodes and channels are is its author's
export type AnyGraph = Pregel<any, any, any, any, any, any, any, any>

/** A compiled graph, or what makes one, in LangGraph's own types of whatever state. */
export type GraphSource = { stream: unknown; nodes: unknown } | { compile: unknown }

export interface LangGraphOptions {
  name: string
  description?: string
  /** First messages that a page offers to users. */
  suggestions?: readonly string[]
  /** What of the graph's state is shown and taken: a zod object, or a list of keys. Default: all but messages. */
  stateSchema?: { shape: object } | readonly string[]
  /** Steps of one run, after which it fails rather than go on forever. Default 10. */
  maxIterations?: number
  /** Seconds that one leg may take; waiting for people is not counted. Default 300. */
  timeoutSeconds?: number
  /** Tells readers which nodes run. Default true. */
  tracing?: boolean
  /**
   * `events`: words as they come, steps, state. `updates`: the same without words as they come. `full`:
   * also what each node wrote, as an event named `update`.
   */
  streamMode?: 'events' | 'updates' | 'full'
  /** Characters that one piece of a message may have. Default 1024. */
  streamChunkSize?: number
  /** How a graph that throws is run again, from its last checkpoint; `false` for never. */
  retry?: { maxRetries?: number; backoffMultiplier?: number; maxBackoffSeconds?: number } | false
  /** Names of what a request may set in `config.configurable`, and values that are always there. */
  configurable?: Allowed
  /** The same for the graph's context. */
  context?: Allowed
  /** Governed tools that the graph's nodes call by themselves; those of its tool nodes are found. */
  tools?: readonly object[]
}

export interface Allowed {
  allow?: readonly string[]
  values?: Readonly<Record<string, unknown>>
}

export interface Settled
  extends Required<
    Pick<
      LangGraphOptions,
      'name' | 'maxIterations' | 'timeoutSeconds' | 'tracing' | 'streamMode' | 'streamChunkSize'
    >
  > {
  keys: readonly string[] | undefined
  configurable: Allowed
  context: Allowed
  tools: readonly Tool[]
}
