import { canonical } from '../lib/canonical.ts'
import type { Actor } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import type { Store, ThreadName } from './store.ts'
import type { Thread } from './thread.ts'
import type { ThreadCache } from './thread-cache.ts'
import type { ThreadUse } from './thread-uses.ts'

/** Who asks. Everything a caller reaches is looked up under its tenant and name. */
export interface Caller {
  tenant: string
  user: string
  roles: readonly string[]
  wire: string
  /** Counts the threads that the request keeps in memory. Absent for calls that are not part of an HTTP response. */
  uses?: ThreadUse
}

export const nameOf = ({ tenant, user }: Caller, clientId: string): ThreadName => ({
  tenant,
  owner: user,
  clientId,
})
export const actorOf = ({ user, wire }: Caller): Actor => ({ type: 'user', id: user, wire })

interface Setup {
  store: Store
  threads: ThreadCache
  /** A thread that its first entry will make, for the client's id. */
  fresh: (name: ThreadName) => Promise<Thread>
  /** Drops an erased thread, and ends its streams. */
  forget: (thread: Thread) => void
}

export type Access = ReturnType<typeof access>

/** Threads, as callers know them. */
export function access({ store, threads, fresh, forget }: Setup) {
  /** New threads whose first write took too long and may still succeed, by name. */
  const unsettled = new Map<string, Thread>()
  const keyOf = (caller: Caller, clientId: string) => canonical(nameOf(caller, clientId))

  function keepUnsettled(key: string, thread: Thread): void {
    if (unsettled.get(key) === thread) return
    unsettled.set(key, thread)
    void thread.settled().then(() => unsettled.delete(key))
  }

  /** The caller's thread, warm. Another user's id is simply not there (I10). */
  async function find(caller: Caller, clientId: string): Promise<Thread | undefined> {
    const threadId = await store.locate(nameOf(caller, clientId))
    if (threadId === undefined) return undefined
    const load = () => threads.warm(threadId)
    const thread = await (caller.uses?.open(threads.peek(threadId), load) ?? load())
    if (store.shared) await thread.sync()
    return thread
  }

  async function open(caller: Caller, clientId: string): Promise<Thread> {
    const thread = await find(caller, clientId)
    if (thread) return thread
    if (!unsettled.has(keyOf(caller, clientId))) throw new RuntimeError('thread_not_found')
    throw new RuntimeError('outcome_unknown', undefined, { data: { thread_id: clientId } })
  }

  /** The thread to write to: the caller's, or one that its first entry will make. */
  async function openOrNew(caller: Caller, clientId: string): Promise<Thread> {
    const known = await find(caller, clientId)
    if (known) return known
    caller.uses?.admit()
    const name = nameOf(caller, clientId)
    return unsettled.get(canonical(name)) ?? (await fresh(name))
  }

  /** Two first messages may race to make the thread: the second finds it made. */
  async function withThread<T>(
    caller: Caller,
    clientId: string,
    write: (thread: Thread) => Promise<T>,
  ): Promise<{ thread: Thread; result: T }> {
    for (let attempt = 1; ; attempt++) {
      const thread = await openOrNew(caller, clientId)
      try {
        const result = await write(thread)
        threads.keep(thread)
        caller.uses?.add(thread)
        return { thread, result }
      } catch (error) {
        if (isRuntimeError(error, 'outcome_unknown') && thread.state.seq === 0)
          keepUnsettled(keyOf(caller, clientId), thread)
        const taken = isRuntimeError(error, 'thread_exists')
        const erased = isRuntimeError(error, 'thread_not_found')
        if (!(taken || erased) || attempt >= 5) throw error
        if (erased) forget(thread)
        else await thread.sync()
      }
    }
  }

  async function upToDate(caller: Caller, clientId: string) {
    const thread = await open(caller, clientId)
    if (!store.shared) await thread.sync()
    return thread
  }

  return { find, open, upToDate, withThread }
}
