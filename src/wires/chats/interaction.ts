import { branch, messagesOf, pendingAsks, saidIn } from '../../core/branch.ts'
import { editOfCall } from '../../core/edited.ts'
import type { Body } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { validHistory } from '../../core/history.ts'
import { callsOf, type Message, textOf } from '../../core/messages.ts'
import type { AskRecord, Run, ThreadState } from '../../core/state.ts'
import { ended } from '../../core/state.ts'
import { totalOf, type UsageLine } from '../../core/usage.ts'
import { pauses } from '../../lib/pause.ts'
import { innerPartsOf, lastSaid, partsOf } from '../agents-told.ts'
import { cardJson } from '../card.ts'

/** The chats wire's words for what the journal holds. Built when read, kept nowhere. */
export type AgentEventJson =
  | {
      type: 'TOOL_CALL'
      id: string
      tool_name: string
      tool_input: string
      /** The approver changed the arguments: `tool_input` is what ran. */
      edited?: true
      original_tool_input?: string
      /** The call needed no approval because of this grant. */
      grant_id?: string
    }
  | { type: 'TOOL_RESULT'; id: string; tool_name: string; tool_output: string; not_run?: boolean }
  | { type: 'THINKING'; content: string; message_id: string; partial?: boolean }
  | { type: 'ANSWER'; content: string; message_id: string; partial?: boolean }

export function statusOf({ status }: Run): string {
  switch (status) {
    case 'completed':
      return 'COMPLETED'
    case 'failed':
      return 'FAILED'
    case 'cancelled':
      return 'CANCELLED'
    case 'waiting':
      return 'WAITING_APPROVAL'
    default:
      return 'RUNNING'
  }
}

export const isoTime = (at: number): string => new Date(at).toISOString()

/** The runs on the branch that is shown, those that will follow its head, and those that never did. */
export function currentRuns(state: ThreadState): Run[] {
  const { runs, active, line } = state
  const path = branch(state)
  const onPath = new Set<string | null>([null, ...path.map(({ runId }) => runId)])
  const waits = ({ runId }: Run) => runId === active || line.includes(runId)
  const neverBegan = (run: Run) =>
    run.leg === 0 && !run.branch && onPath.has(run.parentRunId ?? null) && !replaced(run)
  /** An edit takes the place of a run and of all that came between. */
  const replaced = ({ parentRunId, firstSeq }: Run) =>
    path.some((edit) => {
      const from = runs.get(edit.branch?.replaces ?? '')?.firstSeq
      if (from === undefined || edit.parentRunId !== parentRunId) return false
      return from <= firstSeq && firstSeq < edit.firstSeq
    })
  const others = [...runs.values()].filter((run) =>
    run.parentRunId === undefined ? waits(run) : neverBegan(run),
  )
  return [...new Set([...path, ...others])].sort((a, b) => a.firstSeq - b.firstSeq)
}

/** `stateless`: the final state is left out; it is in the interaction read alone. */
export function interactionJson(state: ThreadState, run: Run, current: boolean, stateless = false) {
  const waiting = pendingAsks(state, run)
  return {
    id: run.runId,
    status: statusOf(run),
    ...(run.status === 'queued' && run.leg === 0 && { queued: true }),
    ...(waiting[0] && { kind: waiting[0].ask.kind, approvals: waiting.map(approvalJson) }),
    ...(run.status === 'cancelling' && { cancelling: true }),
    ...(!current && { superseded: true }),
    ...(run.parentRunId !== undefined && { parent_id: run.parentRunId }),
    agent: run.agent,
    user_message: userMessage(state, run),
    agent_events: agentEvents(state, run),
    ...workflowJson(state, run),
    final_agent_state:
      ended(run) && !stateless ? { messages: openAiMessages(messagesOf(state, run.runId)) } : null,
    ...(ended(run) && stateless && { final_agent_state_omitted: true }),
    ...(run.error && { error: run.error }),
    ...usageJson(run.usage),
    created_at: isoTime(run.createdAt),
    completed_at: run.endedAt === null ? null : isoTime(run.endedAt),
  }
}

