import type { NewId } from '../lib/ids.ts'
import { pendingAsks } from './branch.ts'
import { cancelDrafts } from './cancel.ts'
import { asFolded } from './ending.ts'
import { type Actor, type Answer, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { callDigest, schemaDigest } from './policy.ts'
import type { AskRecord, Run, ThreadState } from './state.ts'
import type { Expectation } from './store.ts'
import { decide, type Thread } from './thread.ts'
import type { Tool } from './tool.ts'

/** What a person said, before it is checked against the ask. */
export interface Decision {
  /** Approve or reject; for an effect in doubt, run it or skip it. */
  approved?: boolean
  reason?: string
  /** Other arguments to run with. */
  input?: unknown
  /** Allow this tool for the rest of the chat. */
  remember?: boolean
  /** End the run. */
  stop?: boolean
  /** An answer in place of the call's result, or the result of what did happen. */
  value?: unknown
  outcome?: Answer['outcome']
  /** Budgets: the new limit, and whether it is on. */
  newLimit?: number
  newStatus?: boolean
}

export interface Decider {
  thread: Thread
  tools: ReadonlyMap<string, Tool>
  now: number
  newId: NewId
}

/** Settles an ask once (I2). Gives the record, and whether this decision is the one that counts. */
export async function answer(
  { thread, tools, now, newId }: Decider,
  askId: string,
  decision: Decision,
  actor: Actor,
  key?: { key: string; digest: string },
): Promise<{ record: AskRecord; fresh: boolean }> {
  await expire(thread, now, newId)
  const fresh = await decide(thread, () => {
    const { state } = thread
    const record = state.asks.get(askId)
    const run = record && state.runs.get(record.runId)
    if (!record || !run) throw new RuntimeError('ask_not_found')
    const used = key && state.keys.get(key.key)
    if (used && used.digest !== key.digest) throw new RuntimeError('idempotency_mismatch')
    if (record.answer) return { result: false }
    const said = answerFrom(record, decision, tools)
    const drafts: Draft[] = [draft('ask.answered', said, { runId: run.runId })]
    const tool = tools.get(record.ask.tool ?? '')
    if (said.remember && said.state === 'approved' && tool) {
      const grant = { grantId: newId('grant'), tool: tool.name, schema: schemaDigest(tool), askId }
      drafts.push(draft('grant.given', grant))
    }
    if (record.ask.kind === 'budget' && said.state === 'answered') {
      drafts.push(draft('governor.set', budgetFrom(decision)))
    }
    if (key) drafts.push(draft('key.used', { ...key, ref: `ask:${askId}` }))
    const then = said.stop
      ? cancelDrafts(state, run, newId, 'Stopped by the decision.', askId)
      : goOn(state, run, newId, new Set([askId]))
    const keyUnused: Expectation[] = key ? [{ fact: `key:${key.key}`, is: null }] : []
    const expect = [...relied(state, run), ...keyUnused]
    return { drafts: [...drafts, ...then], writing: { guard: { expect }, actor }, result: true }
  })
  return { record: thread.state.asks.get(askId)!, fresh }
}

/** Ends what nobody answered in time. What its rule says then happens, once. */
export async function expire(thread: Thread, now: number, newId: NewId): Promise<void> {
  await decide(thread, () => {
    const { state } = thread
    const run = state.active === null ? undefined : state.runs.get(state.active)
    if (!run || run.status === 'cancelling') return { result: undefined }
    const late = pendingAsks(state, run).filter(({ ask }) => ask.deadline <= now)
    if (late.length === 0) return { result: undefined }
    const runId = { runId: run.runId }
    const drafts: Draft[] = late.map(({ ask: { askId, atTimeout } }) => {
      const approved = { state: 'approved', reason: 'Approved by policy at its timeout.' } as const
      const timeout = { state: 'timeout', reason: 'Approval request timed out' } as const
      return draft(
        'ask.answered',
        { askId, ...(atTimeout === 'approve' ? approved : timeout) },
        runId,
      )
    })
    const settled = new Set(late.map(({ ask }) => ask.askId))
    const stop = late.some(({ ask }) => ask.atTimeout === 'stop')
    const then = stop
      ? cancelDrafts(state, run, newId, 'Nobody answered in time.', ...settled)
      : goOn(state, run, newId, settled)
    const actor: Actor = { type: 'system', id: 'timer' }
    const writing = { guard: { expect: relied(state, run) }, actor }
    return { drafts: [...drafts, ...then], writing, result: undefined }
  })
}

/** What a decision about a run's asks rests on: the asks, the run, and whether a leg is at work. */
export const relied = (state: ThreadState, run: Run): Expectation[] => [
  ...run.askIds.map((id) => asFolded(state, id)),
  { fact: 'leg', is: state.leg },
  { fact: `run:${run.runId}`, is: run.status },
]

/** The next leg is queued by the transition that settles the last ask while no leg is at work. */
function goOn(state: ThreadState, run: Run, newId: NewId, settled: ReadonlySet<string>): Draft[] {
  if (run.status !== 'waiting' || state.leg !== null) return []
  if (pendingAsks(state, run).some(({ ask }) => !settled.has(ask.askId))) return []
  const at = { runId: run.runId, legId: newId('leg') }
  return [draft('run.queued', { agent: run.agent, why: 'answers' }, at)]
}

/** Checks a decision without writing it. */
export function answerOf(
  pending: readonly AskRecord[],
  askId: string,
  said: Decision,
  tools: ReadonlyMap<string, Tool>,
): void {
  const record = pending.find(({ ask }) => ask.askId === askId)
  if (record) answerFrom(record, said, tools)
}

function answerFrom({ ask }: AskRecord, said: Decision, tools: ReadonlyMap<string, Tool>): Answer {
  const { askId } = ask
  const reason = said.reason === undefined ? {} : { reason: said.reason }
  if (said.stop) return { askId, state: 'rejected', stop: true, ...reason }
  if (ask.kind === 'in_doubt') {
    const outcome = said.outcome ?? (said.approved ? 'did_not' : 'skip')
    return { askId, state: 'answered', outcome, value: said.value, ...reason }
  }
  if (ask.kind === 'budget') {
    if (said.approved === false) return { askId, state: 'rejected', stop: true, ...reason }
    return { askId, state: 'answered', value: budgetFrom(said), ...reason }
  }
  if (said.value !== undefined) return { askId, state: 'answered', value: said.value, ...reason }
  if (!said.approved) return { askId, state: 'rejected', ...reason }
  const answer: Answer = { askId, state: 'approved', digest: ask.digest, ...reason }
  if (said.remember) answer.remember = true
  if (said.input === undefined) return answer
  const tool = tools.get(ask.tool ?? '')
  if (!tool)
    throw new RuntimeError('invalid_request', 'This tool is gone; its input cannot be edited.')
  const parsed = tool.schema.safeParse(said.input)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!
    const foreign = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
    const field = ['body', 'edited_input', ...issue.path, ...foreign].join('.')
    throw new RuntimeError('invalid_request', `${field}: ${issue.message}`, { field })
  }
  return { ...answer, input: parsed.data, digest: callDigest(tool, parsed.data) }
}

function budgetFrom({ newLimit, newStatus }: Decision) {
  return {
    resetCounter: true,
    ...(newLimit !== undefined && { actionLimit: newLimit }),
    ...(newStatus !== undefined && { isHitlEnabled: newStatus }),
  }
}
