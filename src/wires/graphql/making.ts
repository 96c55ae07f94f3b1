import type { RuntimeEvent } from './events.ts'

/** What of a message grows: a text, or the arguments of a call. */
export type Growing = 'text' | 'input'

export const startOf = (
  kind: Growing,
  id: string,
  messageId: string,
  name: string,
  at: number,
): RuntimeEvent =>
  kind === 'text'
    ? { type: 'TextMessageStart', messageId: id, at }
    : {
        type: 'ActionExecutionStart',
        actionExecutionId: id,
        actionName: name,
        parentMessageId: messageId,
        at,
      }

export const contentOf = (kind: Growing, id: string, text: string): RuntimeEvent =>
  kind === 'text'
    ? { type: 'TextMessageContent', messageId: id, content: text }
    : { type: 'ActionExecutionArgs', actionExecutionId: id, args: text }

export function endOf(kind: Growing, id: string, failed: string | undefined): RuntimeEvent {
  const how = failed === undefined ? {} : { failed }
  return kind === 'text'
    ? { type: 'TextMessageEnd', messageId: id, ...how }
    : { type: 'ActionExecutionEnd', actionExecutionId: id, ...how }
}

/**
 * A text that says nothing. React runs the calls that its list ends in, again and again as long as
 * nothing stands behind them: a response that says nothing more must say so.
 */
export const fullStop = (messageId: string, at: number): RuntimeEvent[] => [
  { type: 'TextMessageStart', messageId, at },
  { type: 'TextMessageEnd', messageId },
]
