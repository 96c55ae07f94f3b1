import type { AuditKeys } from './audit.ts'
import { type Verdict, Verifier } from './audit-verify.ts'
import type { Store } from './store.ts'
import type { Thread } from './thread.ts'

const page = 1_000

/**
 * Verifies threads while they are warm: what was looked at once is not read again, so that asking often
 * costs what was added since. An audit of the whole store is the command's.
 */
export function auditor(store: Store, keys: AuditKeys | undefined) {
  const watched = new WeakMap<Thread, { verifier: Verifier; last: Promise<Verdict> }>()

  async function goOn({ threadId }: Thread, verifier: Verifier): Promise<Verdict> {
    for (;;) {
      const kept = await store.kept(threadId, { after: verifier.seq, limit: page })
      for (const one of kept) verifier.take(one)
      if (kept.length < page) return verifier.end()
    }
  }

  return async (thread: Thread): Promise<Verdict> => {
    const { seq } = thread.state
    if (!keys) return { verdict: 'unchained', seq, since: null, head: null, problems: [] }
    const known = watched.get(thread)
    const verifier = known?.verifier ?? new Verifier(keys, thread.threadId)
    const again = () => goOn(thread, verifier)
    const last = known ? known.last.then(again, again) : again()
    watched.set(thread, { verifier, last })
    return await last
  }
}
