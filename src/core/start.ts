import type { NewId } from '../lib/ids.ts'
import type { StartingBudget } from './agent-setups.ts'
import { audienceOf, ownerWord } from './audience.ts'
import { pendingAsks } from './branch.ts'
import { cancelDrafts } from './cancel.ts'
import { atEnd } from './ending.ts'
import { type Actor, type Draft, draft, type RunOptions } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { keyUnused, usedKey } from './keys.ts'
import { sameParts } from './large-parts.ts'
import { type Message, toolText } from './messages.ts'
import type { Run, ThreadState } from './state.ts'
import type { Expectation, ThreadName } from './store.ts'
import { decide, type Thread } from './thread.ts'

export interface Start {
  /** What the user says; usually one. */
  messages: readonly Message[]
  /** History that a new thread is begun with. */
  imported?: readonly Message[]
  /** The client's copy of the agent's state, when it differs from ours. */
  state?: { value: unknown }
  agent: string
  actor: Actor
  /** What to do when another run has the thread. */
  whenBusy: 'reject' | 'queue' | 'cancel'
  /**
   * Results of client calls that came with the message: recorded with the run that made them,
   * which is over with `cancel`, so that the message is answered once and with them in mind.
   */
  results?: readonly { askId: string; text: string; messageId: string }[]
  /** What the client calls the request; see `run.queued`. */
  request?: string
  /** An edit: the run whose message this one replaces. */
  replaces?: string
  /** Which of that run's messages it is, where it is not the last that was said. */
  instead?: string
  key?: { key: string; digest: string }
  options?: RunOptions
  /** The thread is made with its first run. */
  name: ThreadName
  governor: StartingBudget
}

/** How many runs may wait behind the one that has the thread. */
const lineLimit = 32

/**
 * Accepts a message: when this resolves, the run it starts is durable (I1). Who repeats a request whose outcome is
 * unknown gets the run that it has started, or would start, and never a second one.
 */
export async function start(thread: Thread, start: Start, newId: NewId) {
  const messageIds = start.messages.map(({ id }) => id)
  const runId = thread.unsettledRun(start.key?.key, messageIds) ?? newId('run')
  const legId = newId('leg')
  return await decide(thread, () => {
    const { state } = thread
    const before = earlier(state, start)
    if (before !== undefined) return { result: { runId: before, fresh: false } }
    const branch = branchFor(state, start.replaces)
    const { drafts, expect, busy } = makeRoom(state, start, newId)
    const at = { runId, legId }
    const { agent, options, key, messages, imported = [] } = start
    if (state.seq === 0) drafts.push(...creation(start))
    const queued = { agent, why: 'start' as const, ...(branch && { branch }) }
    const label = start.request === undefined ? {} : { request: start.request }
    const more = { ...(busy && { behind: true }), ...(options && { options }), ...label }
    drafts.push(draft('run.queued', { ...queued, ...more }, at))
    const history = state.runs.size === 0 ? imported : saidBefore(state, start, newId)
    const all = [...history, ...messages]
    for (const message of all) drafts.push(draft('message.added', { message, for: 'both' }, at))
    if (start.state) drafts.push(draft('state.patched', { agent, ...start.state }, at))
    if (key) drafts.push(draft('key.used', { ...key, ref: runId }, { runId }))
    expect.push({ fact: 'active', is: state.active })
    for (const { id } of messages) expect.push({ fact: `message:${id}`, is: null })
    expect.push(...keyUnused(key))
    const writing = { guard: { expect }, actor: start.actor }
    return { drafts, writing, result: { runId, fresh: true } }
  })
}

/** An empty thread, without a run. */
export const creation = ({ name, agent, governor }: Pick<Start, 'name' | 'agent' | 'governor'>) => [
  draft('thread.created', { ...name, agent }),
  draft('governor.set', { ...governor }),
]

function earlier(state: ThreadState, { key, messages }: Start): string | undefined {
  const used = usedKey(state, key)
  if (used) return used.ref
  for (const { id, parts } of messages) {
    const said = state.messages.get(id)
    if (!said) continue
    if (sameParts(said.message.parts, parts)) return said.runId
    const problem = `messages: another message of this chat has the id ${id}. Give it another.`
    throw new RuntimeError('invalid_request', problem, { field: 'messages' })
  }
  return undefined
}

/** Cancels what has the thread in the same transition, gets in line behind it, or refuses. */
function makeRoom(state: ThreadState, start: Start, newId: NewId) {
  const drafts: Draft[] = []
  const expect: Expectation[] = []
  const run = state.runs.get(state.active ?? '')
  if (!run) return { drafts, expect, busy: false }
  if (start.whenBusy !== 'cancel') {
    refuseOrQueue(state, start, run)
    return { drafts, expect, busy: true }
  }
  const results = resultDrafts(state, run, start, newId)
  drafts.push(...results.drafts)
  if (run.status !== 'cancelling')
    drafts.push(...cancelDrafts(state, run, newId, undefined, ...results.settled))
  expect.push({ fact: `run:${run.runId}`, is: run.status }, ...atEnd(state, run))
  const gone = drafts.some(({ kind }) => kind === 'run.cancelled')
  return { drafts, expect, busy: !gone || state.line.length > 0 }
}

