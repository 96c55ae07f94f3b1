import { pendingAsks, shownRuns } from '../../core/branch.ts'
import { governorView } from '../../core/budget.ts'
import { asDecided, editOf } from '../../core/edited.ts'
import type { Failure } from '../../core/entries.ts'
import { errors } from '../../core/errors.ts'
import { type AskRecord, ended, type Run, type ThreadState } from '../../core/state.ts'

/** Where a thread stands, in a few words: what a page that waits for changes is told. */
export function standing(state: ThreadState) {
  const active = state.runs.get(state.active ?? '')
  return {
    seq: state.seq,
    head: state.head,
    status: active?.status ?? 'idle',
    runId: state.active,
    queued: state.line.length,
    name: state.title,
    archived: state.archived,
    asks: active ? pendingAsks(state, active).map(({ ask }) => ask.askId) : [],
  }
}

/**
 * Returns the details of a thread that a page shows besides its messages: turns that have other branches, did not end well or have
 * an ask that no call shows, how its calls stand and how long they took, and what is asked. A thread that went
 * straight on has a short outline, however long it is.
 */
export function outlineOf(state: ThreadState) {
  const runs = [...shownRuns(state)]
  const active = state.runs.get(state.active ?? '')
  const siblings = siblingsIn(state)
  return {
    id: state.clientId,
    agent: state.agent,
    ...standing(state),
    turns: runs.flatMap((run, i) => {
      const branches = siblings(run)
      const plain = branches.length === 1 && run.status === 'completed' && i < runs.length - 1
      return plain && !asksWithoutCall(state, run) ? [] : [turnOf(state, run, branches)]
    }),
    calls: Object.fromEntries(runs.flatMap((run) => [...callsOf(state, run)])),
    asks: (active ? pendingAsks(state, active) : []).map((record) => ({
      ...askOf(record),
      raisedAt: record.raisedAt,
      deadline: record.ask.deadline,
      audience: record.ask.audience,
    })),
    decided: runs.flatMap((run) => decidedOf(state, run)),
    governor: governorView(state.governor),
  }
}

function askOf(record: AskRecord) {
  const { runId } = record
  const { askId: id, kind, title, tool, callId, step } = asDecided(record)
  return { id, runId, kind, title, tool, callId, step }
}

/** Whether the run has an ask that no call shows. A client has the ask for more budget as a call. */
const asksWithoutCall = (state: ThreadState, { askIds }: Run): boolean =>
  askIds.some((id) => {
    const ask = state.asks.get(id)?.ask
    return ask && ask.callId === undefined && ask.kind !== 'budget'
  })

/** How the questions of a run ended: who decided, where, and what. */
function decidedOf(state: ThreadState, { askIds }: Run) {
  return askIds.flatMap((id) => {
    const record = state.asks.get(id)
    if (!record?.answer || record.ask.kind === 'client_tool') return []
    const { state: how, reason, outcome, remember } = record.answer
    const edit = editOf(record)
    return [
      {
        ...{ ...askOf(record), state: how, reason, outcome, remember },
        ...{ by: record.answeredBy, at: record.answeredAt },
        ...(edit && { edited: true, input: edit.input, originalInput: edit.original }),
      },
    ]
  })
}

/** Runs that follow the same one, oldest first: versions of one turn. */
function siblingsIn(state: ThreadState): (run: Run) => string[] {
  const after = new Map<string | null, string[]>()
  for (const { runId, parentRunId } of state.runs.values()) {
    if (parentRunId === undefined) continue
    after.set(parentRunId, [...(after.get(parentRunId) ?? []), runId])
  }
  return ({ runId, parentRunId }) =>
    (parentRunId === undefined ? undefined : after.get(parentRunId)) ?? [runId]
}

function turnOf(state: ThreadState, run: Run, branches: string[]) {
  const { runId, agent, status, error, createdAt, endedAt, messageIds } = run
  const said = messageIds.filter((id) => state.messages.get(id)?.message.role === 'user')
  return {
    ...{ runId, agent, status, createdAt, endedAt, branches },
    messageId: said.at(-1) ?? null,
    lastMessageId: messageIds.at(-1) ?? null,
    error: error && ended(run) ? errorOf(error) : null,
  }
}

/** `specific`: the message is not the default one of its code, so a page must not replace it by words of its own. */
function errorOf({ code, message }: Failure) {
  const isDefault = message === (errors as Record<string, { sentence: string }>)[code]?.sentence
  return { code, message, ...(!isDefault && { specific: true }) }
}

interface Standing {
  state: string
  startedAt?: number
  endedAt?: number
  /** It did something, or may have, that no other branch undoes. */
  stays?: true
  /** The grant that made an approval unnecessary. */
  grantId?: string
}

function callsOf(state: ThreadState, run: Run) {
  const calls = new Map<string, Standing>()
  for (const id of run.effectIds) {
    const { intent, state: stands, at } = state.effects.get(id)!
    if (intent.effect !== 'tool' || intent.callId === undefined) continue
    const first = calls.get(intent.callId)?.startedAt
    const began = stands === 'intended' ? 'running' : stands
    const stays = !intent.idempotent && intent.access !== 'read' && stands !== 'failed'
    const granted = intent.grantId !== undefined && { grantId: intent.grantId }
    const times = { state: began, startedAt: first ?? at }
    calls.set(intent.callId, { ...times, ...(stays && { stays }), ...granted })
  }
  for (const id of run.messageIds) {
    const { message, at } = state.messages.get(id)!
    if (message.role !== 'tool' || message.callId === undefined) continue
    const how = message.failed ? 'failed' : 'done'
    calls.set(message.callId, { ...calls.get(message.callId), state: how, endedAt: at })
  }
  return calls
}