/** Of a run whose agent has its work done by others: how they stand, and what came of it, all or in part. */
function workflowJson(state: ThreadState, run: Run): { agents?: object; output?: unknown } {
  const parts = [...innerPartsOf(run, state), ...partsOf(run, state)]
  const output = lastSaid(run, state)?.meta?.output
  return {
    ...(parts.length > 0 && { agents: Object.fromEntries(parts) }),
    ...(output !== undefined && { output }),
  }
}

export function userMessage(state: ThreadState, run: Run): string {
  const said = run.messageIds.map((id) => state.messages.get(id)?.message)
  const last = said.findLast((message) => message?.role === 'user')
  return last ? textOf(last) : ''
}

export function approvalJson({ ask }: Pick<AskRecord, 'ask'>) {
  const { askId, kind, tool, input, deadline } = ask
  return {
    approval_id: askId,
    action: tool ?? kind,
    kind,
    tool_name: tool ?? null,
    tool_input: input === undefined ? null : JSON.stringify(input),
    timeout_at: isoTime(deadline),
    card: cardJson(ask),
  }
}

/** What a message says, in events: reasoning and words on the way to a call are thinking. */
export function messageEvents(message: Message): AgentEventJson[] {
  const about = { message_id: message.id, ...(message.partial && { partial: true }) }
  if (message.role === 'tool') {
    const notRun = message.meta?.notRun === true && { not_run: true }
    const id = message.callId ?? ''
    const text = { tool_name: message.name ?? '', tool_output: textOf(message) }
    const result = { type: 'TOOL_RESULT' as const, id, ...text, ...notRun }
    // A call that was made elsewhere is no effect of ours: its result tells of it.
    const input = message.meta?.calledWith
    if (typeof input !== 'string') return [result]
    const call = { type: 'TOOL_CALL' as const, id, tool_name: text.tool_name, tool_input: input }
    return [call, result]
  }
  if (message.role !== 'assistant') return []
  const calling = callsOf(message).length > 0
  return message.parts.flatMap((part): AgentEventJson[] => {
    if (part.type !== 'text' && part.type !== 'reasoning') return []
    const type = part.type === 'reasoning' || calling ? 'THINKING' : 'ANSWER'
    return [{ type, content: part.text, ...about }]
  })
}

function agentEvents(state: ThreadState, run: Run): AgentEventJson[] {
  const events: { seq: number; event: AgentEventJson }[] = []
  for (const id of run.messageIds) {
    const said = state.messages.get(id)
    if (!said || said.for === 'model') continue
    const by = said.path === undefined ? {} : { path: said.path }
    for (const event of messageEvents(said.message))
      events.push({ seq: said.seq, event: { ...event, ...by } })
  }
  for (const id of run.effectIds) {
    const record = state.effects.get(id)
    if (record?.intent.effect !== 'tool') continue
    events.push({ seq: record.seq, event: callEvent(record.intent, state) })
  }
  return events.sort((a, b) => a.seq - b.seq).map(({ event }) => event)
}

export function callEvent(intent: Body<'effect.intended'>, state: ThreadState) {
  const edit = editOfCall(state, intent.askId)
  return {
    type: 'TOOL_CALL' as const,
    id: intent.callId ?? '',
    tool_name: intent.name,
    tool_input: JSON.stringify(intent.input ?? {}),
    ...(edit && {
      edited: true as const,
      original_tool_input: JSON.stringify(edit.original ?? {}),
    }),
    ...(intent.grantId !== undefined && { grant_id: intent.grantId }),
  }
}

/** OpenAI's chat format, valid as a request: every call has its result. */
export function openAiMessages(messages: readonly Message[]) {
  return validHistory(messages).map((message) => {
    const content = textOf(message)
    if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content }
    const calls = callsOf(message).map(({ callId, name, input }) => ({
      id: callId,
      type: 'function',
      function: { name, arguments: input },
    }))
    if (calls.length === 0) return { role: message.role, content }
    return { role: message.role, content: content || null, tool_calls: calls }
  })
}

