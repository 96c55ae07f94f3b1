import type { Extensions, MessageRole } from './shapes.ts'

/**
 * What a response is made of, in the words of CopilotKit's runtime: a telling makes them from the
 * journal, the encoder and the executor make responses of them.
 */
export type RuntimeEvent =
  | Exclude<ToldEvent, { type: 'AgentStateMessage' }>
  | StateEvent<string | LongText>

/** A text that is too long to serialize at once. It is made in steps, every time it is read. */
export interface LongText {
  steps(): AsyncIterable<string>
}

/** An event as a telling makes it: the JSON of a long state is made in steps when it is sent. */
export type ToldEvent =
  /** The agent's, unless `role` says otherwise: what somebody else said on the thread. */
  | {
      type: 'TextMessageStart'
      messageId: string
      role?: MessageRole
      parentMessageId?: string
      at: number
    }
  | { type: 'TextMessageContent'; messageId: string; content: string }
  /** `failed`: why it is not whole. `retracted`: nothing of it stands. */
  | { type: 'TextMessageEnd'; messageId: string; failed?: string; retracted?: true }
  | {
      type: 'ActionExecutionStart'
      actionExecutionId: string
      actionName: string
      parentMessageId?: string
      at: number
    }
  | { type: 'ActionExecutionArgs'; actionExecutionId: string; args: string }
  | { type: 'ActionExecutionEnd'; actionExecutionId: string; failed?: string; retracted?: true }
  | {
      type: 'ActionExecutionResult'
      actionExecutionId: string
      actionName: string
      result: string
      at: number
    }
  | StateEvent<string | object>
  /** `value` is JSON text, or plain text. */
  | { type: 'MetaEvent'; name: 'LangGraphInterruptEvent'; value: string }
  | {
      type: 'MetaEvent'
      name: 'CopilotKitLangGraphInterruptEvent'
      data: { value: string; messages: WholeMessage[] }
    }
  /** The last one. */
  | { type: 'ResponseEnd'; status: ResponseStatus }

interface StateEvent<State> {
  type: 'AgentStateMessage'
  id: string
  threadId: string
  agentName: string
  nodeName: string
  runId: string
  active: boolean
  running: boolean
  /** JSON text of an object. */
  state: State
  at: number
}

/** Messages that come whole, inside of an interrupt. */
export type WholeMessage =
  | { type: 'text'; id: string; content: string; role: MessageRole; at: number }
  | { type: 'action'; id: string; name: string; args: string; parentMessageId?: string; at: number }
  | {
      type: 'result'
      id: string
      actionExecutionId: string
      actionName: string
      result: string
      at: number
    }

export type ResponseStatus =
  | { code: 'Success' }
  | {
      code: 'Failed'
      reason: 'GUARDRAILS_VALIDATION_FAILED' | 'MESSAGE_STREAM_INTERRUPTED' | 'UNKNOWN_ERROR'
      details: object
    }

/** An answer to `generateCopilotResponse`: its head, and its events as they come. */
export interface Generated {
  threadId: string
  runId: string | null
  extensions: Extensions | null
  /** Batches in order, each as large as what waits; an empty one is a sign of life. Ends after `ResponseEnd`. */
  events(signal: AbortSignal): AsyncIterable<readonly RuntimeEvent[]>
}
