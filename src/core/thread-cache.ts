import type { Thread } from './thread.ts'

/** Threads that are kept in memory although no request, run or stream uses them. */
const mostThreads = 1_000

export type ThreadCache = ReturnType<typeof threadCache>

/**
 * One `Thread` per key while anybody holds it, and the last ones used besides: two folds of one
 * thread in a process would not see each other's readers. A thread is registered when it is made,
 * before it is read or written for the first time.
 */
export function threadCache(make: (threadId: string) => Thread, mostBytes: number) {
  const held = new Map<string, WeakRef<Thread>>()
  /** The thread used longest ago first, each with its bytes when it was last used. */
  const warm = new Map<string, { thread: Thread; bytes: number }>()
  let bytes = 0
  const loading = new Map<string, Promise<Thread>>()
  const collected = new FinalizationRegistry<string>((threadId) => {
    if (held.get(threadId)?.deref() === undefined) held.delete(threadId)
  })

  let uses = 0

  /** Removes the threads used longest ago until the rest is within the limits. */
  function cool(): void {
    if (++uses % 32 === 0) for (const [threadId, { thread }] of warm) weigh(threadId, thread)
    for (const threadId of warm.keys()) {
      if (warm.size <= 1 || (warm.size <= mostThreads && bytes <= mostBytes)) return
      unkeep(threadId)
    }
  }

  /** A thread grows while it is kept. */
  function weigh(threadId: string, thread: Thread): void {
    bytes += thread.bytes - (warm.get(threadId)?.bytes ?? 0)
    warm.set(threadId, { thread, bytes: thread.bytes })
  }

  function unkeep(threadId: string): void {
    bytes -= warm.get(threadId)?.bytes ?? 0
    warm.delete(threadId)
  }

  const peek = (threadId: string) => held.get(threadId)?.deref()

  function register(threadId: string): Thread {
    const thread = make(threadId)
    held.set(threadId, new WeakRef(thread))
    collected.register(thread, threadId)
    return thread
  }

  function keep(thread: Thread): Thread {
    const { threadId } = thread
    if (peek(threadId) !== thread) return thread // dropped: another may have the key by now
    unkeep(threadId)
    weigh(threadId, thread)
    cool()
    return thread
  }

  function drop(threadId: string): void {
    held.delete(threadId)
    unkeep(threadId)
    loading.delete(threadId)
  }

  /** Reads the thread for the first time. A thread that cannot be read is not kept half read. */
  function load(threadId: string): Promise<Thread> {
    const thread = register(threadId)
    const loaded = thread.sync().then(
      () => {
        if (loading.get(threadId) === loaded) loading.delete(threadId)
        return keep(thread)
      },
      (error) => {
        if (loading.get(threadId) === loaded) drop(threadId)
        throw error
      },
    )
    loading.set(threadId, loaded)
    return loaded
  }

  return {
    keep,
    peek,
    drop,
    /** Bytes of the threads that are kept. */
    get bytes(): number {
      return bytes
    },
    /** Makes the thread of a key that nothing was written under yet. */
    create: (threadId: string): Thread => peek(threadId) ?? register(threadId),
    async warm(threadId: string): Promise<Thread> {
      const known = peek(threadId)
      if (!known || loading.has(threadId)) return await (loading.get(threadId) ?? load(threadId))
      // Its first entries may be in the store and not folded yet.
      if (known.state.seq === 0) await known.sync()
      return keep(known)
    },
  }
}
