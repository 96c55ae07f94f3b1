import type { Actor, Answer, Ask, Body, Failure, Known, RunOptions, Usage } from './entries.ts'
import { callsOf, type Message, textOf } from './messages.ts'

/** State is a fold of the journal: the same entries always give the same state. */
export interface ThreadState {
  threadId: string
  seq: number
  tenant: string
  owner: string
  clientId: string
  agent: string
  title: string | null
  archived: boolean
  createdAt: number
  updatedAt: number
  /** The run at the tip of the branch that is shown. */
  head: string | null
  /** The one run that has not ended; `line` waits behind it. */
  active: string | null
  line: string[]
  /** The last run that ever joined the line: a guard that sees newcomers. */
  joined: string | null
  leg: string | null
  runs: Map<string, Run>
  messages: Map<string, Said>
  /** Every call ever made on the thread, and where it stands. */
  calls: Map<string, { messageId: string; index: number }>
  asks: Map<string, AskRecord>
  effects: Map<string, EffectRecord>
  grants: Map<string, Body<'grant.given'>>
  governor: Governor
  states: Map<string, unknown>
  keys: Map<string, Body<'key.used'>>
}

export type RunStatus =
  | 'queued'
  | 'running'
  | 'waiting'
  | 'cancelling'
  | 'completed'
  | 'failed'
  | 'cancelled'

export interface Run {
  runId: string
  agent: string
  status: RunStatus
  /** Undefined until the run has started, or ended without. */
  parentRunId: string | null | undefined
  branch: Body<'run.queued'>['branch']
  options: RunOptions
  legId: string
  leg: number
  /** Seq of the entry that queued it. */
  firstSeq: number
  /** Times it was taken up after a crash since it last got anywhere. */
  recoveries: number
  messageIds: string[]
  askIds: string[]
  effectIds: string[]
  createdAt: number
  endedAt: number | null
  /** Seq of the entry that ended it; a retry takes that back. */
  endSeq: number | null
  cancellingAt: number | null
  error: Failure | null
  reason: string | null
}

export interface Said {
  message: Message
  for: 'model' | 'client' | 'both'
  runId: string
  seq: number
  at: number
}

export interface AskRecord {
  ask: Ask
  runId: string
  seq: number
  raisedAt: number
  answer: Answer | null
  answeredBy: Actor | null
  answeredAt: number | null
}

export interface EffectRecord {
  intent: Body<'effect.intended'>
  state: 'intended' | 'done' | 'failed' | 'unknown'
  runId: string
  seq: number
  at: number
  messageId: string | undefined
  output: string | undefined
  error: Failure | undefined
  usage: Usage | undefined
}

export interface Governor {
  isHitlEnabled: boolean
  actionLimit: number
  actionCounter: number
  total: number
}

export const ended = (run: Run): boolean =>
  run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'

export function emptyState(threadId: string): ThreadState {
  return {
    threadId,
    seq: 0,
    tenant: '',
    owner: '',
    clientId: '',
    agent: '',
    title: null,
    archived: false,
    createdAt: 0,
    updatedAt: 0,
    head: null,
    active: null,
    line: [],
    joined: null,
    leg: null,
    runs: new Map(),
    messages: new Map(),
    calls: new Map(),
    asks: new Map(),
    effects: new Map(),
    grants: new Map(),
    governor: { isHitlEnabled: false, actionLimit: 0, actionCounter: 0, total: 0 },
    states: new Map(),
    keys: new Map(),
  }
}

export function fold(threadId: string, entries: Iterable<Known>): ThreadState {
  const state = emptyState(threadId)
  for (const entry of entries) apply(state, entry)
  return state
}

