import { setImmediate } from 'node:timers/promises'
import { digestOf } from '../lib/canonical.ts'
import type { NewId } from '../lib/ids.ts'
import { sameJson } from '../lib/json-patch.ts'
import { compileSchema, type SchemaCheck } from '../lib/json-schema.ts'
import { mayDecide, type Person } from './audience.ts'
import { pendingAsks } from './branch.ts'
import { type BudgetOption, budgetFrom, isStopped } from './budget-answers.ts'
import { cancelDrafts } from './cancel.ts'
import { cardOf } from './card.ts'
import { approvedInput } from './edited.ts'
import { asFolded } from './ending.ts'
import { type Actor, type Answer, type Ask, type Body, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { grantDrafts, type Remember, samePeople, scopeOf } from './grants.ts'
import { keyUnused, usedKey } from './keys.ts'
import { ownerOf } from './leg.ts'
import { refuseOdd } from './odd-answers.ts'
import { callDigest, type Verdict } from './policy.ts'
import { cardOfEdit } from './showing.ts'
import type { AskRecord, Run, ThreadState } from './state.ts'
import type { Expectation } from './store.ts'
import { decide, type Thread } from './thread.ts'
import { type InputIssue, isStable, type ParsedInput, readInputInTurns, type Tool } from './tool.ts'

/** What a person said, before it is checked against the ask. */
export interface Decision {
  /** Approve or reject; an effect in doubt can only be rejected, which skips it. */
  approved?: boolean
  reason?: string
  /** The digest of what was decided on, where the person's page says it: no other than the ask's. */
  digest?: string
  /** Other arguments to run with. */
  input?: unknown
  /** Allow further calls of this tool too: for the rest of the chat, or for some minutes. */
  remember?: Remember
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
  newTokenLimit?: number | null
  newMoneyLimit?: number | null
  option?: BudgetOption
}

export interface Decider {
  thread: Thread
  /** What the agent that asks has. */
  toolsOf: (ask: Ask) => AskersTools
  now: number
  newId: NewId
  /** Who decides. The thread is of their tenant. */
  person: Person
}

/** Who asks, its tools, and what the policy says of a call with other arguments. */
export interface AskersTools {
  agent: string
  tools: ReadonlyMap<string, Tool>
  judge: (tool: Tool, read: ParsedInput) => Verdict
}

/** What the wire calls the parts of a decision, for errors that name them. */
export interface Named {
  input: string
  value: string
  /** The new limit of a budget, where it does not stand in the value. */
  limit?: string
  /** Where its fields stand, if that is not the value. */
  all?: string
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
  decider: Decider,
  { decisions, key, request, state: copy }: Answering,
  actor: Actor,
): Promise<ReadonlySet<string>> {
  const { thread, now, newId, person } = decider
  const given = oneEach(decisions)
  await expire(thread, now, newId)
  const edits = await readEdits(given, decider)
  return await decide(thread, () => {
    const { state } = thread
    usedKey(state, key)
    const open = given.flatMap(({ askId, ...rest }) => {
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
      const edit = edits.get(record.ask.askId)
      const said = answerFrom(record, decision, decider, named, edit)
      drafts.push(...answerDrafts(record, said, decider))
      stop ||= said.stop === true
    }
    if (copy) drafts.push(draft('state.patched', { agent: run.agent, ...copy }))
    if (key) drafts.push(draft('key.used', { ...key, ref: `ask:${[...settled].join()}` }))
    const then = stop
      ? cancelDrafts(state, run, newId, 'Stopped by the decision.', ...settled)
      : queueNextLeg(state, run, newId, settled, request)
    const expect = [...relied(state, run), ...keyUnused(key)]
    return { drafts: [...drafts, ...then], writing: { guard: { expect }, actor }, result: settled }
  })
}

/** What is said twice is said once; who says two things of one ask is told so (I2). */
function oneEach(decisions: Answering['decisions']): Answering['decisions'] {
  const first = new Map<string, Answering['decisions'][number]>()
  for (const one of decisions) {
    const before = first.get(one.askId)
    if (!before) first.set(one.askId, one)
    else if (digestOf(meaning(before.decision)) !== digestOf(meaning(one.decision))) {
      const field = one.named.value
      const problem = `${field}: ${one.askId} is answered twice in this request. Answer it once.`
      throw new RuntimeError('invalid_request', problem, { field })
    }
  }
  return [...first.values()]
}

const meaning = ({ messageId: _, ...said }: Decision): Decision => said

/** The answer, and what it grants. */
function answerDrafts(
  { ask, runId }: AskRecord,
  said: Answer,
  { toolsOf, now, newId }: Decider,
): Draft[] {
  const drafts: Draft[] = [draft('ask.answered', said, { runId })]
  const grantId = newId('grant')
  const { tools, agent } = toolsOf(ask)
  const whose = { tool: tools.get(ask.tool ?? ''), agent }
  drafts.push(...grantDrafts(ask, said, whose, { now, grantId }))
  if (ask.kind === 'budget' && said.state === 'answered') {
    drafts.push(draft('governor.set', said.value as Body<'governor.set'>))
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
      : queueNextLeg(state, run, newId, settled)
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
export function queueNextLeg(
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
  record: AskRecord,
  said: Decision,
  decider: Decider,
  named: Named,
  edit: ReadEdit | undefined,
): Answer {
  const { ask } = record
  const { askId } = ask
  if (said.digest !== undefined && said.digest !== ask.digest) throw new RuntimeError('ask_differs')
  refuseOdd(ask, said, named)
  const more = {
    ...(said.reason !== undefined && { reason: said.reason }),
    ...(said.messageId !== undefined && { messageId: said.messageId }),
  }
  if (said.stop) return { askId, state: 'rejected', stop: true, ...more }
  if (ask.kind === 'in_doubt') {
    const outcome = said.outcome ?? 'skip'
    if (outcome === 'check' && !ask.checks) {
      const field = `${named.all ?? named.value}.outcome`
      const problem = `${field}: this tool has no way to look whether it happened.`
      throw new RuntimeError('invalid_request', problem, { field })
    }
    return { askId, state: 'answered', outcome, value: said.value, ...more }
  }
  if (ask.kind === 'budget') {
    if (isStopped(said)) return { askId, state: 'rejected', stop: true, ...more }
    const value = budgetFrom(said, record, decider.thread.state.governor, named)
    return { askId, state: 'answered', value, ...more }
  }
  if (said.value !== undefined) {
    if (ask.kind === 'input') checkAgainst(ask.schema, said.value, named.value)
    return { askId, state: 'answered', value: said.value, ...more }
  }
  if (!said.approved) return { askId, state: 'rejected', ...more }
  const answer: Answer = { askId, state: 'approved', digest: ask.digest, ...more }
  const remember = scopeOf(said.remember)
  if (remember) answer.remember = remember
  if (said.input === undefined) return answer
  if (!edit) throw new RuntimeError('ask_not_found') // asked after this decision was sent
  if ('error' in edit) throw edit.error
  return { ...answer, ...edit.value }
}

/** The edited part of an answer, or why the edit is refused. */
type ReadEdit = { value: Pick<Answer, 'input' | 'raw' | 'digest' | 'card'> } | { error: unknown }

/**
 * Reads the arguments that approvers wrote, by ask. Runs before the transition and lets other requests run between
 * its steps, because each step takes milliseconds on large arguments. A refusal is returned, not thrown: the
 * transition throws it unless the decision is refused for another reason first.
 */
async function readEdits(
  decisions: Answering['decisions'],
  decider: Decider,
): Promise<ReadonlyMap<string, ReadEdit>> {
  const { thread, person } = decider
  const edits = new Map<string, ReadEdit>()
  for (const { askId, decision, named } of decisions) {
    const record = thread.state.asks.get(askId)
    if (decision.input === undefined || !decision.approved || !record || record.answer) continue
    if (!mayDecide(record.ask, thread.state.owner, person)) continue
    if (sameJson(decision.input, record.ask.input)) {
      edits.set(askId, { value: {} }) // sent back as it was shown: not an edit
      continue
    }
    await setImmediate()
    edits.set(
      askId,
      await readEdit(record.ask, decision.input, decider, named.input).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      ),
    )
  }
  return edits
}

/** Cards of older versions show the input after the transform, so an edit could mean the value before or after it. */
const transformed =
  'the card of this approval was made by an older version of the server and shows the input after the transform of its schema. Approve it unchanged, or reject it.'

/**
 * Other arguments: of the tool that was shown, which it takes, and which are for the same people to decide.
 * Where an agent puts something up that is no call, it says whether it may be changed, and its schema how.
 */
async function readEdit(
  ask: Ask,
  given: unknown,
  { toolsOf, thread }: Decider,
  field: string,
): Promise<Pick<Answer, 'input' | 'raw' | 'digest' | 'card'>> {
  const { tools, judge, agent } = toolsOf(ask)
  const refuse = (why: string) => new RuntimeError('invalid_request', `${field}: ${why}`, { field })
  if (ask.tool === undefined) {
    if (!ask.editable) throw refuse('this is approved as it is, or not at all.')
    checkAgainst(ask.schema, given, field)
    const input = approvedInput(ask, given)
    if (sameJson(input, ask.input)) return {} // a partial edit that changes no field
    const { title, card: asked } = ask
    const about = { title, input, risk: asked?.risk, ...(asked?.agent && { agent }) }
    return { input, card: cardOf(about) }
  }
  const tool = tools.get(ask.tool)
  if (!tool) throw refuse('this tool is gone; its input cannot be edited.')
  if (callDigest(tool, ask.input, ask) !== ask.digest)
    throw refuse('the tool changed after this was asked; its input cannot be edited.')
  await setImmediate()
  const read = await readInputInTurns(tool, given)
  if ('issues' in read) throw unfit(field, read.issues[0]!)
  await setImmediate()
  if (read.raw && !ask.raw && !isStable(tool, ask.input)) throw refuse(transformed)
  await setImmediate()
  const { decision, rule, audience } = judge(tool, read)
  if (decision === 'deny') throw refuse(`the policy does not allow this (${rule}).`)
  if (decision === 'ask' && !samePeople(audience, ask.audience))
    throw refuse(`this is for others to decide (${rule}).`)
  const { shown: input, raw = false } = read
  const digest = callDigest(tool, input, { raw, precondition: ask.precondition })
  await setImmediate()
  const card = cardOfEdit({ tool, input: read.input, shown: input, agent }, ownerOf({ thread }))
  await setImmediate()
  return { input, raw, digest, card }
}

/**
 * An answer must fit the schema of its ask. The schema may come from an MCP server or a remote agent, so it
 * is checked in linear time. A schema or a pattern that cannot be read or is too large is not checked.
 */
function checkAgainst(schema: unknown, value: unknown, named: string): void {
  if (typeof schema !== 'object' || schema === null) return
  let check: SchemaCheck
  try {
    check = compileSchema(schema, { unsupportedPatterns: 'skip' })
  } catch {
    return
  }
  const [issue] = check(value)
  if (issue) throw unfit(named, issue)
}

function unfit(named: string, { path, message }: InputIssue): RuntimeError {
  const field = [named, ...path].join('.')
  return new RuntimeError('invalid_request', `${field}: ${message}`, { field })
}
