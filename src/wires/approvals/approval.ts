import { asDecided, editOf } from '../../core/edited.ts'
import type { AskRecord } from '../../core/state.ts'
import type { AskRow } from '../../core/store.ts'
import { decisionJson } from '../approve.ts'
import { cardJson } from '../card.ts'

const isoTime = (at: number) => new Date(at).toISOString()

/** A row of the inbox. Which chat it is of is for the owner to know: others see whose it is. */
export function approvalJson(row: AskRow, user: string) {
  const own = row.owner === user
  return {
    id: row.askId,
    kind: row.kind,
    state: row.state,
    title: row.title,
    tool: row.tool,
    agent: row.agent,
    owner: row.owner,
    raised_at: isoTime(row.raisedAt),
    deadline: isoTime(row.deadline),
    decided_at: row.settledAt === null ? null : isoTime(row.settledAt),
    decided_by: row.decidedBy,
    ...(row.edited && { edited: true }),
    ...(own && { chat_id: row.clientId, interaction_id: row.runId }),
  }
}

/**
 * One approval with all that there is to judge by: the contents of the ask, and nothing of the chat around it.
 * After an edit, `input` and `card` are those that ran, and the original ones are given beside them.
 */
export function wholeJson(row: AskRow, record: AskRecord, user: string) {
  const { ask, answer, first = ask } = record
  const decided = asDecided(record)
  const edit = editOf(record)
  return {
    ...approvalJson(row, user),
    // The journal may be ahead of the row that was read before it.
    ...(answer && { state: answer.state, decided_at: isoTime(record.answeredAt ?? 0) }),
    title: decided.title,
    input: decided.input ?? null,
    at_timeout: ask.atTimeout,
    card: cardJson(decided),
    ...(edit && {
      edited: true,
      original_input: edit.original ?? null,
      original_card: cardJson(first),
    }),
    ...(answer && { decision: decisionJson(record) }),
  }
}
