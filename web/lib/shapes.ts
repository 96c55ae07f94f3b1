/** What the runtime answers, as far as the page reads it. */
export interface AgentInfo {
  name: string
  description: string
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

/** A turn that has other branches, did not end well, or is the last. */
export interface Turn {
  runId: string
  agent: string
  status: RunStatus
  messageId: string | null
  lastMessageId: string | null
  branches: string[]
  error: { code: string; message: string } | null
}

export type CallState = 'running' | 'done' | 'failed' | 'unknown'

export interface CallStanding {
  state: CallState
  startedAt?: number
  endedAt?: number
}

export interface AskSummary {
  id: string
  runId: string
  kind: 'approval' | 'in_doubt' | 'budget' | 'input' | 'client_tool'
  title: string
  tool?: string
  callId?: string
  deadline: number
}

export interface Outline extends Standing {
  id: string
  agent: string
  turns: Turn[]
  calls: Record<string, CallStanding>
  asks: AskSummary[]
}
