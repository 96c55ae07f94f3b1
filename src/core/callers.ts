import type { Actor } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import type { Store, ThreadName } from './store.ts'
import type { Thread } from './thread.ts'
import type { ThreadCache } from './thread-cache.ts'

/** Who asks. Everything a caller reaches is looked up under its tenant and name. */
export interface Caller {
  tenant: string
  user: string
  roles: readonly string[]
  wire: string
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
  fresh: (clientId: string) => Promise<Thread>
}

export type Access = ReturnType<typeof access>

/** Threads, as callers know them. */
export function access({ store, threads, fresh }: Setup) {
  /** The caller's thread, warm. Another user's id is simply not there (I10). */
  async function find(caller: Caller, clientId: string): Promise<Thread | undefined> {
    const threadId = await store.locate(nameOf(caller, clientId))
    if (threadId === undefined) return undefined
    const thread = await threads.warm(threadId)
    if (store.shared) await thread.sync()
    return thread
  }

  async function open(caller: Caller, clientId: string): Promise<Thread> {
    const thread = await find(caller, clientId)
    if (!thread) throw new RuntimeError('thread_not_found')
    return thread
  }

  /** The thread to write to: the caller's, or one that its first entry will make. */
  async function openOrNew(caller: Caller, clientId: string): Promise<Thread> {
    const known = await find(caller, clientId)
    if (known) return known
    return await fresh(clientId)
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
        return { thread, result }
      } catch (error) {
        const taken = isRuntimeError(error, 'thread_exists')
        const erased = isRuntimeError(error, 'thread_not_found')
        if (!(taken || erased) || attempt >= 5) throw error
        if (erased) threads.drop(thread.threadId)
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
