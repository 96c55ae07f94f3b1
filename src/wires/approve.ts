import { z } from 'zod'
import type { Answering } from '../core/asks.ts'
import { RuntimeError } from '../core/errors.ts'
import type { AskRecord } from '../core/state.ts'
import { digestOf } from '../lib/canonical.ts'

/** What a person may say to an approval, on every wire that has one of its own for it. */
export const decisionFields = {
  approved: z.boolean().optional(),
  reason: z.string().max(10_000).optional(),
  edited_input: z.record(z.string(), z.unknown()).optional(),
  remember: z.boolean().optional(),
  stop: z.boolean().optional(),
  /** Answer in place of the tool, or what was asked for: then as its schema says. */
  answer: z.union([z.string(), z.record(z.string(), z.unknown())]).optional(),
  /** An effect in doubt: what happened, and its result. */
  outcome: z.enum(['happened', 'did_not', 'skip']).optional(),
  result: z.string().optional(),
  newLimit: z.number().int().min(0).max(1_000_000).optional(),
  newStatus: z.boolean().optional(),
  /** Of the card that was decided on: what is asked must be the same. */
  digest: z.string().max(200).optional(),
}

type Said = z.infer<z.ZodObject<typeof decisionFields>>

export const saysSomething = ({ approved, stop, answer, outcome }: Said): boolean =>
  approved !== undefined || stop === true || answer !== undefined || outcome !== undefined

export const saysNothing = { path: ['approved'], message: 'is missing. Send true or false.' }

/** The request's words as a decision on this ask. */
export function decisionOn(askId: string, said: Said): Answering['decisions'][number] {
  const { edited_input: input, answer, result, ...rest } = said
  return {
    askId,
    decision: { ...rest, input, value: answer ?? result },
    named: { input: 'body.edited_input', value: 'body.answer' },
  }
}

/** What was decided, by whom. */
export function decisionJson({ answer, answeredBy, answeredAt }: AskRecord) {
  const { state, reason, outcome } = answer!
  return {
    approved: state === 'approved' || state === 'answered',
    state,
    by: answeredBy?.id,
    at: new Date(answeredAt ?? 0).toISOString(),
    ...(reason !== undefined && { reason }),
    ...(outcome && { outcome }),
  }
}

/** The answer to a decision: it is taken, or what was decided before it is told. */
export function decided(record: AskRecord, mine: boolean) {
  const approval_id = record.ask.askId
  const recorded = decisionJson(record)
  if (mine) return { status: 'processed', approval_id, ...recorded } as const
  throw new RuntimeError('ask_settled', undefined, { data: { approval_id, decision: recorded } })
}

/** The request's Idempotency-Key, with what it is about. */
export function keyOf(request: Request, about: unknown): { key?: { key: string; digest: string } } {
  const key = request.headers.get('idempotency-key')
  if (key === null) return {}
  if (key.length === 0 || key.length > 200) {
    const field = 'header.idempotency-key'
    throw new RuntimeError('invalid_request', `${field}: use 1 to 200 characters.`, { field })
  }
  return { key: { key, digest: digestOf(about) } }
}
