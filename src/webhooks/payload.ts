import { asDecided, editOf } from '../core/edited.ts'
import type { Notice } from '../core/outbox.ts'

const isoTime = (at: number) => new Date(at).toISOString()

/** What is told outside: that there is something to decide and what, nothing of the chat around it. */
export function payloadOf({ about, record, tenant, owner, agent }: Notice, publicUrl?: string) {
  const { ask, answer, answeredBy, answeredAt, raisedAt } = record
  const settled = answer && {
    decided_at: isoTime(answeredAt ?? raisedAt),
    decided_by: answeredBy?.type === 'user' ? answeredBy.id : null,
  }
  return {
    type: `approval.${about}`,
    timestamp: isoTime(about === 'raised' ? raisedAt : (answeredAt ?? raisedAt)),
    data: {
      id: ask.askId,
      kind: ask.kind,
      state: answer?.state ?? 'pending',
      title: asDecided(record).title,
      tool: ask.tool ?? null,
      agent,
      tenant,
      owner,
      raised_at: isoTime(raisedAt),
      deadline: isoTime(ask.deadline),
      at_timeout: ask.atTimeout,
      ...settled,
      ...(editOf(record) && { edited: true }),
      link: `${publicUrl ?? ''}/approvals/${ask.askId}`,
    },
  }
}
