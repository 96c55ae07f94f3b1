import { z } from 'zod'

/** Events by which an orchestrator tells how its parts stand: a wire has them for its clients. */
export const agentMoved = 'workflow.agent'
export const workflowEnded = 'workflow.completed'

const status = z.enum(['running', 'completed', 'failed'])
export type AgentStatus = z.infer<typeof status>

const moved = z.object({
  agent: z.string(),
  /** The way to it, by which its messages and effects are known. */
  path: z.string(),
  step: z.number(),
  status,
  task: z.string().optional(),
  output: z.unknown().optional(),
  error: z.string().optional(),
  code: z.string().optional(),
  critical: z.boolean().optional(),
  /** It is tried once more. */
  again: z.boolean().optional(),
  /** How all agents of the same workflow stand now, by their names. */
  agents: z.record(z.string(), status).optional(),
})
export type AgentMoved = z.infer<typeof moved>

export interface WorkflowEnded {
  workflow: string
  account_id: unknown
  final_output: unknown
}

/** What wires read of events by their names: whoever says such an event must say this. */
export const eventShapes: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  [agentMoved, moved],
  [workflowEnded, z.looseObject({})],
  ['retry', z.looseObject({})],
])
