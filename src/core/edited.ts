import { canonical } from '../lib/canonical.ts'
import { approvalOf } from './asked.ts'
import { cardOf } from './card.ts'
import type { Bench } from './effects.ts'
import type { Ask } from './entries.ts'
import { asText, type CallPart, type Message } from './messages.ts'
import type { AskRecord, ThreadState } from './state.ts'

/** Arguments that the approver put in place of those that were asked for. */
export interface Edit {
  input: unknown
  original: unknown
}

/** Returns the edit of an approval, or undefined if it was approved unchanged or not approved. */
export function editOf(record: Pick<AskRecord, 'ask' | 'answer'> | undefined): Edit | undefined {
  const { ask, answer } = record ?? {}
  if (!ask || answer?.state !== 'approved' || answer.input === undefined) return undefined
  const input = approvedInput(ask, answer.input)
  const unchanged =
    ask.tool === undefined
      ? canonical(input) === canonical(ask.input)
      : answer.digest === ask.digest
  return unchanged ? undefined : { input, original: ask.input }
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

/**
 * Returns the edit of the call that this approval let run, or undefined. A call that was asked about again, see
 * `replaces`, is compared with its first ask, which has the arguments that the model wrote.
 */
export function editOfCall(
  { asks }: Pick<ThreadState, 'asks'>,
  askId: string | undefined,
): Edit | undefined {
  const record = asks.get(askId ?? '')
  if (record?.ask.replaces === undefined) return editOf(record)
  if (record.answer?.state !== 'approved') return undefined
  let first: Ask = record.ask
  for (let ask: Ask | undefined = first; ask; ask = asks.get(ask.replaces ?? '')?.ask) first = ask
  const input = record.answer.input ?? record.ask.input
  return canonical(input) === canonical(first.input) ? undefined : { input, original: first.input }
}

/** Returns the ask as it was carried out: title, card, arguments and digest are those of the edit. */
export function asDecided(record: Pick<AskRecord, 'ask' | 'answer'>): Ask {
  const { ask, answer } = record
  const edit = editOf(record)
  if (!edit || !answer) return ask
  const { preview: _, ...rest } = ask
  const card = answer.card ?? cardWithout(ask, edit)
  const digest = answer.digest ?? ask.digest
  return { ...rest, title: card.title, input: edit.input, card, ...(digest && { digest }) }
}

/** The card of an edit that was recorded by a version which kept no card with the answer. */
function cardWithout({ title, tool, card }: Ask, { input }: Edit) {
  const { agent, access, server, risk } = card ?? {}
  return cardOf({
    ...{ title, input, risk },
    ...(agent !== undefined && { agent }),
    ...(tool !== undefined && {
      tool: { name: tool, ...(access && { access }), ...(server !== undefined && { server }) },
    }),
  })
}

/** Edits of all calls of a thread, by call id. */
export function editsIn({ asks }: ThreadState): ReadonlyMap<string, Edit> {
  const edits = new Map<string, Edit>()
  for (const { ask, answer } of asks.values()) {
    if (ask.callId === undefined || answer?.state !== 'approved') continue
    const edit = editOfCall({ asks }, ask.askId)
    if (edit) edits.set(ask.callId, edit)
    else edits.delete(ask.callId) // asked about again, and approved as the model wrote it
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
