import type { Bus } from '../../core/store.ts'
import { Tail } from '../../core/tail.ts'

/** Tails in memory and rings within the process: the bus of a single server. */
export function localBus(): Bus {
  const tails = new Map<string, WeakRef<Tail>>()
  const gone = new FinalizationRegistry<string>((threadId) => {
    if (tails.get(threadId)?.deref() === undefined) tails.delete(threadId)
  })
  const listeners = new Set<(threadId: string, seq: number) => void>()
  return {
    // Held weakly: a tail lives as long as the thread's driver or a reader holds it.
    tail(threadId) {
      const known = tails.get(threadId)?.deref()
      if (known) return known
      const tail = new Tail()
      tails.set(threadId, new WeakRef(tail))
      gone.register(tail, threadId)
      return tail
    },
    ring(threadId, seq) {
      for (const listener of listeners) listener(threadId, seq)
    },
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: async () => listeners.clear(),
  }
}
