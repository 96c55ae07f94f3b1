import type { Thread } from './thread.ts'

/** Threads kept warm when nobody uses them, and the entries they may have in all. */
const mostThreads = 1_000
const mostEntries = 200_000

export type ThreadCache = ReturnType<typeof threadCache>

/**
 * One `Thread` per key while anybody holds it, and the last ones used besides: two folds of one
 * thread in a process would not see each other's readers.
 */
export function threadCache(make: (threadId: string) => Thread) {
  const held = new Map<string, WeakRef<Thread>>()
  const warm = new Map<string, Thread>()
  const loading = new Map<string, Promise<Thread>>()
  const collected = new FinalizationRegistry<string>((threadId) => {
    if (held.get(threadId)?.deref() === undefined) held.delete(threadId)
  })

  let made = 0

  /** Lets go of the longest unused until what is left is not too much. */
  function cool(): void {
    const counts = ++made % 32 === 0 // it takes a while, and what a few new ones add is little
    let entries = 0
    if (counts) for (const thread of warm.values()) entries += thread.state.seq
    for (const [threadId, thread] of warm) {
      if (warm.size <= 1 || (warm.size <= mostThreads && entries <= mostEntries)) return
      warm.delete(threadId)
      entries -= thread.state.seq
    }
  }

  function keep(thread: Thread): Thread {
    const { threadId } = thread
    if (held.get(threadId)?.deref() !== thread) {
      held.set(threadId, new WeakRef(thread))
      collected.register(thread, threadId)
    }
    const isNew = !warm.delete(threadId)
    warm.set(threadId, thread)
    if (isNew) cool()
    return thread
  }

  return {
    keep,
    peek: (threadId: string) => held.get(threadId)?.deref(),
    drop(threadId: string): void {
      held.delete(threadId)
      warm.delete(threadId)
    },
    async warm(threadId: string): Promise<Thread> {
      const known = held.get(threadId)?.deref()
      if (known) return keep(known)
      let load = loading.get(threadId)
      if (!load) {
        const thread = make(threadId)
        load = thread
          .sync()
          .then(() => keep(thread))
          .finally(() => loading.delete(threadId))
        loading.set(threadId, load)
      }
      return await load
    },
  }
}
