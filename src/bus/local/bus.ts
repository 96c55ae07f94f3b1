import type { Bus } from '../../core/store.ts'
import { Tail } from '../../core/tail.ts'
import type { Clock } from '../../lib/clock.ts'

export interface LocalBusOptions {
  clock: Clock
  /** Milliseconds between looks at threads that are read, where other processes write to the store. */
  poll: number
}

/** Tails in memory and rings within the process: the bus of a single server. */
export function localBus(polling?: LocalBusOptions): Bus {
  const tails = new Map<string, WeakRef<Tail>>()
  const gone = new FinalizationRegistry<string>((threadId) => {
    if (tails.get(threadId)?.deref() === undefined) tails.delete(threadId)
  })
  const listeners = new Set<(threadId: string, seq: number) => void>()
  const closed = new AbortController()

  async function keepLooking({ clock, poll }: LocalBusOptions): Promise<void> {
    for (;;) {
      await clock.sleep(poll, closed.signal)
      for (const [threadId, tail] of tails)
        if (tail.deref()?.readers)
          for (const one of listeners) one(threadId, Number.MAX_SAFE_INTEGER)
    }
  }
  if (polling) keepLooking(polling).catch(() => {})

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
    async close() {
      closed.abort('closed')
      listeners.clear()
    },
  }
}
