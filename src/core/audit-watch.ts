import type { Clock } from '../lib/clock.ts'
import { oneByOne, type Turn } from '../lib/turn.ts'
import type { AuditKeys } from './audit.ts'
import { type Heads, type Verdict, Verifier } from './audit-verify.ts'
import { isRuntimeError } from './errors.ts'
import type { Store } from './store.ts'
import type { Thread } from './thread.ts'

/** Entries that are read at once, and their bytes. */
const page = { limit: 1_000, bytes: 1_000_000 }
/** Milliseconds of rest after a page, for each millisecond that it took. */
const rest = 3

interface Verification {
  /** Under way: it may have read an entry before the entry was changed. */
  now: Promise<Verdict>
  /** The next one, for all requests that came since. */
  next?: Promise<Verdict>
}

/**
 * Verifies threads. Each verification reads the whole journal as the store has it at that time, and compares it with
 * the newest link that this server has seen: entries that were removed from the end are missed.
 * Requests for a thread that is being verified share the next verification. One thread of an owner is
 * verified at a time, page by page with rests between them, so requests cannot keep the server busy.
 */
export function auditor(store: Store, keys: AuditKeys | undefined, clock: Clock) {
  const verifications = new Map<string, Verification>()
  const owners = new Map<string, { turn: Turn; users: number }>()

  async function verify({ threadId, state }: Thread, given: AuditKeys): Promise<Verdict> {
    const { chain, seq } = state
    const heads: Heads = new Map(chain ? [[chain.seq, new Set([chain.link])]] : [])
    const verifier = new Verifier(given, threadId, heads)
    for (let after = 0; ; ) {
      const since = clock.monotonic()
      const kept = await store.kept(threadId, { after, ...page }).catch(orDamaged)
      if (!kept) verifier.unreadable(seq)
      const last = kept?.at(-1)
      if (!kept || !last) return verifier.end()
      for (const one of kept) verifier.take(one)
      after = Math.max(after + kept.length, last.entry.seq)
      const spent = clock.monotonic() - since
      if (kept.length >= page.limit || sizeOf(kept) >= page.bytes / 2)
        await clock.sleep(Math.ceil(spent * rest))
    }
  }

  async function inTurn(thread: Thread, given: AuditKeys): Promise<Verdict> {
    const { state } = thread
    const key = JSON.stringify([state.tenant, state.owner])
    const owner = owners.get(key) ?? { turn: oneByOne(), users: 0 }
    owners.set(key, owner)
    owner.users++
    try {
      return await owner.turn(() => verify(thread, given))
    } finally {
      if (--owner.users === 0) owners.delete(key)
    }
  }

  function begin(thread: Thread, given: AuditKeys): Promise<Verdict> {
    const { threadId } = thread
    const one: Verification = {
      now: inTurn(thread, given).finally(() => {
        if (one.next === undefined) verifications.delete(threadId)
      }),
    }
    verifications.set(threadId, one)
    return one.now
  }

  return async (thread: Thread): Promise<Verdict> => {
    const { seq } = thread.state
    if (!keys) return { verdict: 'unchained', seq, since: null, head: null, problems: [] }
    const under = verifications.get(thread.threadId)
    if (!under) return await begin(thread, keys)
    const again = () => begin(thread, keys)
    under.next ??= under.now.then(again, again)
    return await under.next
  }
}

/** The verdict of a thread that cannot be read at all. */
export function unreadableVerdict(): Verdict {
  const problems = [{ seq: 1, to: 1, fault: 'unreadable' as const }]
  return { verdict: 'broken', seq: 1, since: null, head: null, problems }
}

function orDamaged(error: unknown): undefined {
  if (!isRuntimeError(error, 'thread_damaged')) throw error
}

const sizeOf = (kept: readonly { entry: { body: string } }[]): number =>
  kept.reduce((sum, { entry }) => sum + entry.body.length, 0)
