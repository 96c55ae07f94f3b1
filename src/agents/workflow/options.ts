import type { Agent, AgentContext, TaskEnd } from '../../core/agent.ts'
import type { RetryRule } from '../../core/retry.ts'
import type { SharedState } from './state.ts'

export interface WorkflowOptions {
  /** The agent's name. */
  name: string
  description?: string
  /** First messages that a page offers to users. */
  suggestions?: readonly string[]
  /** What the workflow is called in what it gives. Default: the agent's name. */
  workflow?: string
  /** Done one after another; what is in a group, side by side. */
  steps: readonly Stage[]
  /** Steps of a group at work at once. Default 3. */
  maxConcurrentAgents?: number
  /** False: what would be put up for approval is not. Default true. */
  enableApprovalWorkflow?: boolean
  /** What the shared state begins with, besides what the user said. */
  begin?(ctx: AgentContext): Record<string, unknown>
  /** What is said at the end. */
  summary?(state: SharedState): string
}

export type Stage = Step | Group | Approval

export interface Step {
  /** One of the configuration's by its name, or one of its own. */
  agent: string | Agent
  /** What it is told, in a sentence. */
  task?: string
  /** Keys of the shared state that it is given. Default: all that was there at the beginning. */
  inputKeys?: readonly string[]
  /** Where in the shared state its output goes. No two steps have the same; a slash leads to steps of steps. */
  outputKey: string
  /** The workflow ends when it fails. Default true. */
  required?: boolean
  /** Milliseconds that it may work without a pause; what people take to answer is not counted. */
  timeout?: number
  /** Tried again when it fails; what it had done by then is not done again. Default: not. */
  retry?: Partial<RetryRule>
  /** Its output, where that is not what it said last. */
  output?(end: TaskEnd): unknown
}

export interface Group {
  parallel: readonly Step[]
}

/** A person decides. Unless it is approved, what comes after it is left out. */
export interface Approval {
  /** The key of what is put up; nothing there, nothing to approve. Of a list, the first is. */
  approve: string
  title?(value: unknown, state: SharedState): string
  /** JSON Schema of what may be changed of the value when it is approved. Default: nothing. */
  schema?: unknown
  /** Milliseconds; default five minutes. */
  timeout?: number
  atTimeout?: 'reject' | 'approve' | 'stop'
  audience?: readonly string[]
}

export const isApproval = (stage: Stage): stage is Approval => 'approve' in stage

export const stepsOf = (stage: Step | Group): readonly Step[] =>
  'parallel' in stage ? stage.parallel : [stage]

export const nameOf = ({ agent }: Step): string => (typeof agent === 'string' ? agent : agent.name)

/** All steps, in order. */
export const allSteps = ({ steps }: WorkflowOptions): readonly Step[] =>
  steps.flatMap((stage) => (isApproval(stage) ? [] : stepsOf(stage)))
