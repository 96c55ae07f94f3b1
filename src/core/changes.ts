import type { Clock } from '../lib/clock.ts'
import type { ThreadState } from './state.ts'
import { type Bus, gone, type Store } from './store.ts'
import { isAway, type Thread } from './thread.ts'

interface Setup {
  store: Store
  bus: Bus
  /** Calls the listener with each seq that is rung for the thread. */
  listen: (threadId: string, listener: (seq: number) => void) => () => void
  clock: Clock
  warm: (threadId: string) => Promise<Thread>
  /** A thread that is in memory. */
  peek: (threadId: string) => Thread | undefined
}

/** Milliseconds after which a thread that could not be read is read again. */
const retryEvery = 1_000

/**
 * Yields what `make` returns for a thread: now, and again after each change of the thread. Ends when the thread is
 * erased or the signal fires. Does not hold the thread while it waits, so an idle reader of a large thread takes no memory.
 */
export async function* changes<T>(
  setup: Setup,
  threadId: string,
  make: (state: ThreadState) => T,
  signal: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const bell = bellOf(setup, threadId, signal)
  let seq = 0
  try {
    while (!signal.aborted && !bell.isGone) {
      try {
        const now = await read(setup, threadId, { seq, rung: bell.take() }, make)
        if (now === 'erased') return
        if (now !== 'same') {
          seq = now.seq
          yield now.made
        }
      } catch (error) {
        if (!isAway(error)) throw error
        bell.again()
        await setup.clock.sleep(retryEvery, signal).catch(() => {})
      }
      await bell.rung()
    }
  } finally {
    bell.leave()
  }
}

/** The thread is only in this function: a generator keeps its variables while it waits. */
async function read<T>(
  { store, warm, peek }: Setup,
  threadId: string,
  { seq, rung }: { seq: number; rung: number },
  make: (state: ThreadState) => T,
): Promise<{ seq: number; made: T } | 'same' | 'erased'> {
  // A poll: another server may have written. One entry is enough to find that out.
  if (seq > 0 && rung === Number.MAX_SAFE_INTEGER && !peek(threadId)) {
    const range = { after: seq, limit: 1, bytes: 1 }
    if ((await store.read(threadId, range)).length === 0)
      return (await store.thread(threadId)) ? 'same' : 'erased'
  }
  const thread = await warm(threadId)
  if (thread.state.seq < rung) await thread.sync()
  if (thread.erased || thread.state.seq === 0) return 'erased'
  return { seq: thread.state.seq, made: make(thread.state) }
}

/** News of one thread. Reads its live tail too, because a bus brings news of other servers only for tails that are read. */
function bellOf({ bus, listen }: Setup, threadId: string, signal: AbortSignal) {
  const reader = bus.tail(threadId).reader()
  let seq = 0
  let last = 0
  let isRung = true
  let wake = () => {}
  const ring = () => {
    isRung = true
    wake()
  }
  const bell = {
    isGone: false,
    /** The highest seq that was rung since the last call. */
    take(): number {
      last = seq
      seq = 0
      isRung = false
      return last
    },
    /** Keeps the ring that was taken last, because its entries could not be read. */
    again(): void {
      seq = Math.max(seq, last)
      isRung = true
    },
    rung: () =>
      new Promise<void>((resolve) => {
        wake = resolve
        if (isRung || signal.aborted) resolve()
      }),
    leave(): void {
      unlisten()
      signal.removeEventListener('abort', ring)
      reader.close()
    },
  }
  const unlisten = listen(threadId, (rung) => {
    if (rung === gone) bell.isGone = true
    else seq = Math.max(seq, rung)
    ring()
  })
  signal.addEventListener('abort', ring, { once: true })
  return bell
}

/** Listens to the bus once for all threads, so that a ring costs the same however many threads are watched. */
export function bellsOf(bus: Bus): Setup['listen'] {
  const listeners = new Map<string, Set<(seq: number) => void>>()
  let unlisten = () => {}
  return (threadId, listener) => {
    if (listeners.size === 0)
      unlisten = bus.listen((rung, seq) => {
        for (const one of listeners.get(rung) ?? []) one(seq)
      })
    const ofThread = listeners.get(threadId) ?? new Set()
    listeners.set(threadId, ofThread.add(listener))
    return () => {
      ofThread.delete(listener)
      if (ofThread.size === 0) listeners.delete(threadId)
      if (listeners.size === 0) unlisten()
    }
  }
}
