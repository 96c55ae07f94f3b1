import type { AgentContext } from '../../core/agent.ts'
import { asked } from './asked.ts'
import { changeable, type Recommendation } from './recommendation-author.ts'

export interface AccountAnalysisOptions {
  enableApprovalWorkflow?: boolean
  maxConcurrentAgents?: number
  /** Milliseconds that a person has to approve. Default five minutes. */
  approvalTimeout?: number
  /** Steps that it can do without. */
  optional?: readonly ('zoho_scout' | 'memory_analyst' | 'recommendation_author')[]
}

/** The analysis of an account as a workflow: see `workflow`. */
export function accountAnalysis(options: AccountAnalysisOptions = {}) {
  const { optional = [], approvalTimeout: timeout = 300_000, ...rest } = options
  const required = (agent: (typeof optional)[number]) => !optional.includes(agent)
  return {
    name: 'orchestrator',
    description: 'Analyses an account: looks it up, recalls its history, recommends what to do',
    workflow: 'account_analysis',
    begin: (ctx: AgentContext) => ({ account_id: asked(ctx).account_id ?? null }),
    ...rest,
    steps: [
      {
        agent: 'zoho_scout',
        task: 'Look up the account.',
        inputKeys: ['account_id', 'session_id'],
        outputKey: 'account_snapshot',
        required: required('zoho_scout'),
      },
      {
        agent: 'memory_analyst',
        task: 'Recall the history of the account.',
        inputKeys: ['account_id', 'account_snapshot'],
        outputKey: 'historical_context',
        required: required('memory_analyst'),
      },
      {
        agent: 'recommendation_author',
        task: 'Recommend what to do.',
        inputKeys: ['account_id', 'account_snapshot', 'historical_context'],
        outputKey: 'recommendations',
        required: required('recommendation_author'),
      },
      {
        approve: 'recommendations',
        timeout,
        schema: changeable,
        title: (value: unknown) => {
          const { account_id, action_type, priority } = value as Recommendation
          return `Approve ${action_type} for ${account_id} (priority ${priority})?`
        },
      },
    ],
  }
}
