import { read } from './entries.ts'
import { textOf } from './messages.ts'
import type { ThreadState } from './state.ts'
import type { Store } from './store.ts'

export interface RecallQuery {
  /** Any of them, anywhere in a text, whatever their case. */
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

/** The newest threads that are looked at, the entries of each, and what is given of a text. */
const most = { threads: 50, entries: 1_000, found: 50, excerpt: 300 }

/**
 * What was said on other threads of the same owner, the newest thread first. It reads them, so much and
 * no more; nothing of another owner is touched (I10).
 */
export async function recall(
  store: Store,
  { threadId, tenant, owner }: Pick<ThreadState, 'threadId' | 'tenant' | 'owner'>,
  { words, limit }: RecallQuery,
  signal: AbortSignal,
): Promise<Recalled[]> {
  const wanted = words.map((word) => word.trim().toLowerCase()).filter((word) => word !== '')
  const found: Recalled[] = []
  if (wanted.length === 0) return found
  const { rows } = await store.threads({ tenant, owner, limit: most.threads })
  for (const { threadId: other, clientId } of rows) {
    if (other === threadId) continue
    signal.throwIfAborted()
    for (const entry of await store.read(other, { limit: most.entries })) {
      if (entry.kind !== 'message.added') continue
      const known = read(entry)
      if (known.kind !== 'message.added') continue
      const { message, for: whom, path } = known.body
      // What sub-agents said is in what came of it.
      if (whom === 'model' || path !== undefined || message.role === 'tool') continue
      const excerpt = excerptOf(textOf(message), wanted)
      if (excerpt === undefined) continue
      found.push({ clientId, at: entry.at, role: message.role, excerpt })
      if (found.length >= Math.min(limit, most.found)) return found
    }
  }
  return found
}

function excerptOf(text: string, wanted: readonly string[]): string | undefined {
  const lower = text.toLowerCase()
  const at = Math.min(...wanted.map((word) => lower.indexOf(word)).filter((i) => i >= 0))
  if (at === Number.POSITIVE_INFINITY) return undefined
  const from = Math.max(0, at - most.excerpt / 3)
  const cut = text.slice(from, from + most.excerpt).toWellFormed()
  return `${from > 0 ? '…' : ''}${cut}${from + most.excerpt < text.length ? '…' : ''}`
}
