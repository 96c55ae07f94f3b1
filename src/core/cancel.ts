import type { NewId } from '../lib/ids.ts'
import { atEnd, cancelledAsks, next, unfinished } from './ending.ts'
import { type Actor, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { ended, type Run, type RunStatus, type ThreadState } from './state.ts'
import type { Expectation } from './store.ts'
import { decide, type Thread } from './thread.ts'

/** Cancels a run. Gives its status: `cancelled`, or `cancelling` while a leg comes to a stop. */
export async function cancel(
  thread: Thread,
  runId: string,
  newId: NewId,
  actor: Actor,
  reason?: string,
): Promise<RunStatus> {
  return await decide(thread, () => {
    const { state } = thread
    const run = thread.run(runId)
    if (ended(run)) throw new RuntimeError('run_ended', undefined, { data: { status: run.status } })
    if (run.status === 'cancelling') return { result: 'cancelling' }
    const drafts = cancelDrafts(state, run, newId, reason)
    const expect: Expectation[] = [
      { fact: `run:${runId}`, is: run.status },
      { fact: 'active', is: state.active },
      ...atEnd(state, run),
    ]
    const result = drafts.some(({ kind }) => kind === 'run.cancelled') ? 'cancelled' : 'cancelling'
    return { drafts, writing: { guard: { expect }, actor }, result }
  })
}

/**
 * Open asks are cancelled with the run. A run that no leg works on ends at once; otherwise from
 * now on the store refuses to begin anything for it, and its driver, or the timer, writes the end.
 */
export function cancelDrafts(
  state: ThreadState,
  run: Run,
  newId: NewId,
  reason?: string,
  ...settled: string[]
): Draft[] {
  const { runId } = run
  const why = reason === undefined ? {} : { reason }
  const asks = cancelledAsks(state, run, settled)
  const cancelling = draft('run.cancelling', why, { runId })
  if (run.status === 'running') return [cancelling, ...asks]
  const follower = state.active === runId ? next({ state, newId }) : []
  return [cancelling, ...asks, draft('run.cancelled', why, { runId }), ...follower]
}

/** Writes the end of a run whose driver did not stop in time, and stops that driver for good. */
export async function finishCancel(thread: Thread, fence: number, newId: NewId): Promise<void> {
  await decide(thread, () => {
    const { state } = thread
    const run = state.active === null ? undefined : state.runs.get(state.active)
    if (run?.status !== 'cancelling') return { result: undefined }
    const at = { runId: run.runId, legId: run.legId }
    const left = [...unfinished(state, run), ...cancelledAsks(state, run)]
    const ending = [...left, draft('run.cancelled', {})]
    const drafts = [...ending.map((one) => ({ ...at, ...one })), ...next({ state, newId })]
    const expect: Expectation[] = [
      { fact: `run:${run.runId}`, is: 'cancelling' },
      ...atEnd(state, run),
    ]
    const actor: Actor = { type: 'system', id: 'timer' }
    return { drafts, writing: { guard: { fence, expect }, actor }, result: undefined }
  })
}
