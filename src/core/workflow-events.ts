/** Events by which an orchestrator tells how its parts stand: a wire has them for its clients. */
export const agentMoved = 'workflow.agent'
export const workflowEnded = 'workflow.completed'

export type AgentStatus = 'running' | 'completed' | 'failed'

export interface AgentMoved {
  agent: string
  /** The way to it, by which its messages and effects are known. */
  path: string
  step: number
  status: AgentStatus
  task?: string
  output?: unknown
  error?: string
  code?: string
  critical?: boolean
  /** It is tried once more. */
  again?: boolean
  /** How all agents of the same workflow stand now, by their names. */
  agents?: Record<string, AgentStatus>
}

export interface WorkflowEnded {
  workflow: string
  account_id: unknown
  final_output: unknown
}
