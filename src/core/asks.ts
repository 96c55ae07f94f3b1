import { z } from 'zod'
import type { NewId } from '../lib/ids.ts'
import { mayDecide, type Person } from './audience.ts'
import { pendingAsks } from './branch.ts'
import { cancelDrafts } from './cancel.ts'
import { asFolded } from './ending.ts'
import { type Actor, type Answer, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { callDigest, schemaDigest } from './policy.ts'
import type { AskRecord, Run, ThreadState } from './state.ts'
import type { Expectation } from './store.ts'
import { decide, type Thread } from './thread.ts'
import { type InputIssue, issuesOf, readInput, type Tool } from './tool.ts'

/** What a person said, before it is checked against the ask. */
export interface Decision {
  /** Approve or reject; for an effect in doubt, run it or skip it. */
  approved?: boolean
  reason?: string
  /** The digest of what was decided on, where the person's page says it: no other than the ask's. */
  digest?: string
  /** Other arguments to run with. */
  input?: unknown
  /** Allow this tool for the rest of the chat. */
  remember?: boolean
  /** End the run. */
  stop?: boolean
  /** An answer in place of the call's result, or the result of what did happen. */
  value?: unknown
  /** What the client calls the message that says so. */
  messageId?: string
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
  /** Who decides. The thread is of their tenant. */
  person: Person
}

/** What the wire calls the parts of a decision, for errors that name them. */
export interface Named {
  input: string
  value: string
}

/** Decisions that belong together: all of them are written, or none. */
export interface Answering {
  decisions: readonly { askId: string; decision: Decision; named: Named }[]
  key?: { key: string; digest: string }
  /** What the client calls the request; see `run.queued`. */
  request?: string
  /** The client's copy of the agent's state, when it differs from ours. */
  state?: { value: unknown }
}

/**
 * Settles asks of one run, each once (I2). Gives those that these decisions settled; what is not
 * among them had been settled before. Whoever is not meant to decide one of them settles none.
 */
export async function answer(
  { thread, tools, now, newId, person }: Decider,
  { decisions, key, request, state: copy }: Answering,
  actor: Actor,
): Promise<ReadonlySet<string>> {
  await expire(thread, now, newId)
  return await decide(thread, () => {
    const { state } = thread
    const used = key && state.keys.get(key.key)
    if (used && used.digest !== key.digest) throw new RuntimeError('idempotency_mismatch')
    const open = decisions.flatMap(({ askId, ...rest }) => {
      const record = state.asks.get(askId)
      if (!record) throw new RuntimeError('ask_not_found')
      return record.answer ? [] : [{ record, ...rest }]
    })
    for (const { ask } of open.map(({ record }) => record))
      if (!mayDecide(ask, state.owner, person)) throw new RuntimeError('not_yours_to_decide')
    const run = state.runs.get(open[0]?.record.runId ?? '')
    if (!run) return { result: new Set<string>() }
    const settled = new Set(open.map(({ record }) => record.ask.askId))
    const drafts: Draft[] = []
    let stop = false
    for (const { record, decision, named } of open) {
      const said = answerFrom(record, decision, tools, named)
      drafts.push(...answerDrafts(record, said, decision, tools, newId))
      stop ||= said.stop === true
    }
    if (copy) drafts.push(draft('state.patched', { agent: run.agent, ...copy }))
    if (key) drafts.push(draft('key.used', { ...key, ref: `ask:${[...settled].join()}` }))
    const then = stop
      ? cancelDrafts(state, run, newId, 'Stopped by the decision.', ...settled)
      : goOn(state, run, newId, settled, request)
    const keyUnused: Expectation[] = key ? [{ fact: `key:${key.key}`, is: null }] : []
    const expect = [...relied(state, run), ...keyUnused]
    return { drafts: [...drafts, ...then], writing: { guard: { expect }, actor }, result: settled }
  })
}

/** The answer, and what it grants. */
function answerDrafts(
  { ask, runId }: AskRecord,
  said: Answer,
  decision: Decision,
  tools: ReadonlyMap<string, Tool>,
  newId: NewId,
): Draft[] {
  const drafts: Draft[] = [draft('ask.answered', said, { runId })]
  const tool = tools.get(ask.tool ?? '')
  if (said.remember && said.state === 'approved' && tool) {
    const grant = { grantId: newId('grant'), tool: tool.name, schema: schemaDigest(tool) }
    drafts.push(draft('grant.given', { ...grant, askId: ask.askId }))
  }
  if (ask.kind === 'budget' && said.state === 'answered') {
    drafts.push(draft('governor.set', budgetFrom(decision)))
  }
  return drafts
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
function goOn(
  state: ThreadState,
  run: Run,
  newId: NewId,
  settled: ReadonlySet<string>,
  request?: string,
): Draft[] {
  if (run.status !== 'waiting' || state.leg !== null) return []
  if (pendingAsks(state, run).some(({ ask }) => !settled.has(ask.askId))) return []
  const at = { runId: run.runId, legId: newId('leg') }
  const label = request === undefined ? {} : { request }
  return [draft('run.queued', { agent: run.agent, why: 'answers', ...label }, at)]
}

function answerFrom(
  { ask }: AskRecord,
  said: Decision,
  tools: ReadonlyMap<string, Tool>,
  named: Named,
): Answer {
  const { askId } = ask
  if (said.digest !== undefined && said.digest !== ask.digest) throw new RuntimeError('ask_differs')
  const more = {
    ...(said.reason !== undefined && { reason: said.reason }),
    ...(said.messageId !== undefined && { messageId: said.messageId }),
  }
  if (said.stop) return { askId, state: 'rejected', stop: true, ...more }
  if (ask.kind === 'in_doubt') {
    const outcome = said.outcome ?? (said.approved ? 'did_not' : 'skip')
    return { askId, state: 'answered', outcome, value: said.value, ...more }
  }
  if (ask.kind === 'budget') {
    if (said.approved === false) return { askId, state: 'rejected', stop: true, ...more }
    return { askId, state: 'answered', value: budgetFrom(said), ...more }
  }
  if (said.value !== undefined) {
    if (ask.kind === 'input') checkAgainst(ask.schema, said.value, named.value)
    return { askId, state: 'answered', value: said.value, ...more }
  }
  if (!said.approved) return { askId, state: 'rejected', ...more }
  const answer: Answer = { askId, state: 'approved', digest: ask.digest, ...more }
  if (said.remember) answer.remember = true
  if (said.input === undefined) return answer
  const tool = tools.get(ask.tool ?? '')
  if (!tool)
    throw new RuntimeError('invalid_request', 'This tool is gone; its input cannot be edited.')
  const read = readInput(tool, said.input)
  if ('issues' in read) throw unfit(named.input, read.issues[0]!)
  return { ...answer, input: read.input, digest: callDigest(tool, read.input) }
}

/** An answer must be what was asked for; a schema that we cannot read asks for nothing. */
function checkAgainst(schema: unknown, value: unknown, named: string): void {
  if (typeof schema !== 'object' || schema === null) return
  let reader: z.ZodType
  try {
    reader = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
  } catch {
    return
  }
  const parsed = reader.safeParse(value)
  if (!parsed.success) throw unfit(named, issuesOf(parsed.error)[0]!)
}

function unfit(named: string, { path, message }: InputIssue): RuntimeError {
  const field = [named, ...path].join('.')
  return new RuntimeError('invalid_request', `${field}: ${message}`, { field })
}

function budgetFrom({ newLimit, newStatus }: Decision) {
  return {
    resetCounter: true,
    ...(newLimit !== undefined && { actionLimit: newLimit }),
    ...(newStatus !== undefined && { isHitlEnabled: newStatus }),
  }
}
