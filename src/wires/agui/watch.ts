import type { Runtime } from '../../core/runtime.ts'
import { type Heartbeats, sse } from '../sse.ts'
import { standing } from './outline.ts'

/**
 * Where a thread stands, now and whenever that changes: for pages that show a thread on which nothing
 * runs, as AG-UI's own streams end with the run. Ends when the thread is deleted.
 */
export function watch(runtime: Runtime, threadId: string, heartbeats: Heartbeats): Response {
  return sse((signal) => events(runtime, threadId, signal), heartbeats, { resumes: true })
}

async function* events(runtime: Runtime, threadId: string, signal: AbortSignal) {
  let last = ''
  for await (const now of runtime.changes(threadId, standing, signal)) {
    const text = JSON.stringify(now)
    if (text === last) continue
    last = text
    yield `id: ${now.seq}\ndata: ${text}\n\n`
  }
}
