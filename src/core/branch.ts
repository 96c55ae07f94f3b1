import { editOfCall, withEdit } from './edited.ts'
import { asText, type Message, toolText } from './messages.ts'
import type { Activity, AskRecord, Kept, Run, Said, ThreadState } from './state.ts'

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
  return branch(state, runId).flatMap((run) => saidIn(state, run))
}

/** Messages of one run, in the order they were said. */
export function saidIn(state: ThreadState, run: Run): Message[] {
  const messages: Message[] = []
  for (const id of run.messageIds) {
    const said = state.messages.get(id)
    if (said && said.for !== 'client' && said.path === undefined) messages.push(said.message)
  }
  return messages
}

/**
 * What a run's next leg begins with: the branch it follows, and what it said itself. Calls that were begun
 * when an earlier run ended have no result among its messages; a model must not take them for calls that
 * were not made.
 */
export function historyFor(state: ThreadState, run: Run): Message[] {
  const before = branch(state, parentOf(state, run))
  const messages = before.flatMap((one) => [...saidIn(state, one), ...beginnings(state, one)])
  return [...messages, ...saidIn(state, run)]
}

/** What is known by now of calls that outlasted their run. */
function beginnings(state: ThreadState, run: Run): Message[] {
  if (run.status !== 'cancelled' && run.status !== 'failed') return []
  const said = run.messageIds.map((id) => state.messages.get(id)!)
  const asked = run.askIds.map((id) => state.asks.get(id)!)
  const told = new Set(said.map(({ message }) => message.callId))
  const begun = run.effectIds.flatMap((id): Message[] => {
    const { intent, state: stands, output = '', error } = state.effects.get(id)!
    const { effect, callId, name } = intent
    if (effect !== 'tool' || callId === undefined || told.has(callId)) return []
    const call = { type: 'call' as const, callId, name, input: '' }
    const edit = editOfCall(state, intent.askId)
    const say = (text: string, failed: boolean) => [
      withEdit(toolText(`late_${callId}`, call, text, failed), edit),
    ]
    if (stands === 'done') return say(output, false)
    if (stands === 'failed') return say(error?.message ?? 'It failed.', true)
    return say('The run ended while this call was under way: it may have been carried out.', true)
  })
  return [...heldResults(said, asked).map(({ message }) => message), ...begun]
}

/** What was said at the end of a path in a run, to a sub-agent and by it. */
export function messagesAt(state: ThreadState, run: Run, path: string): Message[] {
  return run.messageIds
    .map((id) => state.messages.get(id))
    .filter((said) => said?.path === path && said.for !== 'client')
    .map((said) => said!.message)
}

/** What an agent kept on the branch that a run follows, and in the run itself. */
export function keptFor(state: ThreadState, run: Run, by = run.agent): Kept[] {
  const path = new Set([...branch(state, parentOf(state, run)), run].map(({ runId }) => runId))
  return (state.kept.get(by) ?? []).filter(({ runId }) => path.has(runId))
}

/** A first leg follows the branch it names, or the head; later legs stay where the run is. */
export function parentOf(state: ThreadState, run: Run): string | null {
  if (run.parentRunId !== undefined) return run.parentRunId
  return run.branch ? run.branch.parentRunId : state.head
}

export const pendingAsks = (state: ThreadState, run: Run): AskRecord[] =>
  run.askIds.map((id) => state.asks.get(id)!).filter((record) => record && !record.answer)

/** The run that the active one follows: an edit that has not begun yet leaves its branch already. */
function tipOf(state: ThreadState): string | null {
  const active = state.runs.get(state.active ?? '')
  if (active?.parentRunId !== undefined || !active?.branch) return state.head
  return active.branch.parentRunId
}

/** The branch, the run that is at work, and those that wait in line. */
export function shownRuns(state: ThreadState): Set<Run> {
  const path = new Set(branch(state, tipOf(state)))
  for (const runId of [state.active ?? '', ...state.line]) {
    const run = state.runs.get(runId)
    if (run) path.add(run)
  }
  return path
}

/** What clients said that their own calls came to, while the step waits for other answers. */
function heldResults(said: readonly Said[], asked: readonly AskRecord[]): Said[] {
  const told = new Set(said.map(({ message }) => message.callId))
  return asked.flatMap(({ ask, answer, runId, seq, answeredAt }): Said[] => {
    const { kind, askId, callId, tool: name = '' } = ask
    if (kind !== 'client_tool' || callId === undefined || told.has(callId)) return []
    if (answer?.state !== 'answered') return []
    const { value = '', messageId = `${askId}-answer` } = answer
    const message = toolText(messageId, { type: 'call', callId, name, input: '' }, asText(value))
    return [{ message, for: 'client', path: undefined, runId, seq, at: answeredAt ?? 0 }]
  })
}

/** What people see of the branch, in order: messages, questions, activities, and what waits in line. */
export function whatIsShown(state: ThreadState): (Said | AskRecord | Activity)[] {
  const shown: (Said | AskRecord | Activity)[] = []
  const activities = [...state.activities.values()]
  for (const run of shownRuns(state)) {
    const said = run.messageIds.map((id) => state.messages.get(id)!)
    const asked = run.askIds.map((id) => state.asks.get(id)!)
    const shows = activities.filter(({ runId }) => runId === run.runId)
    const other = asked.length + shows.length > 0
    const all = [...said, ...asked, ...shows]
    shown.push(...(other ? all.sort((a, b) => a.seq - b.seq) : all))
    shown.push(...heldResults(said, asked))
  }
  return shown.filter((one) => !('message' in one) || one.for !== 'model')
}
