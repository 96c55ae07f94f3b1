/** What the runtime answers, as far as the page reads it. */
export interface AgentInfo {
  name: string
  description: string
  /** First messages that the agent offers. */
  suggestions?: string[]
  capabilities?: { identity?: { name?: string } }
}

export type RunStatus =
  | 'queued'
  | 'running'
  | 'waiting'
  | 'cancelling'
  | 'completed'
  | 'failed'
  | 'cancelled'

export interface ThreadRow {
  id: string
  name: string | null
  agentId: string
  archived: boolean
  status: 'idle' | 'running' | 'waiting'
  updatedAt: string
}

export interface Standing {
  seq: number
  head: string | null
  status: RunStatus | 'idle'
  runId: string | null
  queued: number
  name: string | null
  archived: boolean
}

/** A turn that has other branches, did not end well, has an ask that no call shows, or is the last. */
export interface Turn {
  runId: string
  agent: string
  status: RunStatus
  messageId: string | null
  lastMessageId: string | null
  branches: string[]
  error: RunError | null
}

export interface RunError {
  code: string
  message: string
  /** The message is not the default one of its code. */
  specific?: true
}

export type CallState = 'running' | 'done' | 'failed' | 'unknown'

export interface CallStanding {
  state: CallState
  startedAt?: number
  endedAt?: number
  /** It did something, or may have, that no other version of the chat undoes. */
  stays?: true
  /** No approval was needed, because of a permission that was given earlier. */
  grantId?: string
}

export type AskKind = 'approval' | 'in_doubt' | 'budget' | 'input' | 'client_tool'
export type AskState = 'pending' | 'approved' | 'rejected' | 'answered' | 'timeout' | 'cancelled'

interface AskBase {
  id: string
  runId: string
  kind: AskKind
  title: string
  tool?: string
  callId?: string
  /** The asks of one step are answered before it goes on. */
  step: string
}

export interface AskSummary extends AskBase {
  raisedAt: number
  deadline: number
  /** Who may decide, where the policy says so. */
  audience?: string[]
}

export interface Actor {
  type: 'user' | 'agent' | 'system'
  id: string
  wire?: string
}

/** How a question ended. */
export interface Decided extends AskBase {
  state: Exclude<AskState, 'pending'>
  by: Actor | null
  at: number | null
  reason?: string
  outcome?: Outcome
  /** The approver changed the arguments: `input` is what ran. */
  edited?: true
  input?: unknown
  originalInput?: unknown
  remember?: true | { minutes: number }
}

export interface Outline extends Standing {
  id: string
  agent: string
  turns: Turn[]
  calls: Record<string, CallStanding>
  asks: AskSummary[]
  decided: Decided[]
  governor: Budget
}

export type Outcome = 'happened' | 'did_not' | 'skip' | 'check'

/** What a person says to a question. */
export interface Decision {
  approved?: boolean
  reason?: string
  edited_input?: unknown
  remember?: 'chat' | { minutes: number }
  stop?: true
  answer?: unknown
  outcome?: Outcome
  result?: string
  newLimit?: number
  newStatus?: boolean
  option?: string
  digest?: string
}

export interface Approval {
  id: string
  kind: Exclude<AskKind, 'client_tool'>
  state: AskState
  title: string
  tool: string | null
  agent: string
  owner: string
  raised_at: string
  deadline: string
  decided_at: string | null
  decided_by: string | null
  /** The approver changed the arguments: the title is of those that ran. */
  edited?: boolean
  /** Of the reader's own chats only. */
  chat_id?: string
  interaction_id?: string
}

export interface Shown {
  text: string
  /** How many characters are left out. */
  cut?: number
}

export interface Card {
  title: string
  tool?: string
  server?: string
  agent?: string
  target?: string
  arguments?: string[]
  risk?: { level: 'low' | 'medium' | 'high'; why: string }
  preview?: Shown & { kind: 'diff' | 'code' | 'text' }
  said?: Shown
  began_at?: string
  rule?: string
  audience?: string[]
  outcomes?: Outcome[]
  digest?: string
  schema?: unknown
  /** What is no call of a tool, and can be changed all the same. */
  editable?: boolean
  evidence?: unknown
}

export type AtTimeout = 'reject' | 'approve' | 'stop'

export interface WholeApproval extends Approval {
  input: unknown
  at_timeout: AtTimeout
  card: Card
  /** With `edited`: the original ones. `input` and `card` are those that ran. */
  original_input?: unknown
  original_card?: Card
  decision?: { state: AskState; by?: string; at: string; reason?: string; outcome?: Outcome }
}

export interface Verdict {
  verdict: 'ok' | 'broken' | 'unchained' | 'erased'
  problems: { seq: number; message: string }[]
}

export interface Grant {
  id: string
  tool: string
  server?: string
  rule?: string
  givenBy: string
  givenAt: string
  until?: string
  inForce: boolean
}

export interface Measure {
  limit: number | null
  used: number
  total: number
  hard?: boolean
  why?: string
}

export interface Budget {
  isHitlEnabled: boolean
  actionLimit: number
  actionsUsed: number
  remaining: number | null
  total: number
  tokens: Measure
  money: Measure
  cheaper?: boolean
}

export interface JournalEntry {
  seq: number
  at: string
  kind: string
  leg?: string
  actor: Actor
  body: unknown
  size: number
}

export interface JournalPage {
  entries: JournalEntry[]
  next_after: number | null
}
