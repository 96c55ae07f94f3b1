import type { Answering } from '../../core/asks.ts'
import type { Ask } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { textOf } from '../../core/messages.ts'
import type { Reconciled } from '../../core/reconcile.ts'
import type { AskRecord, ThreadState } from '../../core/state.ts'
import { digestOf } from '../../lib/canonical.ts'
import { decisionFrom } from '../decisions.ts'
import { interruptValue } from './interrupts.ts'
import type { GenerateInput, MetaEventInput } from './shapes.ts'

/** What a request answers: by results of actions, by actions that stand for questions, by resuming. */
export function answersIn(
  state: ThreadState,
  { metaEvents }: GenerateInput,
  { results, said }: Reconciled,
): Answering['decisions'] {
  const decisions: Answering['decisions'][number][] = []
  for (const { askId, message } of results) {
    const { ask } = state.asks.get(askId)!
    const named = `messages.${message.id}.resultMessage.result`
    try {
      const decision = { ...decisionFrom(ask, textOf(message), named), messageId: message.id }
      decisions.push({ askId, decision, named: { input: `${named}.editedArgs`, value: named } })
    } catch (error) {
      // Whoever types on passes over the card: what it said then need not be understood.
      if (said.length === 0) throw error
    }
  }
  for (const [i, meta] of (metaEvents ?? []).entries()) {
    if (!meta.response) continue // shown, and not answered
    const record = askedBy(state, meta)
    if (!record) throw unknown(i)
    if (showsOther(record.ask, meta)) throw new RuntimeError('ask_differs')
    if (record.answer) continue // clients may send what they answered again, with the next message
    const named = `metaEvents.${i}.response`
    const decision = decisionFrom(record.ask, spoken(record.ask, meta.response), named)
    const parts = { input: `${named}.editedArgs`, value: named }
    decisions.push({ askId: record.ask.askId, decision, named: parts })
  }
  return decisions
}

/** The question that was shown with this value: one that is open, else the last that was. */
function askedBy(state: ThreadState, { value }: MetaEventInput): AskRecord | undefined {
  const records = [...state.asks.values()].filter(({ ask }) => ask.kind !== 'client_tool')
  const shown = records.filter(({ ask }) => isValueOf(ask, value))
  const open = (one: AskRecord) => !one.answer && one.runId === state.active
  return shown.find(open) ?? shown.at(-1)
}

/** Clients may have parsed the value and written it again. */
function isValueOf(ask: Ask, value: string): boolean {
  const own = interruptValue(ask)
  if (own === value) return true
  const [parsed, known] = [parse(value), parse(own)] as Record<string, unknown>[]
  if (!parsed || !known) return false
  if (ask.kind !== 'input') return parsed.askId === ask.askId
  return JSON.stringify(parsed) === JSON.stringify(known)
}

/** The question that a value names, if it names one; else the value is its name. */
export function nameIn(value: string): string {
  const { askId } = Object(parse(value)) as { askId?: unknown }
  return typeof askId === 'string' ? askId : value
}

/** The right question, with other arguments than were shown. */
function showsOther({ kind, input }: Ask, { value }: MetaEventInput): boolean {
  const shown = parse(value)
  if (kind === 'input' || typeof shown !== 'object' || shown === null) return false
  return 'input' in shown && digestOf(shown.input) !== digestOf(input)
}

/** What the hooks' `resolve` is given is often a word, or a bare truth. */
function spoken(ask: Ask, response: string): unknown {
  const value = parse(response)
  if (ask.kind === 'input') return value === undefined ? response : value
  if (typeof value === 'object' && value !== null) return value
  const word = String(value ?? response)
    .trim()
    .toLowerCase()
  // Whether it happened and whether it may happen are not the same yes.
  if (ask.kind === 'in_doubt') return { outcome: word }
  if (yes.has(word)) return { approved: true }
  return no.has(word) ? { approved: false } : response
}

const yes = new Set(['yes', 'y', 'ok', 'true', 'approve', 'approved', 'accept', 'confirm', 'allow'])
const no = new Set([
  'no',
  'n',
  'false',
  'reject',
  'rejected',
  'deny',
  'denied',
  'cancel',
  'decline',
])

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unknown(index: number): RuntimeError {
  const field = `metaEvents.${index}.value`
  const problem = `${field}: no such question was asked on this thread. Send it as it was shown.`
  return new RuntimeError('interrupt_unknown', problem, { field })
}
