import { type Actor, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import type { Thread } from './thread.ts'

/** Not for clients: it says that what one of them left is wanted after all. */
export const returnedEvent = 'returned'

/** Writes it, if something runs. */
export async function noteReturn(thread: Thread, actor: Actor): Promise<void> {
  const run = thread.state.runs.get(thread.state.active ?? '')
  if (!run || run.status === 'waiting') return
  const { runId } = run
  const drafts = [draft('event', { name: returnedEvent, value: {} }, { runId })]
  const guard = { expect: [{ fact: 'active', is: runId }] }
  await thread.commit(drafts, { guard, actor }).catch((error: unknown) => {
    if (!isRuntimeError(error, 'journal_conflict')) throw error // it has just ended
  })
}

/** Whether it was written of this run since `seq`, by any server. */
export async function hasReturned(thread: Thread, runId: string, seq: number): Promise<boolean> {
  await thread.sync()
  for (let after = seq; after < thread.state.seq; ) {
    const entries = await thread.entries(after, 256)
    if (entries.length === 0) return false
    for (const { kind, body, runId: of } of entries)
      if (kind === 'event' && of === runId && body.name === returnedEvent) return true
    after = entries.at(-1)!.seq
  }
  return false
}
