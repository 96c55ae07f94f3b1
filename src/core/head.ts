import { type Actor, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { ThreadState } from './state.ts'
import { decide, type Thread } from './thread.ts'

/** Shows the newest branch that a run is on; what is said next follows it. Gives the run at its tip. */
export async function showBranch(thread: Thread, runId: string, actor: Actor): Promise<string> {
  return await decide(thread, () => {
    const { state } = thread
    if (state.runs.get(runId)?.parentRunId === undefined) throw new RuntimeError('run_not_found')
    const tip = tipOver(state, runId)
    if (tip === state.head) return { result: tip }
    if (state.active !== null) {
      const fix = 'Another branch can be shown once what runs here has ended.'
      throw new RuntimeError('thread_busy', fix, { data: { run_id: state.active } })
    }
    const expect = [
      { fact: 'active', is: null },
      { fact: 'head', is: state.head },
    ]
    const writing = { guard: { expect }, actor }
    return { drafts: [draft('thread.head', { runId: tip })], writing, result: tip }
  })
}

/** Runs are kept in the order they came, each after the one it follows. */
function tipOver(state: ThreadState, runId: string): string {
  const above = new Set([runId])
  let tip = runId
  for (const run of state.runs.values()) {
    if (!run.parentRunId || !above.has(run.parentRunId)) continue
    above.add(run.runId)
    tip = run.runId
  }
  return tip
}
