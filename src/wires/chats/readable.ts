import type { Runtime } from '../../core/runtime.ts'
import type { ThreadState } from '../../core/state.ts'
import { chatSummary, currentRuns, interactionJson } from './interaction.ts'

/** The files of a chat that people open: what it is, and each interaction that changed. */
export async function readable(runtime: Runtime, threadId: string, runIds: readonly string[]) {
  const { state } = await runtime.thread(threadId)
  const { active, leg } = state
  const status = active === null ? 'idle' : leg === null ? 'waiting' : 'running'
  const files: Record<string, unknown> = { 'chat.json': chatSummary({ ...state, status }) }
  const current = currentRuns(state)
  for (const runId of withReplaced(state, runIds)) {
    const run = state.runs.get(runId)
    if (!run) continue
    files[`interactions/${runId}.json`] = interactionJson(state, run, current.includes(run))
  }
  return files
}

/** An edit also changes what it takes off the branch: the run it replaces, and all that follow. */
function withReplaced({ runs }: ThreadState, runIds: readonly string[]): Set<string> {
  const off = new Set(runIds.map((id) => runs.get(id)?.branch?.replaces ?? ''))
  off.delete('')
  if (off.size > 0)
    for (const { runId, parentRunId } of runs.values())
      if (off.has(parentRunId ?? '')) off.add(runId)
  return new Set([...runIds, ...off])
}
