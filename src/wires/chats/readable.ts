import type { Runtime } from '../../core/runtime.ts'
import { chatSummary, currentRuns, interactionJson } from './interaction.ts'

/** The files of a chat that people open: what it is, and each interaction that changed. */
export async function readable(runtime: Runtime, threadId: string, runIds: readonly string[]) {
  const { state } = await runtime.thread(threadId)
  const status = state.active === null ? 'idle' : 'running'
  const files: Record<string, unknown> = { 'chat.json': chatSummary({ ...state, status }) }
  const current = currentRuns(state)
  for (const runId of runIds) {
    const run = state.runs.get(runId)
    if (!run) continue
    files[`interactions/${runId}.json`] = interactionJson(state, run, current.includes(run))
  }
  return files
}
