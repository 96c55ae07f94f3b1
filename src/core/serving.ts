import type { Clock } from '../lib/clock.ts'
import { type Bus, gone, type Queue, type Store } from './store.ts'
import type { Thread } from './thread.ts'
import type { Log } from './worker.ts'

export interface Serving {
  store: Store
  bus: Bus
  queue: Queue
  clock: Clock
  log: Log
  /** A thread that is warm. */
  peek: (threadId: string) => Thread | undefined
  forget: (thread: Thread) => void
  /** Something of it is to be told outside. */
  offer: (thread: Thread) => void
  /** Does what a thread needs; the next time to look, if there is one. */
  look: (threadId: string) => Promise<number | undefined>
  ring: (threadId: string) => void
  /** Milliseconds between two sweeps. */
  every: number
  /** No more work is looked for. */
  leaving: AbortSignal
  /** Readers are not served any more. */
  closing: AbortSignal
}

/** Hears of what others write, and looks at what has to be done, until the server goes. */
export async function serve(serving: Serving): Promise<void> {
  const { bus, queue, log, look, leaving, closing } = serving
  const unlisten = bus.listen((threadId, seq) => {
    const thread = serving.peek(threadId)
    if (thread && seq === gone) serving.forget(thread)
    else if (thread && thread.state.seq < seq) void thread.sync().catch(() => {})
    else if (thread && thread.state.hooks.size > 0) serving.offer(thread)
  })
  const served = queue.serve(async (threadId) => {
    try {
      const at = await look(threadId)
      if (at !== undefined) queue.ringAt(threadId, at)
    } catch (error) {
      log.warn({ threadId, err: error }, 'could not look at a thread')
    }
  }, leaving)
  await sweep(serving)
  await served
  // Until then readers are served, also of what is driven elsewhere by now.
  await new Promise<void>((resolve) => {
    if (closing.aborted) resolve()
    closing.addEventListener('abort', () => resolve(), { once: true })
  })
  unlisten()
}

/** Finds what was forgotten: by a queue, a timer, or a server that is no more. */
async function sweep({ store, clock, log, ring, every, leaving }: Serving): Promise<void> {
  for (let well = true; !leaving.aborted; ) {
    try {
      const { threadIds } = await store.work(1_000)
      for (const threadId of threadIds) ring(threadId)
      well = true
    } catch (error) {
      if (well) log.warn({ err: error }, 'sweep failed')
      well = false
    }
    // After an outage there is more to find than usual.
    await clock.sleep(well ? every : Math.min(every, 1_000), leaving).catch(() => {})
  }
}
