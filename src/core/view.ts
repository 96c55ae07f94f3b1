import type { ThreadState } from './state.ts'
import type { Cache, Store } from './store.ts'
import type { Thread } from './thread.ts'

/** What was made of a thread, and of which entry it is the last. */
interface Kept<T> {
  seq: number
  entryId: string
  value: T
}

export interface Views {
  store: Store
  cache: Cache
  /** Milliseconds for which they are kept. */
  ttl: number
}

/**
 * What is made of a thread as it is now. While the thread has no other last entry, the cache may hold it:
 * by that it is known again, also where a thread was erased and another has its id.
 */
export async function view<T>(
  { store, cache, ttl }: Views,
  threadId: string,
  open: () => Promise<Thread>,
  make: (state: ThreadState) => T,
): Promise<T> {
  const kept = (await cache.get(threadId)) as Kept<T> | undefined
  if (kept) {
    const [last, more] = await store.read(threadId, { after: kept.seq - 1, limit: 2 })
    if (last?.id === kept.entryId && !more) return kept.value
  }
  const thread = await open()
  const { seq } = thread.state
  const value = make(thread.state)
  const [last] = await thread.entries(seq - 1, 1)
  if (last) await cache.set(threadId, { seq, entryId: last.id, value } satisfies Kept<T>, ttl)
  if (thread.erased) await cache.delete(threadId) // erased meanwhile: nothing of it may stay
  return value
}
