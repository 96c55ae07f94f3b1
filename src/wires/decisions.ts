import { z } from 'zod'
import type { Decision } from '../core/asks.ts'
import { budgetOptions, mostCalls } from '../core/budget-answers.ts'
import { type Ask, outcomes } from '../core/entries.ts'
import { RuntimeError } from '../core/errors.ts'
import { rememberSchema } from '../core/grants.ts'
import type { Reconciled } from '../core/reconcile.ts'
import { textParser } from './body.ts'
import { refuseLargeValue } from './limits.ts'

const maybe = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((one) => one ?? undefined)

/** What may be granted at once. */
export const budgetLimits = {
  calls: z.number().int().min(0).max(mostCalls),
  tokens: z.number().int().min(1).max(1e12),
  money: z.number().positive().max(1e9),
}

/** What a person may say, in a resume's payload or as the result of a call that stands for it. */
const shapes = {
  approval: z.looseObject({
    approved: maybe(z.boolean()),
    answer: maybe(z.string()),
    editedArgs: maybe(z.record(z.string(), z.unknown())),
    digest: maybe(z.string()),
    reason: maybe(z.string()),
    remember: maybe(rememberSchema),
    stop: maybe(z.boolean()),
  }),
  in_doubt: z.looseObject({
    outcome: maybe(z.enum(outcomes)),
    approved: maybe(z.boolean()),
    result: maybe(z.string()),
    reason: maybe(z.string()),
    stop: maybe(z.boolean()),
  }),
  budget: z.looseObject({
    newLimit: maybe(budgetLimits.calls),
    actionLimit: maybe(budgetLimits.calls),
    newTokenLimit: budgetLimits.tokens.nullable().optional(),
    newMoneyLimit: budgetLimits.money.nullable().optional(),
    option: maybe(z.enum(budgetOptions)),
    newStatus: maybe(z.boolean()),
    isHitlEnabled: maybe(z.boolean()),
    approved: maybe(z.boolean()),
    reason: maybe(z.string()),
    stop: maybe(z.boolean()),
  }),
}

/** Returns the value of a JSON text, or undefined if the text is no JSON. `field` is its place in the request, for errors. */
export type AnswerReader = (text: string, field: string) => unknown

/** Returns a reader for the answers of one request. It throws for texts beyond the limits of a request's values. */
export function answerReader(): AnswerReader {
  const parse = textParser()
  return (text, field) => {
    const value = parse(text, field)
    refuseLargeValue(value, field)
    return value
  }
}

/** `named` is where it stands in the request, for errors. */
export function decisionFrom(
  ask: Ask,
  payload: unknown,
  named: string,
  readText: AnswerReader,
): Decision {
  const read = <T>(shape: z.ZodType<T>): T =>
    shaped(shape, typeof payload === 'string' ? readText(payload, named) : payload, named)
  switch (ask.kind) {
    case 'client_tool':
      return { value: payload ?? '' }
    case 'input':
      if (payload === undefined) throw wrong(named, 'is missing')
      return { value: payload }
    case 'approval': {
      const { editedArgs: input, answer: value, ...rest } = read(shapes.approval)
      if (rest.approved === undefined && !rest.stop && value === undefined) {
        throw wrong(`${named}.approved`, 'send true or false')
      }
      return pick({ ...rest, input, value })
    }
    case 'in_doubt': {
      const { result: value, ...rest } = read(shapes.in_doubt)
      if (rest.outcome === undefined && rest.approved === undefined && !rest.stop) {
        throw wrong(`${named}.outcome`, 'send happened, did_not or skip')
      }
      return pick({ ...rest, value })
    }
    case 'budget': {
      const said = read(shapes.budget)
      const newLimit = said.newLimit ?? said.actionLimit
      const newStatus = said.newStatus ?? said.isHitlEnabled
      return pick({ ...said, newLimit, newStatus })
    }
  }
}

const fields = [
  ...(['approved', 'reason', 'input', 'remember', 'stop'] as const),
  ...(['newTokenLimit', 'newMoneyLimit', 'option'] as const),
  ...(['value', 'outcome', 'newLimit', 'newStatus', 'digest'] as const),
]

/** Only what a decision is made of, and only what was said. */
function pick(said: Decision): Decision {
  const all = fields.map((field) => [field, said[field]] as const)
  return Object.fromEntries(all.filter(([, value]) => value !== undefined))
}

function shaped<T>(shape: z.ZodType<T>, payload: unknown, named: string): T {
  const parsed = shape.safeParse(payload)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  if (issue.path.length === 0) throw wrong(named, 'send a JSON object')
  throw wrong([named, ...issue.path].join('.'), issue.message)
}

const wrong = (field: string, problem: string) =>
  new RuntimeError('invalid_request', `${field}: ${problem}`, { field })

/** Which of the two is meant is not for us to say. */
export function refuseContradiction({ contradicts }: Reconciled): void {
  if (!contradicts) return
  const { id, callId } = contradicts
  const problem =
    callId === undefined
      ? `another message of this chat has the id ${id}. Give it another.`
      : `the result of ${callId} is there twice, and not alike. Send one of them.`
  throw new RuntimeError('invalid_request', `messages.${id}: ${problem}`, {
    field: `messages.${id}`,
  })
}
