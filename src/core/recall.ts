import { newestFirst } from './said.ts'
import type { ThreadState } from './state.ts'
import type { Hit, Store } from './store.ts'

export interface RecallQuery {
  /** Any of them, whatever their case. Several words in one must stand one after the other. */
  words: readonly string[]
  /** At most this many, and never more than fifty. */
  limit: number
}

export interface Recalled {
  /** What the owner calls the thread. */
  clientId: string
  at: number
  role: string
  excerpt: string
}

export interface Recall {
  /** The newest first. */
  found: Recalled[]
  /** Not everything could be looked at: there may be more. */
  cut?: boolean
}

const most = { words: 8, found: 50 }

/** What was said on other threads of the same owner, however old; nothing of another owner is touched (I10). */
export async function recall(
  store: Store,
  { threadId, tenant, owner }: Pick<ThreadState, 'threadId' | 'tenant' | 'owner'>,
  { words, limit: asked }: RecallQuery,
  signal: AbortSignal,
): Promise<Recall> {
  const limit = Math.min(asked, most.found)
  const hits = new Map<string, Hit>()
  let cut = words.length > most.words
  for (const word of words.slice(0, most.words)) {
    signal.throwIfAborted()
    const page = await store.find({ tenant, owner, words: [word], except: threadId, limit })
    for (const hit of page.rows) hits.set(JSON.stringify([hit.threadId, hit.seq]), hit)
    if (page.cut || (page.next !== undefined && page.rows.length < limit)) cut = true
  }
  const newest = [...hits.values()].sort(newestFirst).slice(0, Math.max(0, limit))
  const found = newest.map(({ clientId, at, role, excerpt }) => ({ clientId, at, role, excerpt }))
  return { found, ...(cut && { cut }) }
}
