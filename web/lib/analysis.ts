import type { RunStatus } from './shapes.ts'

/** The agent that analyses accounts, by the name that the server gives it. */
export const analyst = 'orchestrator'

/** What the steps of an analysis share, as far as the page reads it: the agent's state. */
export interface Shared {
  run_id?: string
  account_id?: string | null
  workflow?: string
  agents?: Record<string, StepRecord>
  errors?: { agent: string; error: string; critical: boolean }[]
  approval?: { status: string } | null
  metrics?: {
    token_usage?: Record<string, { input_tokens: number; output_tokens: number }>
  }
  account_snapshot?: Account
  historical_context?: Past
  recommendations?: Recommendation[]
}

interface StepRecord {
  agent: string
  status: 'running' | 'waiting' | 'completed' | 'failed'
  started_at: number
  duration_ms: number
  failures: number
}

export interface Account {
  account_id: string
  source: 'zoho' | 'sample'
  name: string
  industry: string | null
  owner: string | null
  status: string | null
  annual_revenue: number | null
  last_activity: string | null
  deals: { name: string; stage: string; amount: number | null; closing_date: string | null }[]
  notes: Note[]
}

export interface Note {
  at: string | null
  text: string
}

export interface Past {
  summary: string
  mentions: { session_id: string; at: string; role: string; excerpt: string }[]
  notes: Note[]
}

export interface Recommendation {
  recommendation_id?: string
  account_id: string
  action_type: string
  priority: 'high' | 'medium' | 'low'
  reasoning: string
  expected_impact: string
}

export type Face = 'waiting' | 'working' | 'asking' | 'done' | 'failed' | 'skipped' | 'stopped'
export type StepKey = 'account_snapshot' | 'historical_context' | 'recommendations'

/** One step of an analysis, however far it has come. */
export interface Station {
  key: StepKey
  agent: string
  title: string
  task: string
  face: Face
  /** When it began to work, as milliseconds since 1970. */
  startedAt: number | undefined
  /** Milliseconds, once it has ended. */
  took: number | undefined
  /** Times that it failed and was tried again. */
  failures: number
  error: { words: string; critical: boolean } | undefined
  tokens: { input_tokens: number; output_tokens: number } | undefined
}

const plan: readonly Pick<Station, 'key' | 'agent' | 'title' | 'task'>[] = [
  {
    ...{ key: 'account_snapshot', agent: 'zoho_scout', title: 'The account' },
    task: 'Looks the account up: what it is, its deals and notes.',
  },
  {
    ...{ key: 'historical_context', agent: 'memory_analyst', title: 'Its history' },
    task: 'Recalls what was said of it in your earlier chats.',
  },
  {
    ...{ key: 'recommendations', agent: 'recommendation_author', title: 'What to do' },
    task: 'Recommends what to do next, with reasons.',
  },
]

/** How the run that does the analysis stands; undefined before it has begun. */
export type RunFace = RunStatus | undefined

const isOver = (run: RunFace) => run === 'completed' || run === 'failed' || run === 'cancelled'

/** The steps of an analysis, all of them from its start. */
export function stationsOf(shared: Shared, run: RunFace): Station[] {
  return plan.map((step) => {
    const record = shared.agents?.[step.key]
    const ended = record?.status === 'completed' || record?.status === 'failed'
    const error = shared.errors?.find(({ agent }) => agent === step.agent)
    return {
      ...step,
      face: faceOf(record, run),
      startedAt: record?.started_at,
      took: ended ? record.duration_ms : undefined,
      failures: record?.failures ?? 0,
      error: error && { words: plain(error.error), critical: error.critical },
      tokens: shared.metrics?.token_usage?.[step.agent],
    }
  })
}

/** Without what the server puts before the words of a tool, for models to read. */
const plain = (words: string) => words.replace(/^Error executing tool: /, '')

function faceOf(record: StepRecord | undefined, run: RunFace): Face {
  if (!record) return isOver(run) ? 'skipped' : 'waiting'
  if (record.status === 'completed') return 'done'
  if (record.status === 'failed') return 'failed'
  if (isOver(run)) return run === 'failed' ? 'failed' : 'stopped'
  return record.status === 'waiting' || run === 'waiting' ? 'asking' : 'working'
}

/** How the decision on the recommendation stands, which ends an analysis. */
export function decisionOf(shared: Shared, run: RunFace, asked: boolean): Face {
  if (asked) return 'asking'
  const { approval } = shared
  if (approval) return approval.status === 'approved' ? 'done' : 'stopped'
  return isOver(run) ? 'skipped' : 'waiting'
}

/** retention_call: Retention call. */
export function actionWords(action: string): string {
  const words = action.replace(/[_-]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** What is put up for approval, where it is a recommendation. */
export function recommendationIn(input: unknown): Recommendation | undefined {
  const { recommendation } = (input ?? {}) as { recommendation?: Partial<Recommendation> | null }
  const { action_type, reasoning } = recommendation ?? {}
  return typeof action_type === 'string' && typeof reasoning === 'string'
    ? (recommendation as Recommendation)
    : undefined
}
