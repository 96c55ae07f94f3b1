import type { Answering } from '../../core/asks.ts'
import type { Ask } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { textOf } from '../../core/messages.ts'
import type { Reconciled } from '../../core/reconcile.ts'
import type { AskRecord, ThreadState } from '../../core/state.ts'
import { digestOf, sha256 } from '../../lib/canonical.ts'
import { sameJson } from '../../lib/json-patch.ts'
import { isLarger } from '../../lib/size.ts'
import { textParser } from '../body.ts'
import { type AnswerReader, answerReader, decisionFrom } from '../decisions.ts'
import { refuseLargeValue } from '../limits.ts'
import { inputValue } from './interrupts.ts'
import type { GenerateInput, MetaEventInput } from './shapes.ts'

/** What a request answers: by results of actions, by actions that stand for questions, by resuming. */
export function answersIn(
  state: ThreadState,
  { metaEvents }: GenerateInput,
  { results, said }: Reconciled,
): Answering['decisions'] {
  const decisions: Answering['decisions'][number][] = []
  const [read, parse] = [answerReader(), textParser(true)]
  for (const { askId, message } of results) {
    const { ask } = state.asks.get(askId)!
    const named = `messages.${message.id}.resultMessage.result`
    try {
      const decision = { ...decisionFrom(ask, textOf(message), named, read), messageId: message.id }
      decisions.push({ askId, decision, named: { input: `${named}.editedArgs`, value: named } })
    } catch (error) {
      // Whoever types on passes over the card: what it said then need not be understood.
      if (said.length === 0) throw error
    }
  }
  const find = finder(state, metaEvents ?? [])
  for (const [i, meta] of (metaEvents ?? []).entries()) {
    if (!meta.response) continue // shown, and not answered
    const field = `metaEvents.${i}`
    const value = shownValue(meta, `${field}.value`, parse)
    const record = find(meta, value)
    if (!record) throw unknown(`${field}.value`)
    if (showsOther(record.ask, value)) throw new RuntimeError('ask_differs')
    if (record.answer) continue // clients may send what they answered again, with the next message
    const named = `${field}.response`
    const decision = decisionFrom(record.ask, spoken(record.ask, meta, named, read), named, read)
    const parts = { input: `${named}.editedArgs`, value: named }
    decisions.push({ askId: record.ask.askId, decision, named: parts })
  }
  return decisions
}

/** Parsed values of interrupts. A request reads each of them several times. */
const values = new WeakMap<MetaEventInput, unknown>()

function shownValue(meta: MetaEventInput, field: string, parse: AnswerReader): unknown {
  if (!values.has(meta)) values.set(meta, parse(meta.value, field))
  return values.get(meta)
}

/**
 * Returns a function that finds the ask that was shown with a value. Several asks of kind `input` may have the same value:
 * it then finds the first that is open, else the last.
 */
function finder(state: ThreadState, events: readonly MetaEventInput[]) {
  const isOpen = ({ answer, runId }: AskRecord) => !answer && runId === state.active
  const longest = Math.max(0, ...events.map(({ value }) => value.length))
  const byKey = new Map<string, AskRecord>()
  for (const record of events.length > 0 ? state.asks.values() : []) {
    const { ask } = record
    // An ask that is larger than all values is none of them.
    if (!hasOwnValue(ask) || isLarger(inputValue(ask), { values: longest, characters: longest }))
      continue
    const before = byKey.get(keyOfAsk(ask))
    if (!before || !isOpen(before)) byKey.set(keyOfAsk(ask), record)
  }
  return ({ value: text }: MetaEventInput, value: unknown): AskRecord | undefined => {
    const { askId } = Object(value) as { askId?: unknown }
    const named = typeof askId === 'string' ? state.asks.get(askId) : undefined
    const isNamed = named && named.ask.kind !== 'client_tool' && !hasOwnValue(named.ask)
    return isNamed ? named : byKey.get(keyOf(text, value))
  }
}

/** Whether clients are shown the input of the agent, and no name of the ask. */
const hasOwnValue = ({ kind, input }: Ask): boolean => kind === 'input' && input !== undefined

/** Equal for texts that are the same JSON: clients may have parsed the value and written it again. */
const keyOf = (text: string, value: unknown): string =>
  typeof value === 'object' && value !== null ? digestOf(value) : sha256(text)

const keys = new WeakMap<Ask, string>()

function keyOfAsk(ask: Ask): string {
  let key = keys.get(ask)
  if (key === undefined) {
    const value = inputValue(ask)
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    key = keyOf(text, typeof value === 'string' ? parsed(value) : value)
    keys.set(ask, key)
  }
  return key
}

/** The question that the value of an interrupt names, if it names one; else the value is its name. */
export function nameIn(meta: MetaEventInput): string {
  const { askId } = Object(readable(meta)) as { askId?: unknown }
  return typeof askId === 'string' ? askId : meta.value
}

function readable(meta: MetaEventInput): unknown {
  try {
    return shownValue(meta, '', textParser(true))
  } catch {
    return undefined // refused where it is answered
  }
}

/** The right question, with other arguments than were shown. */
function showsOther({ kind, input }: Ask, shown: unknown): boolean {
  if (kind === 'input' || typeof shown !== 'object' || shown === null) return false
  return 'input' in shown && !sameJson(shown.input, input)
}

/** What the hooks' `resolve` is given is often a word, or a bare truth. */
function spoken(
  ask: Ask,
  { response }: MetaEventInput,
  named: string,
  read: AnswerReader,
): unknown {
  const text = response ?? ''
  const value = read(text, named)
  if (value === undefined) refuseLargeValue(text, named)
  if (ask.kind === 'input') return value === undefined ? text : value
  if (typeof value === 'object' && value !== null) return value
  const word = String(value ?? text)
    .trim()
    .toLowerCase()
  // Whether it happened and whether it may happen are not the same yes.
  if (ask.kind === 'in_doubt') return { outcome: word }
  if (yes.has(word)) return { approved: true }
  return no.has(word) ? { approved: false } : text
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unknown(field: string): RuntimeError {
  const problem = `${field}: no such question was asked on this thread. Send it as it was shown.`
  return new RuntimeError('interrupt_unknown', problem, { field })
}