function resultDrafts(state: ThreadState, run: Run, { results = [] }: Start, newId: NewId) {
  const drafts: Draft[] = []
  const settled: string[] = []
  for (const { askId, text, messageId } of results) {
    const record = state.asks.get(askId)
    if (record?.runId !== run.runId || record.answer) continue
    if (record.ask.kind !== 'client_tool') continue // what is said on passes over questions
    if (!audienceOf(record.ask).includes(ownerWord)) continue // not for whoever types here
    const { callId = '', tool: name = '' } = record.ask
    const said = { askId, state: 'answered' as const, value: text, messageId }
    const call = { type: 'call' as const, callId, name, input: '' }
    const id = state.messages.has(messageId) ? newId('msg') : messageId
    const message = toolText(id, call, text)
    drafts.push(draft('ask.answered', said, { runId: run.runId }))
    drafts.push(draft('message.added', { message, for: 'both' }, { runId: run.runId }))
    settled.push(askId)
  }
  return { drafts, settled }
}

function refuseOrQueue(state: ThreadState, { whenBusy }: Start, run: Run): void {
  const data: Record<string, unknown> = { run_id: run.runId, status: run.status }
  if (whenBusy === 'queue') {
    if (state.line.length < lineLimit) return
    throw new RuntimeError('thread_busy', 'Too many messages wait in this chat already.', { data })
  }
  if (run.status !== 'waiting') throw new RuntimeError('thread_busy', undefined, { data })
  data.asks = pendingAsks(state, run).map(({ ask }) => ask.askId)
  throw new RuntimeError('thread_waiting', undefined, { data })
}

function branchFor(state: ThreadState, replaces: string | undefined) {
  if (replaces === undefined) return undefined
  const run = state.runs.get(replaces)
  if (!run) throw new RuntimeError('run_not_found')
  if (run.parentRunId === undefined) {
    throw new RuntimeError('thread_busy', 'This interaction has not begun yet. Cancel it instead.')
  }
  return { parentRunId: run.parentRunId, replaces }
}

/** What a run began with before the message that is said anew stays, on the new branch too. */
function saidBefore(state: ThreadState, { replaces, instead }: Start, newId: NewId): Message[] {
  const ids = state.runs.get(replaces ?? '')?.messageIds ?? []
  const all = ids.map((id) => state.messages.get(id)!.message)
  const last = all.findLastIndex(({ role }) => role === 'user')
  const at = instead === undefined ? last : ids.indexOf(instead)
  return all.slice(0, Math.max(0, at)).map((message) => ({ ...message, id: newId('msg') }))
}

/** Takes a failed run up again where it failed. The same key again does nothing, also if the run failed again since. */
export async function retry(
  thread: Thread,
  runId: string,
  newId: NewId,
  { actor, key }: Pick<Start, 'actor' | 'key'>,
) {
  const legId = newId('leg')
  const options = await releasedOptions(thread, runId)
  await decide(thread, () => {
    const { state } = thread
    if (usedKey(state, key)) return { result: undefined }
    const run = thread.run(runId)
    const data = { status: run.status }
    if (run.status !== 'failed') throw new RuntimeError('run_not_failed', undefined, { data })
    if (state.head !== runId) throw new RuntimeError('run_superseded')
    if (state.active !== null) {
      throw new RuntimeError('thread_busy', undefined, { data: { run_id: state.active } })
    }
    const queued = { agent: run.agent, why: 'retry' as const, ...(options && { options }) }
    const drafts: Draft[] = [draft('run.queued', queued, { runId, legId })]
    if (key) drafts.push(draft('key.used', { ...key, ref: runId }, { runId }))
    const expect: Expectation[] = [
      ...keyUnused(key),
      { fact: `run:${runId}`, is: 'failed' },
      { fact: 'active', is: null },
      { fact: 'head', is: runId },
    ]
    return { drafts, writing: { guard: { expect }, actor }, result: undefined }
  })
}

/** The options of a run that ended long ago, from the entry that queued it first. */
async function releasedOptions(thread: Thread, runId: string): Promise<RunOptions | undefined> {
  const run = thread.state.runs.get(runId)
  if (!run?.released) return undefined
  const [entry] = await thread.entries(run.firstSeq - 1, 1)
  return entry?.kind === 'run.queued' ? entry.body.options : undefined
}
