import { z } from 'zod'
import type { Message } from '../core/messages.ts'
import type { Run, ThreadState } from '../core/state.ts'
import type { AgentMoved } from '../core/workflow-events.ts'

/** How an agent stands, in the words of the workflow API. */
export interface AgentSession {
  status: 'idle' | 'running' | 'completed' | 'failed'
  outputs: unknown[]
  errors: string[]
  start_time: string | null
  end_time: string | null
}

/** How an agent of an orchestrator moved, as an event of its own. */
export function movedEvent(moved: AgentMoved): [event: string, data: object] {
  const { agent, step, status, task, output, error = '', code, critical = false } = moved
  const { again = false } = moved
  if (again || status === 'failed')
    return ['agent_error', { agent, step, error_message: error, code, critical, retrying: again }]
  if (status === 'running') return ['agent_started', { agent, step, task }]
  return ['agent_completed', { agent, step, output }]
}

/** An agent's state may be anything, also what a client sent: only what has this shape is told. */
const workflowState = z.looseObject({
  run_id: z.string(),
  agents: z.record(
    z.string(),
    z.object({
      agent: z.string(),
      status: z.enum(['running', 'waiting', 'completed', 'failed']),
      started_at: z.number().min(0).max(8e15),
      duration_ms: z.number().min(0).max(1e12),
    }),
  ),
  errors: z.array(z.object({ agent: z.string(), error: z.string() })),
})

/** The agents that an orchestrator has its work done by, as its state tells of them: of its last run. */
export const partsOf = (run: Run, state: ThreadState): [string, AgentSession][] =>
  partsIn(state.states.get(run.agent), run)

/** Agents of agents: told of, but how the whole stands does not go by them. */
export function innerPartsOf(run: Run, state: ThreadState): [string, AgentSession][] {
  if (!isOf(state.states.get(run.agent), run)) return []
  const inner = [...state.states].filter(([key]) => key.startsWith(`${run.runId}/`))
  return inner.flatMap(([, value]) => partsIn(value, run))
}

const isOf = (value: unknown, { runId }: Run): boolean =>
  (value as { run_id?: unknown } | null | undefined)?.run_id === runId

function partsIn(value: unknown, run: Run): [string, AgentSession][] {
  if (!isOf(value, run)) return []
  const { success, data: shared } = workflowState.safeParse(value)
  if (!success) return []
  return Object.entries(shared.agents).map(([key, { agent, status, started_at, duration_ms }]) => {
    const over = status === 'completed' || status === 'failed'
    // Whoever was at work when the run ended was stopped with it.
    const stopped = !over && run.endedAt !== null
    const errors = shared.errors.filter((one) => one.agent === agent).map(({ error }) => error)
    const end = over ? started_at + duration_ms : run.endedAt
    const session: AgentSession = {
      status: over ? status : stopped ? 'failed' : 'running',
      outputs: status === 'completed' ? [shared[key]] : [],
      errors: stopped ? [...errors, 'Stopped with its run.'] : errors,
      start_time: time(started_at),
      end_time: end === null ? null : time(end),
    }
    return [agent, session]
  })
}

/** What the run's own agent said last; what it gives is in its `meta.output`, where it says so. */
export function lastSaid(run: Run, state: ThreadState): Message | undefined {
  for (const id of run.messageIds.toReversed()) {
    const said = state.messages.get(id)
    if (said?.message.role !== 'assistant' || said.for === 'client') continue
    if (said.path === undefined) return said.message
  }
  return undefined
}

const time = (at: number) => new Date(at).toISOString()
