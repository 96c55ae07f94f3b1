import type { Answering } from '../../core/asks.ts'
import { pendingAsks } from '../../core/branch.ts'
import { RuntimeError } from '../../core/errors.ts'
import { textOf } from '../../core/messages.ts'
import type { Reconciled } from '../../core/reconcile.ts'
import type { AskRecord, ThreadState } from '../../core/state.ts'
import { openAsks } from '../asks.ts'
import { answerReader, decisionFrom } from '../decisions.ts'
import type { RunInput } from './shapes.ts'

export interface Answers {
  decisions: Answering['decisions']
  /** Named by the resume, and settled before it came. */
  settled: AskRecord[]
}

/** What a request answers: by results of calls, by calls that stand for questions, by a resume. */
export function answersIn(
  state: ThreadState,
  { resume = [] }: RunInput,
  { results, said }: Reconciled,
  tools: ReadonlySet<string>,
): Answers {
  const decisions: Answering['decisions'][number][] = []
  const read = answerReader()
  for (const { askId, message } of results) {
    const { ask } = state.asks.get(askId)!
    const named = `messages.${message.id}.content`
    try {
      const said = decisionFrom(ask, textOf(message), named, read)
      const decision = { ...said, messageId: message.id }
      decisions.push({ askId, decision, named: { input: `${named}.editedArgs`, value: named } })
    } catch (error) {
      // Whoever types on passes over the card: what it said then need not be understood.
      if (said.length === 0) throw error
    }
  }
  const settled: AskRecord[] = []
  for (const [i, { interruptId, status, payload }] of (resume ?? []).entries()) {
    const record = state.asks.get(interruptId)
    if (!record || record.ask.kind === 'client_tool') throw unknown(i, interruptId)
    if (record.answer) {
      settled.push(record)
      continue
    }
    const named = `resume.${i}.payload`
    const decision =
      status === 'cancelled' ? dismissed : decisionFrom(record.ask, payload, named, read)
    const parts = { input: `${named}.editedArgs`, value: named }
    decisions.push({ askId: interruptId, decision, named: parts })
  }
  if (resume && resume.length > 0) {
    covered(state, decisions, tools)
    expired(settled, decisions)
  }
  return { decisions, settled }
}

const dismissed = { approved: false, reason: 'The user dismissed the question.' }

function unknown(index: number, interruptId: string): RuntimeError {
  const field = `resume.${index}.interruptId`
  const problem = `${field}: ${interruptId} is not an interrupt of this thread. Connect to see it.`
  return new RuntimeError('interrupt_unknown', problem, { field })
}

/** Partial resumes are refused: all open interrupts are answered together. */
function covered(
  state: ThreadState,
  decisions: Answering['decisions'],
  tools: ReadonlySet<string>,
): void {
  const run = state.runs.get(state.active ?? '')
  if (!run || decisions.length === 0) return
  const answered = new Set(decisions.map(({ askId }) => askId))
  const missing = openAsks(state, run, tools).interrupts.find(({ ask }) => !answered.has(ask.askId))
  if (!missing || !pendingAsks(state, run).some(({ ask }) => answered.has(ask.askId))) return
  const problem = `resume: ${missing.ask.askId} is open too. Answer all open interrupts together.`
  throw new RuntimeError('interrupt_uncovered', problem, { field: 'resume' })
}

/** A late answer is refused, for it changes nothing and its sender must know. */
function expired(settled: readonly AskRecord[], decisions: Answering['decisions']): void {
  const late = settled.find(({ answer }) => answer?.state === 'timeout')
  if (!late || decisions.length > 0) return
  const { askId, deadline } = late.ask
  const when = new Date(deadline).toISOString()
  const problem = `${askId} was to be answered by ${when}. The run went on without an answer.`
  throw new RuntimeError('interrupt_expired', problem, { field: 'resume' })
}
