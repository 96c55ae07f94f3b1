import { editOf } from '../../core/edited.ts'
import type { AskRecord } from '../../core/state.ts'
import type { AgentStatus } from '../../core/workflow-events.ts'

/** What the steps share. It is the agent's state: readers see it change, and every leg begins with it. */
export interface SharedState {
  workflow: string
  /** The run it is of: the next one begins anew. */
  run_id: string
  session_id: string
  user_message: string
  status: 'running' | 'completed' | 'error'
  /** Steps begun. */
  step: number
  /** Names of agents whose steps are done, and of those whose steps failed. */
  agents_completed: string[]
  failed_agents: string[]
  errors: StepError[]
  /** By output key. */
  agents: Record<string, StepState>
  approval: ApprovalResult | null
  metrics: Metrics
  /** What the workflow began with, and the outputs. */
  [key: string]: unknown
}

const own: Record<keyof Known, true> = {
  ...{
    workflow: true,
    run_id: true,
    session_id: true,
    user_message: true,
    status: true,
    step: true,
  },
  ...{ agents_completed: true, failed_agents: true, errors: true, agents: true },
  ...{ approval: true, metrics: true },
}
type Known = { [K in keyof SharedState as string extends K ? never : K]: true }

/** Whether a key of it is not for outputs; names that every object has are not either. */
export const isOwn = (key: string): boolean => key in own

export interface StepState {
  agent: string
  step: number
  status: 'running' | 'waiting' | 'completed' | 'failed'
  /** Milliseconds since 1970, when it began to work without a pause. */
  started_at: number
  /** Times that it failed. */
  failures: number
  duration_ms: number
}

/** How its agents stand, by their names. Who waits for a person is at work. */
export const standing = ({ agents }: SharedState): Record<string, AgentStatus> =>
  Object.fromEntries(
    Object.values(agents).map(({ agent, status }) => {
      return [agent, status === 'waiting' ? 'running' : status]
    }),
  )

export interface StepError {
  agent: string
  /** For people; what is behind it is in the log. */
  error: string
  code: string
  critical: boolean
}

interface Metrics {
  started_at: number
  total_duration_ms: number
  agent_durations: Record<string, number>
  token_usage: Record<string, { input_tokens: number; output_tokens: number }>
}

export interface ApprovalResult {
  approval_id: string
  recommendation_id: string | null
  status: string
  approved_by: string | null
  rejected_by: string | null
  reason: string | null
  created_at: string
  timeout_at: string
  responded_at: string | null
  /** The approver changed what was put up for approval. */
  edited?: true
  original?: unknown
}

export function approvalOf(record: AskRecord, subject: unknown): ApprovalResult {
  const { ask } = record
  const { state = 'pending', reason } = record.answer ?? {}
  const by = record.answeredBy?.id ?? null
  const { recommendation_id = null } = (subject ?? {}) as { recommendation_id?: string }
  return {
    approval_id: ask.askId,
    recommendation_id,
    status: state,
    approved_by: state === 'approved' ? by : null,
    rejected_by: state === 'rejected' ? by : null,
    reason: reason ?? (state === 'rejected' ? 'No reason provided' : null),
    created_at: time(record.raisedAt),
    timeout_at: time(ask.deadline),
    responded_at: record.answeredAt === null ? null : time(record.answeredAt),
    ...(editOf(record) && { edited: true, original: subject }),
  }
}

const time = (at: number) => new Date(at).toISOString()

/** What the workflow gives, by the keys of its outputs. */
export function finalOutput(state: SharedState, keys: readonly string[]) {
  const { account_id = null, workflow, agents_completed, approval, errors, failed_agents } = state
  const { started_at: _, ...metrics } = state.metrics
  const results = Object.fromEntries(keys.map((key) => [key, state[key] ?? null]))
  const { status } = state
  const about = { status, account_id, workflow, agents_completed }
  return { ...about, results, approval, errors, metrics, failed_agents }
}

/** What it gives when a step failed that it cannot do without. */
export function failedOutput(state: SharedState, { agent, error, code }: StepError) {
  const message = `Critical agent ${agent} failed`
  return { status: 'error' as const, message, error, code, partial_results: state }
}