/** Characters of the final states of one answer: each state holds the whole history before it. */
const stateBudget = 4_000_000
/** Characters that a message takes in a final state besides its text and the arguments of its calls, estimated. */
const messageLength = 200

/** Characters of the final state of each run, estimated, without the state of the runs before it. */
export function stateLengths(state: ThreadState): Map<Run, { before: number; own: number }> {
  const lengths = new Map<Run, { before: number; own: number }>()
  for (const run of [...state.runs.values()].sort((a, b) => a.firstSeq - b.firstSeq)) {
    const parent = lengths.get(state.runs.get(run.parentRunId ?? '') ?? run)
    const before = parent ? parent.before + parent.own : 0
    const own = saidIn(state, run).reduce((sum, message) => sum + lengthOf(message), 0)
    lengths.set(run, { before, own })
  }
  return lengths
}

function lengthOf({ parts }: Message): number {
  let length = messageLength
  for (const part of parts)
    length += part.type === 'text' ? part.text.length : part.type === 'call' ? part.input.length : 0
  return length
}

/** The runs, oldest of them first, for whose final states a whole chat has no room. The last run has its state. */
function withoutState(state: ThreadState, runs: readonly Run[]): Set<Run> {
  const lengths = stateLengths(state)
  const left = new Set<Run>()
  let room = stateBudget
  for (const run of runs.toReversed()) {
    const { before, own } = lengths.get(run)!
    room -= before + own
    if (room < 0 && run !== runs.at(-1)) left.add(run)
  }
  return left
}

/** A chat with its interactions. Lets other requests run between interactions: each is as it is when it is built. */
export async function chatJson(
  state: ThreadState,
  page: { limit?: number; before?: string; all: boolean },
) {
  const shown = currentRuns(state)
  const current = new Set(shown.map(({ runId }) => runId))
  let runs = page.all ? [...state.runs.values()] : shown
  const end = page.before === undefined ? -1 : runs.findIndex(({ runId }) => runId === page.before)
  if (page.before !== undefined && end < 0)
    throw new RuntimeError('run_not_found', undefined, { field: 'query.before' })
  if (end >= 0) runs = runs.slice(0, end)
  const more = page.limit !== undefined && runs.length > page.limit
  if (page.limit !== undefined) runs = runs.slice(-page.limit)
  const stateless = withoutState(state, runs)
  const interactions: ReturnType<typeof interactionJson>[] = []
  const pause = pauses()
  for (const run of runs) {
    await pause()
    interactions.push(interactionJson(state, run, current.has(run.runId), stateless.has(run)))
  }
  return {
    id: state.clientId,
    title: state.title,
    interactions,
    ...(more && { before: runs[0]?.runId }),
    ...usageJson([...state.runs.values()].flatMap(({ usage }) => usage)),
    created_at: isoTime(state.createdAt),
  }
}

/** What was used, of all branches, every attempt counted; nothing where no model was called. */
export function usageJson(lines: readonly UsageLine[]): { usage?: object } {
  if (lines.length === 0) return {}
  const { calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, cost } =
    totalOf(lines)
  return {
    usage: {
      calls,
      input_tokens: inputTokens ?? 0,
      output_tokens: outputTokens ?? 0,
      ...(cachedInputTokens !== undefined && { cached_input_tokens: cachedInputTokens }),
      ...(reasoningTokens !== undefined && { reasoning_tokens: reasoningTokens }),
      ...(cost !== undefined && { cost }),
    },
  }
}

export function chatSummary(row: {
  clientId: string
  title: string | null
  agent: string
  status: string
  createdAt: number
  updatedAt: number
}) {
  const { clientId, title, agent, status, createdAt, updatedAt } = row
  const times = { created_at: isoTime(createdAt), updated_at: isoTime(updatedAt) }
  return { id: clientId, title, agent, status, ...times }
}
