import type { Message } from './messages.ts'
import type { AskRecord, Run, Said, ThreadState } from './state.ts'

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

/** What people see of the branch, in order: messages, and the questions that were asked. */
export function messagesShown(state: ThreadState): (Said | AskRecord)[] {
  const shown: (Said | AskRecord)[] = []
  const path = branch(state)
  const active = state.active === null ? undefined : state.runs.get(state.active)
  if (active && !path.includes(active)) path.push(active)
  for (const run of path) {
    const said = run.messageIds.map((id) => state.messages.get(id)!)
    const asked = run.askIds.map((id) => state.asks.get(id)!)
    shown.push(...[...said, ...asked].sort((a, b) => a.seq - b.seq))
  }
  return shown.filter((one) => one && ('ask' in one || one.for !== 'model'))
}
