import { fenced, readFenced } from '../../lib/fenced.ts'
import { type Line, say } from './line.ts'

interface Given {
  account_id?: string
  account_snapshot?: {
    name?: string
    status?: string
    deals?: { name: string; stage: string; amount: number | null }[]
  } | null
  historical_context?: { mentions?: unknown[] } | null
}

const plays: Record<string, [action: string, priority: string, impact: string]> = {
  'at risk': ['retention_call', 'high', 'Keeps the account from leaving this quarter.'],
  dormant: ['win_back_email', 'medium', 'Reopens the talk after a long silence.'],
  new: ['onboarding_session', 'medium', 'Gets the first use out of the way early.'],
}

/** Plays the author of recommendations: by a table, the same for the same account. */
export function recommend(asked: string): Line[] {
  const given = (readFenced(asked) ?? {}) as Given
  const { account_id = 'unknown', account_snapshot: account, historical_context: past } = given
  const name = account?.name ?? account_id
  const [action_type, priority, expected_impact] = plays[account?.status ?? ''] ?? [
    'account_review',
    'low',
    'Keeps what is known of the account up to date.',
  ]
  const mentions = past?.mentions?.length ?? 0
  const known =
    mentions === 0 ? 'It was not spoken of before.' : `It was spoken of ${mentions} times.`
  const first = {
    account_id,
    action_type,
    priority,
    reasoning: `${name} is ${account?.status ?? 'not in the snapshot'}. ${known}`,
    expected_impact,
  }
  const deal = account?.deals?.find(({ stage }) => !stage.startsWith('Closed'))
  const second = deal && {
    account_id,
    action_type: 'deal_follow_up',
    priority: 'medium',
    reasoning: `The deal ${deal.name} is at ${deal.stage}.`,
    expected_impact: `Moves a deal of ${deal.amount ?? 'unknown'} forward.`,
  }
  return [say(fenced(second ? [first, second] : [first]))]
}
