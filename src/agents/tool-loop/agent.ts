import type { Agent, AgentContext, AgentEvent } from '../../core/agent.ts'
import { RuntimeError } from '../../core/errors.ts'
import { callsOf, type Message } from '../../core/messages.ts'
import type { ModelParameters } from '../../core/model.ts'

export interface ToolLoopOptions {
  name: string
  description?: string
  /** First messages that a page offers to users. */
  suggestions?: readonly string[]
  /** The operator's own instructions; they come before a client's. */
  system?: string
  /** Model calls in one run, after which it fails rather than go on forever. */
  maxSteps?: number
  parameters?: ModelParameters
}

/**
 * The built-in agent: one model call, then its tool calls, until the model has nothing more to
 * call. It keeps nothing: where to go on is read from the messages, in every leg.
 */
export function toolLoop(options: ToolLoopOptions): Agent {
  const { name, maxSteps = 25, system, suggestions } = options
  const description = options.description ?? system?.slice(0, 200)
  return {
    name,
    ...(description !== undefined && { description }),
    ...(suggestions && { suggestions }),
    // biome-ignore lint/correctness/useYield: all it does goes through ctx
    async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
      for (;;) {
        const calls = openCalls(ctx.messages())
        if (calls.length > 0) await ctx.call(calls)
        if (ctx.messages().at(-1)?.role === 'assistant') return
        if (stepsOf(ctx.messages()) >= maxSteps) {
          throw new RuntimeError(
            'too_many_steps',
            `The agent took ${maxSteps} steps and may not more.`,
          )
        }
        const { message } = await ctx.model({
          system: options.system === undefined ? [] : [options.system],
          messages: ctx.messages(),
          tools: ctx.tools,
          ...parametersOf(ctx, options.parameters),
        })
        if (callsOf(message).length === 0) return
      }
    },
  }
}

/**
 * The client's wishes, then the operator's. A call that a client wants made is wanted once: the
 * model then goes on by itself.
 */
function parametersOf(ctx: AgentContext, fixed: ModelParameters | undefined) {
  const { toolChoice, ...rest } = ctx.options.parameters ?? {}
  const first = stepsOf(ctx.messages()) === 0
  const wishes = { ...rest, ...(toolChoice !== undefined && first && { toolChoice }) }
  const parameters: ModelParameters = { ...wishes, ...fixed }
  return Object.keys(parameters).length > 0 ? { parameters } : {}
}

/** Calls since the last user message that have no result yet. */
function openCalls(messages: readonly Message[]) {
  const recent = messages.slice(lastUser(messages) + 1)
  const answered = new Set(recent.map(({ callId }) => callId))
  return recent
    .filter(({ role, partial }) => role === 'assistant' && !partial)
    .flatMap(callsOf)
    .filter(({ callId }) => !answered.has(callId))
}

const stepsOf = (messages: readonly Message[]) =>
  messages.slice(lastUser(messages) + 1).filter(({ role }) => role === 'assistant').length

function lastUser(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === 'user')
}
