import type { AgentEvent } from './agent.ts'
import { charged, counted, metered, setTo } from './budget-fold.ts'
import type { Draft, Known } from './entries.ts'
import { callsOf, type Message, textOf } from './messages.ts'
import {
  emptyState,
  ended,
  type Hook,
  type Run,
  type RunStatus,
  type ThreadState,
} from './state.ts'
import { addUsage, lineOf } from './usage.ts'

export function fold(threadId: string, entries: Iterable<Known>): ThreadState {
  const state = emptyState(threadId)
  for (const entry of entries) apply(state, entry)
  return state
}

/** Brings the state one entry further, in place. Total: no valid entry, in any order, makes it throw. */
export function apply(state: ThreadState, entry: Known): void {
  state.seq = entry.seq
  state.updatedAt = entry.at
  if (entry.link !== undefined) state.chain = { link: entry.link, seq: entry.seq }
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
      state.title = titleAfter(state.title, entry)
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
      run.steps = []
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
    case 'ask.raised': {
      const replaced = state.asks.get(entry.body.ask.replaces ?? '')
      state.asks.set(entry.body.ask.askId, {
        ask: entry.body.ask,
        ...(replaced && { first: replaced.first ?? replaced.ask }),
        runId: entry.runId ?? '',
        seq: entry.seq,
        raisedAt: entry.at,
        hook: entry.body.hook,
        answer: null,
        answeredBy: null,
        answeredAt: null,
      })
      run?.askIds.push(entry.body.ask.askId)
      if (entry.body.ask.kind === 'budget') state.governor.mark = entry.id
      hooked(state, entry.body.ask.askId, entry.at, entry.body.hook && 'raised')
      return
    }
    case 'ask.answered': {
      const record = state.asks.get(entry.body.askId)
      if (!record || record.answer) return
      record.answer = entry.body
      record.answeredBy = entry.actor
      record.answeredAt = entry.at
      hooked(state, entry.body.askId, entry.at, record.hook === 'both' ? 'settled' : undefined)
      return
    }
    case 'hook.tried': {
      const { askId, about, attempt, next } = entry.body
      const hook = state.hooks.get(askId)
      if (hook?.about === about) Object.assign(hook, { attempt, at: next })
      return
    }
    case 'hook.done':
      if (state.hooks.get(entry.body.askId)?.about === entry.body.about)
        state.hooks.delete(entry.body.askId)
      return
    case 'effect.intended':
      intended(state, entry, run)
      return
    case 'effect.done':
    case 'effect.failed':
    case 'effect.unknown':
      settled(state, entry, run)
      return
    case 'governor.set':
      setTo(state, entry)
      return
    case 'governor.metered':
      metered(state, entry, run)
      return
    case 'grant.given':
      state.grants.set(entry.body.grantId, { ...entry.body, by: entry.actor, at: entry.at })
      return
    case 'grant.revoked':
      state.grants.delete(entry.body.grantId)
      return
    case 'state.patched':
      patched(state, entry, run)
      return
    case 'checkpoint.kept': {
      const { agent, checkpointId, data } = entry.body
      const kept = state.kept.get(agent) ?? []
      kept.push({ checkpointId, data, runId: entry.runId ?? '' })
      state.kept.set(agent, kept)
      return
    }
    case 'key.used':
      if (!state.keys.has(entry.body.key)) state.keys.set(entry.body.key, entry.body)
      return
    case 'event':
      happened(state, entry, run)
      return
    default:
      entry satisfies never // entries of a newer version: kept, not understood
  }
}

function queued(state: ThreadState, entry: Known<'run.queued'>, known: Run | undefined): void {
  const { runId, legId = '' } = entry
  if (runId === undefined) return
  const { agent, behind, branch, options, why, request } = entry.body
  const run = known ?? newRun(runId, entry)
  if (!known) {
    run.agent = agent
    run.branch = branch
    run.options = options ?? {}
    run.before = state.states.get(agent)
    state.runs.set(runId, run)
  }
  if (request !== undefined) run.requests.push(request)
  run.status = 'queued'
  run.steps = []
  run.legId = legId
  run.legs = why === 'recover' || why === 'handover' ? [...run.legs, legId] : [legId]
  run.queued = { at: entry.at, fence: entry.fence }
  run.endedAt = null
  run.endSeq = null
  run.error = null
  if (why === 'recover') run.recoveries++
  if (why === 'retry') {
    if (options) run.options = options
    run.released = false
    state.lastEnded = state.lastEnded.filter((ended) => ended !== runId)
    run.retriedSeq = entry.seq
    run.lastCall = null
    run.extended = false
  }
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
    legs: [],
    usage: [],
    failedCalls: 0,
    lastCall: null,
    extended: false,
    agentRetries: 0,
    queued: { at: entry.at, fence: entry.fence },
    firstSeq: entry.seq,
    retriedSeq: 0,
    recoveries: 0,
    requests: [],
    released: false,
    before: undefined,
    given: undefined,
    steps: [],
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
  run.steps = []
  run.endedAt = entry.at
  run.endSeq = entry.seq
  release(state, run)
  // Ended before it began: its place is where it would have begun.
  if (run.parentRunId === undefined)
    run.parentRunId = run.branch ? run.branch.parentRunId : state.head
  state.line = state.line.filter((waiting) => waiting !== run.runId)
  if (state.active !== run.runId) return
  state.active = null
  state.leg = null
}

