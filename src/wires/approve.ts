import { z } from 'zod'
import type { Answering } from '../core/asks.ts'
import { budgetOptions } from '../core/budget-answers.ts'
import { editOf } from '../core/edited.ts'
import { type Ask, outcomes } from '../core/entries.ts'
import { RuntimeError } from '../core/errors.ts'
import { rememberSchema } from '../core/grants.ts'
import type { Caller } from '../core/runtime.ts'
import type { AskRecord } from '../core/state.ts'
import { digestOf } from '../lib/canonical.ts'
import { budgetLimits } from './decisions.ts'
import { clientText } from './http.ts'
import { limitedRecord } from './limits.ts'

/** What a person may say to an approval, on every wire that has one of its own for it. */
export const decisionFields = {
  approved: z.boolean().optional(),
  reason: z.string().max(10_000).optional(),
  edited_input: limitedRecord.optional(),
  /** Further calls of the tool: true or 'chat', 'once', or for some minutes. */
  remember: rememberSchema.optional(),
  stop: z.boolean().optional(),
  /** Answer in place of the tool, or what was asked for: then as its schema says. */
  answer: z.union([clientText, limitedRecord]).optional(),
  /** An effect in doubt: what happened, and its result. */
  outcome: z.enum(outcomes).optional(),
  result: clientText.optional(),
  /** A spent budget: what is given anew, beside or in place of "approved". */
  newLimit: budgetLimits.calls.optional(),
  newStatus: z.boolean().optional(),
  newTokenLimit: budgetLimits.tokens.nullable().optional(),
  newMoneyLimit: budgetLimits.money.nullable().optional(),
  option: z.enum(budgetOptions).optional(),
  /** Of the card that was decided on: what is asked must be the same. */
  digest: z.string().max(200).optional(),
}

/** Any of these is a decision about a budget, and about nothing else. */
const budgetFields = [
  ...(['newLimit', 'newStatus', 'newTokenLimit', 'newMoneyLimit', 'option'] as const),
]

type Said = z.infer<z.ZodObject<typeof decisionFields>>

export const saysSomething = ({ approved, stop, answer, outcome, ...said }: Said): boolean =>
  approved !== undefined ||
  stop === true ||
  answer !== undefined ||
  outcome !== undefined ||
  budgetFields.some((field) => said[field] !== undefined)

export const saysNothing = { path: ['approved'], message: 'is missing. Send true or false.' }

/** The request's words as a decision on this ask. */
export function decisionOn({ askId, kind }: Ask, said: Said): Answering['decisions'][number] {
  refuseBudget(kind, said)
  if (said.result !== undefined && kind !== 'in_doubt')
    throw wrong('result', 'is for effects in doubt.')
  if (said.result !== undefined && said.answer !== undefined)
    throw wrong('answer', 'leave it out beside a result.')
  const { edited_input: input, answer, result, ...rest } = said
  return {
    askId,
    decision: { ...rest, input, value: answer ?? result },
    named: {
      input: 'body.edited_input',
      value: 'body.answer',
      limit: 'body.newLimit',
      all: 'body',
    },
  }
}

/** A new budget is no answer to another question: it must not count as a rejection of it. */
function refuseBudget(kind: Ask['kind'], said: Said): void {
  const field = budgetFields.find((one) => said[one] !== undefined)
  if (kind === 'budget' || field === undefined) return
  throw wrong(field, 'this question is not about a budget.')
}

function wrong(name: string, problem: string): RuntimeError {
  const field = `body.${name}`
  return new RuntimeError('invalid_request', `${field}: ${problem}`, { field })
}

/** What was decided, by whom. */
export function decisionJson(record: AskRecord) {
  const { answer, answeredBy, answeredAt } = record
  const { state, reason, outcome } = answer!
  return {
    approved: state === 'approved' || state === 'answered',
    state,
    by: answeredBy?.id,
    at: new Date(answeredAt ?? 0).toISOString(),
    ...(reason !== undefined && { reason }),
    ...(outcome && { outcome }),
    ...(editOf(record) && { edited: true }),
  }
}

/** The answer to a decision: it is taken, or what was decided before it is told. */
export function decided(record: AskRecord, mine: boolean) {
  const approval_id = record.ask.askId
  const recorded = decisionJson(record)
  if (mine) return { status: 'processed', approval_id, ...recorded } as const
  throw new RuntimeError('ask_settled', undefined, { data: { approval_id, decision: recorded } })
}

/** The id of a thread that a request with a key and without an id creates: the same request again finds it. */
export const idByKey = (
  prefix: string,
  { tenant, user }: Caller,
  key: { key: string } | undefined,
): string | undefined => key && `${prefix}_${digestOf([tenant, user, key.key]).slice(0, 30)}`

/** A message of a client's list: the content of a user message, or `other` for a message of the agent or of a tool. */
export type ListedMessage = { user: unknown } | 'other'

/**
 * The contents of the last user messages that follow each other in a client's list, for the digest of an
 * Idempotency-Key. Clients make new ids, append a repeated message to their list, or add what they received of the
 * answer before they send a request again. So the result has no ids, no repeated neighbours, and ignores what
 * follows the user messages.
 */
export function lastUserContents(list: readonly ListedMessage[]): unknown[] {
  const end = list.findLastIndex((one) => one !== 'other') + 1
  const start = list.slice(0, end).lastIndexOf('other') + 1
  const contents = list.slice(start, end).flatMap((one) => (one === 'other' ? [] : [one.user]))
  return contents.filter((one, i) => i === 0 || digestOf(one) !== digestOf(contents[i - 1]))
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
