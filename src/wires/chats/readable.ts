import { saidIn } from '../../core/branch.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ended, type Run, type ThreadState } from '../../core/state.ts'
import {
  chatSummary,
  currentRuns,
  interactionJson,
  openAiMessages,
  stateLengths,
} from './interaction.ts'

/**
 * Characters of the history before an interaction up to which its file has the final state. Beyond, the file has the
 * messages of the interaction alone: the files of a chat would otherwise grow with the square of its length.
 */
const maxHistory = 20_000

/** The files of a chat that people open: what it is, and each interaction that changed. */
export async function readable(runtime: Runtime, threadId: string, runIds: readonly string[]) {
  const { state } = await runtime.thread(threadId)
  const { active, leg } = state
  const status = active === null ? 'idle' : leg === null ? 'waiting' : 'running'
  const files: Record<string, unknown> = { 'chat.json': chatSummary({ ...state, status }) }
  const current = currentRuns(state)
  const lengths = stateLengths(state)
  for (const runId of withReplaced(state, runIds)) {
    const run = state.runs.get(runId)
    if (!run) continue
    const { before } = lengths.get(run)!
    const isCurrent = current.includes(run)
    files[`interactions/${runId}.json`] =
      before > maxHistory && ended(run)
        ? { ...interactionJson(state, run, isCurrent, true), messages: ownMessages(state, run) }
        : interactionJson(state, run, isCurrent)
  }
  return files
}

const ownMessages = (state: ThreadState, run: Run) => openAiMessages(saidIn(state, run))

/** An edit also changes what it takes off the branch: the run it replaces, and all that follow. */
function withReplaced({ runs }: ThreadState, runIds: readonly string[]): Set<string> {
  const off = new Set(runIds.map((id) => runs.get(id)?.branch?.replaces ?? ''))
  off.delete('')
  if (off.size > 0)
    for (const { runId, parentRunId } of runs.values())
      if (off.has(parentRunId ?? '')) off.add(runId)
  return new Set([...runIds, ...off])
}