/** Brings the state one entry further, in place. Total: no valid entry, in any order, makes it throw. */
export function apply(state: ThreadState, entry: Known): void {
  state.seq = entry.seq
  state.updatedAt = entry.at
  const run = entry.runId === undefined ? undefined : state.runs.get(entry.runId)
  switch (entry.kind) {
    case 'thread.created':
      Object.assign(state, entry.body)
      state.createdAt = entry.at
      return
    case 'thread.head':
      state.head = entry.body.runId
      return
    case 'thread.renamed':
      state.title = entry.body.title
      return
    case 'thread.archived':
      state.archived = entry.body.archived
      return
    case 'run.queued':
      queued(state, entry, run)
      return
    case 'run.started':
      if (!run) return
      run.status = 'running'
      run.leg = entry.body.leg
      run.parentRunId = entry.body.parentRunId
      return
    case 'run.waiting':
      if (!run) return
      run.status = 'waiting'
      if (state.active === run.runId) state.leg = null
      return
    case 'run.cancelling':
      if (!run || ended(run)) return
      run.status = 'cancelling'
      run.cancellingAt = entry.at
      return
    case 'run.completed':
      endRun(state, run, 'completed', entry)
      return
    case 'run.failed':
      endRun(state, run, 'failed', entry)
      if (run) run.error = entry.body.error
      return
    case 'run.cancelled':
      endRun(state, run, 'cancelled', entry)
      if (run) run.reason = entry.body.reason ?? null
      return
    case 'message.added':
      added(state, entry, run)
      return
    case 'message.retracted':
      return // what is retracted never became an entry
    case 'ask.raised':
      state.asks.set(entry.body.ask.askId, {
        ask: entry.body.ask,
        runId: entry.runId ?? '',
        seq: entry.seq,
        raisedAt: entry.at,
        answer: null,
        answeredBy: null,
        answeredAt: null,
      })
      run?.askIds.push(entry.body.ask.askId)
      return
    case 'ask.answered': {
      const record = state.asks.get(entry.body.askId)
      if (!record || record.answer) return
      record.answer = entry.body
      record.answeredBy = entry.actor
      record.answeredAt = entry.at
      return
    }
    case 'effect.intended':
      intended(state, entry, run)
      return
    case 'effect.done':
    case 'effect.failed':
    case 'effect.unknown':
      settled(state, entry)
      return
    case 'governor.set': {
      const { isHitlEnabled, actionLimit, resetCounter } = entry.body
      if (isHitlEnabled !== undefined) state.governor.isHitlEnabled = isHitlEnabled
      if (actionLimit !== undefined) state.governor.actionLimit = actionLimit
      if (resetCounter) state.governor.actionCounter = 0
      return
    }
    case 'grant.given':
      state.grants.set(entry.body.grantId, entry.body)
      return
    case 'grant.revoked':
      state.grants.delete(entry.body.grantId)
      return
    case 'state.patched':
      state.states.set(entry.body.agent, entry.body.value)
      return
    case 'key.used':
      if (!state.keys.has(entry.body.key)) state.keys.set(entry.body.key, entry.body)
      return
    case 'event':
      return
    default:
      entry satisfies never // entries of a newer version: kept, not understood
  }
}

function queued(state: ThreadState, entry: Known<'run.queued'>, known: Run | undefined): void {
  const { runId, legId = '' } = entry
  if (runId === undefined) return
  const { agent, behind, branch, options, why } = entry.body
  const run = known ?? newRun(runId, entry)
  if (!known) {
    run.agent = agent
    run.branch = branch
    run.options = options ?? {}
    state.runs.set(runId, run)
  }
  run.status = 'queued'
  run.legId = legId
  run.endedAt = null
  run.endSeq = null
  run.error = null
  if (why === 'recover') run.recoveries++
  if (behind) {
    state.line.push(runId)
    state.joined = runId
    return
  }
  state.line = state.line.filter((waiting) => waiting !== runId)
  state.active = runId
  state.leg = legId
}

function newRun(runId: string, entry: Known): Run {
  return {
    runId,
    agent: '',
    status: 'queued',
    parentRunId: undefined,
    branch: undefined,
    options: {},
    legId: '',
    leg: 0,
    firstSeq: entry.seq,
    recoveries: 0,
    messageIds: [],
    askIds: [],
    effectIds: [],
    createdAt: entry.at,
    endedAt: null,
    endSeq: null,
    cancellingAt: null,
    error: null,
    reason: null,
  }
}

