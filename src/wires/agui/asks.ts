import { z } from 'zod'
import { budgetOptions, mostCalls } from '../../core/budget-answers.ts'
import { editOf } from '../../core/edited.ts'
import type { Answer, Ask } from '../../core/entries.ts'
import { rememberSchema } from '../../core/grants.ts'
import type { AskRecord } from '../../core/state.ts'
import { outcomesOf, shownAs, standInCall, whoAsks } from '../asks.ts'
import { type AguiMessage, whenRead } from './messages.ts'

/** What the message is called that holds a call which stands for a question. */
export const standInSuffix = '-call'

/** The same in a list of messages, with its answer once there is one. */
export function standInMessages(record: AskRecord, tools: ReadonlySet<string>): AguiMessage[] {
  const { ask, answer } = record
  if (ask.kind === 'client_tool' || shownAs(ask, tools) === undefined) return []
  const { askId: id } = ask
  const name = shownAs(ask, tools)!
  const call = whenRead({ name, arguments: '' }, 'arguments', () => {
    return standInCall(record, tools).arguments
  })
  const toolCalls = [{ id, type: 'function' as const, function: call }]
  const asked: AguiMessage = { id: id + standInSuffix, role: 'assistant', content: '', toolCalls }
  if (!answer) return [asked]
  const { messageId = `${id}-answer` } = answer
  const decided: AguiMessage = { id: messageId, role: 'tool', toolCallId: id }
  return [asked, whenRead(decided, 'content', () => decisionText(record, answer))]
}

function decisionText(record: AskRecord, { state, reason }: Answer): string {
  const edit = editOf(record)
  return JSON.stringify({
    state,
    by: record.answeredBy?.id,
    ...(reason && { reason }),
    ...(edit && { edited: true, input: edit.input }),
  })
}

const reasons: Record<Ask['kind'], string> = {
  approval: 'confirmation',
  in_doubt: 'handrail:in_doubt',
  budget: 'handrail:budget',
  input: 'input_required',
  client_tool: 'handrail:client_tool',
}

export function interruptOf({ ask }: AskRecord, protocol: '0' | '1') {
  const { askId, kind, title, tool, input, callId, deadline, schema, preview, evidence } = ask
  const { card, rule, audience } = ask
  const fields = { ...(tool !== undefined && { tool }), ...(preview !== undefined && { preview }) }
  return {
    id: askId,
    reason: reasons[kind],
    message: title,
    ...(callId !== undefined && { toolCallId: callId }),
    responseSchema: responseSchema(ask),
    // Clients of the older dialect refuse even to cancel after it; the server keeps the deadline.
    ...(protocol === '1' && { expiresAt: new Date(deadline).toISOString() }),
    metadata: {
      kind,
      ...whoAsks(ask),
      ...fields,
      ...(input !== undefined && { input }),
      ...(schema !== undefined && kind === 'approval' && { inputSchema: schema }),
      ...(evidence !== undefined && { evidence }),
      ...(card && { card }),
      ...(rule !== undefined && { rule }),
      ...(audience && { audience }),
      ...(ask.effectId !== undefined && { effectId: ask.effectId }),
      deadline: new Date(deadline).toISOString(),
    },
  }
}

const { $schema: _, ...remember } = z.toJSONSchema(rememberSchema)

function responseSchema(ask: Ask): object {
  const { kind, schema } = ask
  const text = { type: 'string' }
  const yes = { type: 'boolean' }
  if (kind === 'budget') {
    const newLimit = { type: 'integer', minimum: 0, maximum: mostCalls }
    const option = { enum: [...budgetOptions] }
    return { type: 'object', properties: { newLimit, newStatus: yes, option, stop: yes } }
  }
  if (kind === 'in_doubt') {
    const outcome = { enum: outcomesOf(ask) }
    return { type: 'object', properties: { outcome, result: text }, required: ['outcome'] }
  }
  if (kind !== 'approval') return (schema as object | undefined) ?? {}
  const properties = { approved: yes, reason: text, remember, stop: yes, answer: text }
  const editedArgs = (schema as object | undefined) ?? { type: 'object' }
  return { type: 'object', properties: { ...properties, editedArgs }, required: ['approved'] }
}
