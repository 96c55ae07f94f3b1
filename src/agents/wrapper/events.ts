/** What an object that tells of its work in events looks like, in either spelling. */
export interface EventAgent {
  execute_with_events?(context: WrappedContext): AsyncIterable<WrappedEvent>
  executeWithEvents?(context: WrappedContext): AsyncIterable<WrappedEvent>
  /** Goes on after an answer; without it, the object is run again from its start. */
  resume_with_events?(context: WrappedContext): AsyncIterable<WrappedEvent>
}

export interface WrappedEvent {
  event: string
  data?: Record<string, unknown>
}

/** What the object is given. */
export interface WrappedContext {
  session_id: string
  run_id: string
  messages: { role: string; content: string }[]
  /** What a workflow or a client gave besides. */
  context: Record<string, unknown>
  /** The answers so far, in the order in which it asked; the last one also by itself. */
  approval_responses: ApprovalResponse[]
  approval_response: ApprovalResponse | null
  signal: AbortSignal
}

export interface ApprovalResponse {
  status: string
  reason: string | null
  value?: unknown
}