function endRun(state: ThreadState, run: Run | undefined, status: RunStatus, entry: Known): void {
  if (!run) return
  run.status = status
  run.endedAt = entry.at
  run.endSeq = entry.seq
  // Ended before it began: its place is where it would have begun.
  if (run.parentRunId === undefined)
    run.parentRunId = run.branch ? run.branch.parentRunId : state.head
  state.line = state.line.filter((waiting) => waiting !== run.runId)
  if (state.active !== run.runId) return
  state.active = null
  state.leg = null
}

function added(state: ThreadState, entry: Known<'message.added'>, run: Run | undefined): void {
  const { message } = entry.body
  const { seq, at, runId = '' } = entry
  const again = state.messages.has(message.id)
  state.messages.set(message.id, { message, for: entry.body.for, runId, seq, at })
  callsOf(message).forEach((call, index) => {
    if (!state.calls.has(call.callId))
      state.calls.set(call.callId, { messageId: message.id, index })
  })
  if (state.title === null && message.role === 'user') state.title = titleFrom(message)
  if (!run) return
  if (!again) run.messageIds.push(message.id)
  run.recoveries = 0
}

export function titleFrom(message: Message): string {
  const line = textOf(message).trim().split('\n', 1)[0] ?? ''
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

function intended(state: ThreadState, entry: Known<'effect.intended'>, run: Run | undefined) {
  const { effectId, effect } = entry.body
  if (!state.effects.has(effectId)) run?.effectIds.push(effectId)
  state.effects.set(effectId, {
    intent: entry.body,
    state: 'intended',
    runId: entry.runId ?? '',
    seq: entry.seq,
    at: entry.at,
    messageId: entry.body.messageId,
    output: undefined,
    error: undefined,
    usage: undefined,
  })
  if (effect === 'tool') return
  state.governor.actionCounter++
  state.governor.total++
}

function settled(
  state: ThreadState,
  entry: Known<'effect.done' | 'effect.failed' | 'effect.unknown'>,
): void {
  const record = state.effects.get(entry.body.effectId)
  if (!record) return
  if (entry.kind === 'effect.unknown') record.state = 'unknown'
  else if (entry.kind === 'effect.failed') {
    record.state = 'failed'
    record.error = entry.body.error
  } else {
    record.state = 'done'
    record.output = entry.body.output
    record.usage = entry.body.usage
  }
}

/** The runs from the root to `runId`, or to the head. */
export function branch(state: ThreadState, runId: string | null = state.head): Run[] {
  const path: Run[] = []
  const seen = new Set<string>()
  let next: string | null | undefined = runId
  while (next) {
    const run = state.runs.get(next)
    if (!run || seen.has(next)) break
    seen.add(next)
    path.push(run)
    next = run.parentRunId
  }
  return path.reverse()
}

/** Messages of the branch, in the order they were said. */
export function messagesOf(state: ThreadState, runId: string | null = state.head): Message[] {
  const messages: Message[] = []
  for (const run of branch(state, runId)) {
    for (const id of run.messageIds) {
      const said = state.messages.get(id)
      if (said && said.for !== 'client') messages.push(said.message)
    }
  }
  return messages
}

/** What a run's next leg begins with: the branch it follows, and what it said itself. */
export function historyFor(state: ThreadState, run: Run): Message[] {
  if (run.parentRunId !== undefined) return messagesOf(state, run.runId)
  const parent = run.branch ? run.branch.parentRunId : state.head
  return [...messagesOf(state, parent), ...messagesOf(state, run.runId)]
}

export const pendingAsks = (state: ThreadState, run: Run): AskRecord[] =>
  run.askIds.map((id) => state.asks.get(id)!).filter((record) => record && !record.answer)
