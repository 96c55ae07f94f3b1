import type { Clock } from '../lib/clock.ts'
import { RuntimeError } from './errors.ts'
import type { Thread } from './thread.ts'

/** Resolves when no run has the thread; whoever cancelled it knows that this is soon. */
export async function idle(thread: Thread, clock: Clock, closing: AbortSignal): Promise<void> {
  const over = new AbortController()
  const syncing = async () => {
    for (;;) {
      await clock.sleep(1_000, over.signal)
      await thread.sync().catch(() => {}) // it may end on another server, and nobody rings
    }
  }
  syncing().catch(() => {})
  await new Promise<void>((resolve, reject) => {
    const look = () => {
      if (closing.aborted) reject(new RuntimeError('stopping', undefined, { retryAfter: 2 }))
      else if (thread.state.active === null) resolve()
      else return
      unlisten()
      closing.removeEventListener('abort', look)
    }
    const unlisten = thread.listen(look)
    closing.addEventListener('abort', look)
    look()
  }).finally(() => over.abort('over'))
}
