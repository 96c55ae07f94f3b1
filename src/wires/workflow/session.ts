import { asDecided, editOf } from '../../core/edited.ts'
import { textOf } from '../../core/messages.ts'
import type { Run, ThreadState } from '../../core/state.ts'
import { type AgentSession, innerPartsOf, lastSaid, partsOf } from '../agents-told.ts'

/** A thread as the workflow API tells of it, in that API's words. */
export interface Session {
  session_id: string
  created_at: string
  updated_at: string
  /** Seconds for which it is kept at hand once it was made; then it is made anew. */
  ttl: number
  agents: Record<string, AgentSession>
  /** What each agent gave last, as `<agent>_output`. */
  shared_context: Record<string, unknown>
  workflow_status: 'initialized' | 'running' | 'completed' | 'failed'
  approval_requests: {
    approval_id: string
    title: string
    status: string
    timeout_at: string
    /** The approver changed what was asked. */
    edited?: true
  }[]
}

/** A pure function of the journal's fold: it may be forgotten at any time, and is made again. */
export function sessionOf(state: ThreadState, ttl: number): Session {
  const runs = onPath(state)
  const { agents, context } = agentsOf(state, runs)
  const inner = runs.flatMap((run) => innerPartsOf(run, state))
  return {
    session_id: state.clientId,
    created_at: time(state.createdAt),
    updated_at: time(state.updatedAt),
    ttl,
    agents: Object.fromEntries([...inner, ...agents]),
    shared_context: Object.fromEntries([...inner.flatMap(outputIn), ...context]),
    workflow_status: workflowStatus([...agents.values()].map(({ status }) => status)),
    approval_requests: [...state.asks.values()]
      .filter(({ ask }) => ask.kind === 'approval')
      .map((record) => ({
        approval_id: record.ask.askId,
        title: asDecided(record).title,
        status: record.answer?.state ?? 'pending',
        timeout_at: time(record.ask.deadline),
        ...(editOf(record) && { edited: true as const }),
      })),
  }
}

/** The status of the whole while a run is at work, when these are its agents. */
export function statusDuring(run: Run, state: ThreadState, parts: Record<string, Status>): string {
  const before = agentsOf(state, pathTo(state, run.parentRunId)).agents
  const all = new Map([...before].map(([name, { status }]) => [name, status]))
  all.set(run.agent, 'running')
  for (const [name, status] of Object.entries(parts)) all.set(name, status)
  return workflowStatus([...all.values()])
}

type Status = AgentSession['status']

/** How agents stand after these runs, and what each gave last. */
function agentsOf(state: ThreadState, runs: readonly Run[]) {
  const agents = new Map<string, AgentSession>()
  const context = new Map<string, unknown>()
  for (const run of runs) {
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
      for (const [key, output] of outputIn([name, part])) context.set(key, output)
    }
  }
  return { agents, context }
}

const outputIn = ([name, { outputs }]: [string, AgentSession]): [string, unknown][] =>
  outputs.length > 0 ? [[`${name}_output`, outputs.at(-1)]] : []

const idle = (): AgentSession => ({
  status: 'idle',
  outputs: [],
  errors: [],
  start_time: null,
  end_time: null,
})

/** The runs that are shown, the oldest first, and those that are still to end. */
function onPath(state: ThreadState): Run[] {
  const path = pathTo(state, state.head)
  const coming = [state.active, ...state.line].map((id) => state.runs.get(id ?? ''))
  return [...path, ...coming.filter((run) => run !== undefined && !path.includes(run))] as Run[]
}

function pathTo(state: ThreadState, last: string | null | undefined): Run[] {
  const path: Run[] = []
  for (let id = last; id; id = state.runs.get(id)?.parentRunId) {
    const run = state.runs.get(id)
    if (run) path.unshift(run)
  }
  return path
}

function statusOf({ status }: Run): AgentSession['status'] {
  if (status === 'completed') return 'completed'
  return status === 'failed' || status === 'cancelled' ? 'failed' : 'running'
}

/** What the run's own agent said last: what it gives, where that is said. */
export function outputOf(run: Run, state: ThreadState): unknown {
  const last = lastSaid(run, state)
  return last && (last.meta?.output ?? textOf(last))
}

/** The rule for the whole: all done, else something failed, else something at work. */
function workflowStatus(agents: readonly Status[]): Session['workflow_status'] {
  if (agents.length === 0) return 'initialized'
  if (agents.includes('failed')) return 'failed'
  return agents.includes('running') ? 'running' : 'completed'
}

const time = (at: number) => new Date(at).toISOString()