/** Ended runs whose options and states stay in memory. */
const endedRuns = 4

/** Clients send large options and states with every run. Those of runs that ended before the last are dropped. */
function release(state: ThreadState, { runId }: Run): void {
  if (!state.lastEnded.includes(runId)) state.lastEnded.push(runId)
  if (state.lastEnded.length <= endedRuns) return
  const run = state.runs.get(state.lastEnded.shift() ?? '')
  if (!run) return
  run.released = true
  run.options = {}
  run.before = undefined
  run.given = undefined
}

function added(state: ThreadState, entry: Known<'message.added'>, run: Run | undefined): void {
  const { message } = entry.body
  const { seq, at, runId = '' } = entry
  const again = state.messages.has(message.id)
  const { for: whom, path } = entry.body
  state.messages.set(message.id, { message, for: whom, path, runId, seq, at })
  callsOf(message).forEach((call, index) => {
    if (!state.calls.has(call.callId))
      state.calls.set(call.callId, { messageId: message.id, index })
  })
  for (const part of message.parts) {
    if (part.type !== 'media' || !part.stored || state.large.has(part.stored.digest)) continue
    state.large.set(part.stored.digest, seq)
  }
  state.title = titleAfter(state.title, entry)
  if (!run) return
  if (!again) run.messageIds.push(message.id)
  run.recoveries = 0
}

function patched(state: ThreadState, entry: Known<'state.patched'>, named: Run | undefined): void {
  const { agent, value } = entry.body
  state.states.set(agent, value)
  if (entry.actor.type === 'agent') return
  const run = named ?? state.runs.get(state.active ?? '')
  if (run?.agent === agent) run.given = { id: entry.id, value }
}

/** Steps and activities, as far as the value is one; other events are for whoever watches. */
function happened(state: ThreadState, entry: Known<'event'>, run: Run | undefined): void {
  const { name, value } = entry.body
  const said = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  if (name === 'activity') {
    const { id, type, content } = said
    if (typeof id !== 'string' || typeof type !== 'string') return
    if (typeof content !== 'object' || content === null || Array.isArray(content)) return
    const { runId = '', seq } = entry
    const first = state.activities.get(id)
    state.activities.set(id, { id, type, content, runId, seq: first?.seq ?? seq })
  }
  if (name === 'context' && typeof said.from === 'string') state.cuts.push(said.from)
  if (run && name === 'retry' && typeof said.agent === 'string') run.agentRetries++
  if (name === 'guardrail' && entry.actor.type !== 'agent') {
    const { messageId, rule = '', reason = '' } = said
    if (typeof messageId !== 'string') return
    state.refused.set(messageId, { rule: String(rule), reason: String(reason) })
  }
  if (!run || typeof said.name !== 'string') return
  if (name === 'step.started') run.steps.push(said.name)
  if (name === 'step.finished') run.steps = run.steps.filter((step) => step !== said.name)
}

/** What was to be told before is not any more: only how it stands counts. */
function hooked(state: ThreadState, askId: string, at: number, about: Hook['about'] | undefined) {
  if (about === undefined) state.hooks.delete(askId)
  else state.hooks.set(askId, { about, attempt: 0, at, since: at })
}

/** The title of a thread after an entry: the name that it was given, or its first user message. */
export function titleAfter(title: string | null, entry: Pick<Draft, 'kind' | 'body'>) {
  const { kind, body } = entry as Draft
  if (kind === 'thread.renamed') return body.title
  if (kind !== 'message.added' || title !== null || body.message.role !== 'user') return title
  return titleFrom(body.message)
}

function titleFrom(message: Message): string {
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
    period: state.governor.period,
  })
  if (effect === 'tool') return
  if (run) lineOf(run.usage, entry.legId ?? '', entry.body.name).calls++
  counted(state.governor, entry, run)
}

function settled(
  state: ThreadState,
  entry: Known<'effect.done' | 'effect.failed' | 'effect.unknown'>,
  run: Run | undefined,
): void {
  if (entry.kind === 'effect.failed' && entry.body.effect === 'model' && run) run.failedCalls++
  if (entry.kind !== 'effect.unknown' && entry.body.usage && run)
    addUsage(lineOf(run.usage, entry.legId ?? '', entry.body.name), entry.body.usage)
  const record = state.effects.get(entry.body.effectId)
  if (!record) return
  charged(state.governor, entry, record)
  if (entry.kind === 'effect.unknown') {
    record.state = 'unknown'
    if (entry.body.timedOut) record.timedOutAt = entry.at
  } else if (entry.kind === 'effect.failed') {
    record.state = 'failed'
    record.error = entry.body.error
  } else {
    record.state = 'done'
    record.output = entry.body.output
    if (entry.body.unrecorded) record.unrecorded = entry.body.unrecorded as AgentEvent[]
    record.usage = entry.body.usage
  }
}
