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

interface Shared {
  run_id?: unknown
  agents?: Record<string, StepState>
  errors?: { agent: string; error: string }[]
  [key: string]: unknown
}

interface StepState {
  agent: string
  status: string
  started_at: number
  duration_ms: number
}

/** The agents that an orchestrator has its work done by, as its state tells of them: of its last run. */
export function partsOf(run: Run, state: ThreadState): [string, AgentSession][] {
  const shared = state.states.get(run.agent) as Shared | undefined
  if (shared?.run_id !== run.runId || typeof shared.agents !== 'object') return []
  return Object.entries(shared.agents).map(([key, { agent, status, started_at, duration_ms }]) => {
    const over = status === 'completed' || status === 'failed'
    const errors = (shared.errors ?? []).filter((one) => one.agent === agent)
    const told: AgentSession = {
      status: over ? status : 'running',
      outputs: status === 'completed' ? [shared[key]] : [],
      errors: errors.map(({ error }) => error),
      start_time: time(started_at),
      end_time: over ? time(started_at + duration_ms) : null,
    }
    return [agent, told]
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
