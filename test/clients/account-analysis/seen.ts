/** What a user of a wire can know of the account analysis, whatever its client calls it. */
export interface Seen {
  end: 'waiting' | 'completed' | 'failed'
  /** How each agent stands. */
  agents: Record<string, string>
  completed: string[]
  errors: { agent: string; error: string; code: string; critical: boolean }[]
  /** The name in the account's snapshot: of what the steps gave, all or in part. */
  account: string | undefined
  /** What is put up for approval. */
  recommendation: string | undefined
  approval: { status: string; reason: string | null; by: string | null } | undefined
  /** Why it failed. */
  failure: string | undefined
  /** What was said, line by line. */
  lines: string[]
}

/** One client with a thread, on one wire. Each call reads until the run waits or is over. */
export interface Driver {
  start(account: string): Promise<Seen>
  decide(approved: boolean, reason?: string): Promise<Seen>
  /** Reads on, after something happened that was not its doing. */
  follow(): Promise<Seen>
  /** Comes to a thread that others began. */
  join(): Promise<Seen>
}

// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
export type Json = any

/** The state that orchestrators share with their clients. */
export function fromState(state: Json) {
  const agents: Record<string, string> = {}
  for (const { agent, status } of Object.values<Json>(state?.agents ?? {})) agents[agent] = status
  return {
    agents,
    completed: (state?.agents_completed ?? []) as string[],
    errors: (state?.errors ?? []) as Seen['errors'],
    account: state?.account_snapshot?.name as string | undefined,
    approval: approvalOf(state?.approval),
  }
}

/** What a workflow gives at its end. */
export function fromOutput(output: Json) {
  const { results, partial_results: partial } = output ?? {}
  const { agents_completed, errors, approval } = partial ?? output ?? {}
  return {
    completed: (agents_completed ?? []) as string[],
    errors: (errors ?? []) as Seen['errors'],
    account: (partial ?? results)?.account_snapshot?.name as string | undefined,
    approval: approvalOf(approval),
  }
}

function approvalOf(approval: Json): Seen['approval'] {
  if (!approval) return undefined
  const { status, reason, approved_by, rejected_by } = approval
  return { status, reason, by: approved_by ?? rejected_by }
}
