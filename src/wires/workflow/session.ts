import { textOf } from '../../core/messages.ts'
import type { Run, ThreadState } from '../../core/state.ts'

/** A thread as the workflow API tells of it, in that API's words. */
export interface Session {
  session_id: string
  created_at: string
  agents: Record<string, AgentSession>
  /** What each agent gave last, as `<agent>_output`. */
  shared_context: Record<string, unknown>
  workflow_status: 'initialized' | 'running' | 'completed' | 'failed'
  approval_requests: { approval_id: string; title: string; status: string; timeout_at: string }[]
}

export interface AgentSession {
  status: 'idle' | 'running' | 'completed' | 'failed'
  outputs: unknown[]
  errors: string[]
  start_time: string | null
  end_time: string | null
}

/** A pure function of the journal's fold: it may be forgotten at any time, and is made again. */
export function sessionOf(state: ThreadState): Session {
  const agents = new Map<string, AgentSession>()
  const context = new Map<string, unknown>()
  for (const run of onPath(state)) {
    const agent = agents.get(run.agent) ?? idle()
    agents.set(run.agent, agent)
    agent.status = statusOf(run)
    agent.start_time = time(run.createdAt)
    agent.end_time = run.endedAt === null ? null : time(run.endedAt)
    const output = outputOf(run, state)
    if (run.status === 'completed' && output !== undefined) {
      agent.outputs.push(output)
      context.set(`${run.agent}_output`, output)
    }
    if (agent.status === 'failed') agent.errors.push(run.error?.message ?? 'Cancelled.')
    for (const [name, part] of partsOf(run, state)) {
      agents.set(name, part)
      if (part.outputs.length > 0) context.set(`${name}_output`, part.outputs.at(-1))
    }
  }
  return {
    session_id: state.clientId,
    created_at: time(state.createdAt),
    agents: Object.fromEntries(agents),
    shared_context: Object.fromEntries(context),
    workflow_status: workflowStatus([...agents.values()]),
    approval_requests: [...state.asks.values()]
      .filter(({ ask }) => ask.kind === 'approval')
      .map(({ ask, answer }) => ({
        approval_id: ask.askId,
        title: ask.title,
        status: answer?.state ?? 'pending',
        timeout_at: time(ask.deadline),
      })),
  }
}

interface Shared {
  run_id?: unknown
  agents?: Record<
    string,
    { agent: string; status: string; started_at: number; duration_ms: number }
  >
  errors?: { agent: string; error: string }[]
  [key: string]: unknown
}

/** The agents that an orchestrator has its work done by, as its state tells of them. */
function partsOf(run: Run, state: ThreadState): [string, AgentSession][] {
  const shared = state.states.get(run.agent) as Shared | undefined
  if (shared?.run_id !== run.runId || typeof shared.agents !== 'object') return []
  return Object.entries(shared.agents).map(([key, { agent, status, started_at, duration_ms }]) => {
    const over = status === 'completed' || status === 'failed'
    const errors = (shared.errors ?? []).filter((one) => one.agent === agent)
    return [
      agent,
      {
        status: over ? status : 'running',
        outputs: status === 'completed' ? [shared[key]] : [],
        errors: errors.map(({ error }) => error),
        start_time: time(started_at),
        end_time: over ? time(started_at + duration_ms) : null,
      },
    ]
  })
}

const idle = (): AgentSession => ({
  status: 'idle',
  outputs: [],
  errors: [],
  start_time: null,
  end_time: null,
})

/** The runs that are shown, the oldest first, and those that are still to end. */
function onPath(state: ThreadState): Run[] {
  const path: Run[] = []
  for (let id = state.head; id; id = state.runs.get(id)?.parentRunId ?? null) {
    const run = state.runs.get(id)
    if (run) path.unshift(run)
  }
  const coming = [state.active, ...state.line].map((id) => state.runs.get(id ?? ''))
  return [...path, ...coming.filter((run) => run !== undefined && !path.includes(run))] as Run[]
}

function statusOf({ status }: Run): AgentSession['status'] {
  if (status === 'completed') return 'completed'
  return status === 'failed' || status === 'cancelled' ? 'failed' : 'running'
}

/** What the run's own agent said last: what it gives, where that is said. */
export function outputOf(run: Run, state: ThreadState): unknown {
  for (const id of run.messageIds.toReversed()) {
    const said = state.messages.get(id)
    if (said?.message.role !== 'assistant' || said.for === 'client' || said.path !== undefined)
      continue
    return said.message.meta?.output ?? textOf(said.message)
  }
  return undefined
}

function workflowStatus(agents: readonly AgentSession[]): Session['workflow_status'] {
  const any = (status: AgentSession['status']) => agents.some((one) => one.status === status)
  if (agents.length === 0) return 'initialized'
  if (any('failed')) return 'failed'
  return any('running') ? 'running' : 'completed'
}

const time = (at: number) => new Date(at).toISOString()
