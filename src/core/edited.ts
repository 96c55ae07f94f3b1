import { canonical } from '../lib/canonical.ts'
import { approvalOf } from './asked.ts'
import { cardOf } from './card.ts'
import type { Bench } from './effects.ts'
import type { Answer, Ask } from './entries.ts'
import { asText, type CallPart, type Message } from './messages.ts'
import type { AskRecord, ThreadState } from './state.ts'

/** Arguments that the approver put in place of those that were asked for. */
export interface Edit {
  input: unknown
  original: unknown
}

type Decided = Pick<AskRecord, 'ask' | 'answer' | 'first'>

/**
 * Returns the edit of an approval, or undefined if it was approved unchanged or not approved. An approval that
 * replaces another one is compared with the first ask of the call, which has the arguments that the model wrote.
 */
export function editOf(record: Decided | undefined): Edit | undefined {
  const { ask, answer, first } = record ?? {}
  if (!ask || answer?.state !== 'approved') return undefined
  const change = changeOf(ask, answer)
  if (!first) return change && { ...change, original: ask.input }
  const { input } = change ?? ask
  const unchanged = canonical(input) === canonical(first.input)
  return unchanged ? undefined : { input, original: first.input }
}

/** Returns the input of an approval that differs from the input of its ask. */
function changeOf(ask: Ask, answer: Answer): { input: unknown } | undefined {
  if (answer.input === undefined) return undefined
  const input = approvedInput(ask, answer.input)
  const unchanged =
    ask.tool === undefined
      ? canonical(input) === canonical(ask.input)
      : answer.digest === ask.digest
  return unchanged ? undefined : { input }
}

/** Returns the input that an edit of this ask approves. A partial edit is completed from the input of the ask. */
export function approvedInput(ask: Pick<Ask, 'input' | 'partialEdit'>, edit: unknown): unknown {
  return ask.partialEdit ? withChanges(ask.input, edit) : edit
}

/**
 * Returns what a workflow puts up for approval, with the changes of an edit: fields that the edit leaves out keep
 * their values. A recommendation that is not an object is replaced. A completed edit gives the same again.
 */
export function withChanges(input: unknown, edit: unknown): { recommendation: unknown } {
  const before = isRecord(input) ? input : {}
  const { recommendation: was, recommendations: all } = before
  const changes = isRecord(edit) ? edit.recommendation : undefined
  const recommendation = isRecord(was) && isRecord(changes) ? { ...was, ...changes } : changes
  const others = Array.isArray(all) && { recommendations: [recommendation, ...all.slice(1)] }
  return { ...before, recommendation, ...others }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the edit of the call that this approval let run, or undefined. */
export const editOfCall = (
  { asks }: Pick<ThreadState, 'asks'>,
  askId: string | undefined,
): Edit | undefined => editOf(asks.get(askId ?? ''))

/** Returns the ask as it was carried out: title, card, arguments and digest are those of the edit. */
export function asDecided({ ask, answer }: Pick<AskRecord, 'ask' | 'answer'>): Ask {
  const change = answer?.state === 'approved' ? changeOf(ask, answer) : undefined
  if (!change || !answer) return ask
  const { preview: _, ...rest } = ask
  const card = answer.card ?? cardWithout(ask, change)
  const digest = answer.digest ?? ask.digest
  return { ...rest, title: card.title, input: change.input, card, ...(digest && { digest }) }
}

/** The card of an edit that was recorded by a version which kept no card with the answer. */
function cardWithout({ title, tool, card }: Ask, { input }: Pick<Edit, 'input'>) {
  const { agent, access, server, risk } = card ?? {}
  return cardOf({
    ...{ title, input, risk },
    ...(agent !== undefined && { agent }),
    ...(tool !== undefined && {
      tool: { name: tool, ...(access && { access }), ...(server !== undefined && { server }) },
    }),
  })
}

/** Edits of all calls of a thread, by call id. The newest approval of a call decides whether it has an edit. */
export function editsIn({ asks }: Pick<ThreadState, 'asks'>): ReadonlyMap<string, Edit> {
  const edits = new Map<string, Edit>()
  for (const record of asks.values()) {
    const { kind, callId } = record.ask
    if (kind !== 'approval' || callId === undefined) continue
    const edit = editOf(record)
    if (edit) edits.set(callId, edit)
    else edits.delete(callId) // asked about again: an edit of the earlier approval did not run
  }
  return edits
}

/** A result that says which arguments ran: the model is told, because its own message has the original ones. */
export function withEdit(result: Message, edit: Edit | undefined): Message {
  return edit ? { ...result, meta: { ...result.meta, ranWith: asText(edit.input) } } : result
}

/** Returns the edit of a call that has begun, or undefined. */
export function editOfBegun({ callId }: CallPart, bench: Bench): Edit | undefined {
  const approval = approvalOf(bench, callId)
  const edit = editOfCall(bench.leg.thread.state, approval?.ask.askId)
  if (!edit) return undefined
  const { run, thread } = bench.leg
  const begun = run.effectIds.some(
    (id) => thread.state.effects.get(id)?.intent.askId === approval?.ask.askId,
  )
  return begun ? edit : undefined
}
