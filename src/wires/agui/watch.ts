import { cursorAt, follow } from '../../core/follow.ts'
import type { Thread } from '../../core/thread.ts'
import { type Heartbeats, sse } from '../sse.ts'
import { standing } from './outline.ts'

/**
 * Where a thread stands, now and whenever that changes: for pages that show a thread on which nothing
 * runs, as AG-UI's own streams end with the run. Ends when the thread is deleted.
 */
export function watch(thread: Thread, heartbeats: Heartbeats): Response {
  return sse((signal) => changes(thread, signal), heartbeats, { resumes: true })
}

async function* changes(thread: Thread, signal: AbortSignal) {
  let told = ''
  for await (const step of follow(thread, cursorAt(thread.state.seq), signal)) {
    if (step.type !== 'idle' && !(step.type === 'pieces' && step.idle)) continue
    const now = JSON.stringify(standing(thread.state))
    if (now === told) continue
    told = now
    yield `id: ${thread.state.seq}\ndata: ${now}\n\n`
  }
}
