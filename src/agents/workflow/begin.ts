import type { AgentContext } from '../../core/agent.ts'
import { textOf } from '../../core/messages.ts'
import { allSteps, nameOf, type Step, type WorkflowOptions } from './options.ts'
import type { SharedState } from './state.ts'

/** What the last leg of this run left, or the beginning. What failed is tried once more. */
export function stateFor(options: WorkflowOptions, ctx: AgentContext): SharedState {
  const left = ctx.state() as SharedState | undefined
  if (left?.run_id === ctx.runId) {
    const state = structuredClone(left)
    const critical = new Set(state.errors.filter((one) => one.critical).map(({ agent }) => agent))
    state.errors = state.errors.filter((one) => !one.critical)
    state.failed_agents = state.failed_agents.filter((agent) => !critical.has(agent))
    return state
  }
  const last = ctx.messages().findLast(({ role }) => role === 'user')
  const { session_id = ctx.threadId } = ctx.options.forwarded ?? {}
  return {
    ...options.begin?.(ctx),
    workflow: options.workflow ?? options.name,
    run_id: ctx.runId,
    session_id: String(session_id),
    user_message: last ? textOf(last) : '',
    status: 'running',
    step: 0,
    agents_completed: [],
    failed_agents: [],
    errors: [],
    agents: {},
    approval: null,
    metrics: {
      started_at: ctx.clock.now(),
      total_duration_ms: 0,
      agent_durations: {},
      token_usage: {},
    },
  }
}

/** What is said at the end, where the workflow has no words of its own for it. */
export function summaryOf(state: SharedState): string {
  const { workflow, agents_completed: done, errors, approval } = state
  const failed = errors.map(({ agent, error }) => `${agent} failed: ${error}`)
  const lines = [
    `Workflow ${workflow} ${state.status === 'error' ? 'stopped' : 'is done'}.`,
    done.length > 0 ? `Done: ${done.join(', ')}.` : 'Nothing was done.',
    ...failed,
    ...(approval ? [`Approval: ${approval.status}.`] : []),
  ]
  return lines.join('\n')
}

/** What steps are called where work is shown by steps: by their agents, one of several also by what it gives. */
export function namesOf(options: WorkflowOptions): Map<Step, string> {
  const all = allSteps(options)
  const several = (name: string) => all.filter((one) => nameOf(one) === name).length > 1
  return new Map(
    all.map((step) => {
      const name = nameOf(step)
      return [step, several(name) ? `${name}:${step.outputKey}` : name]
    }),
  )
}
