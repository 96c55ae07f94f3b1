import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { AuditKeys } from './audit.ts'
import { eraseThread } from './audit-residue.ts'
import type { Verdict } from './audit-verify.ts'
import { auditor, unreadableVerdict } from './audit-watch.ts'
import { type Access, actorOf, type Caller, nameOf } from './callers.ts'
import { cancel } from './cancel.ts'
import { draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { showBranch } from './head.ts'
import { idle } from './idle.ts'
import type { ThreadState } from './state.ts'
import {
  type Bus,
  type Cache,
  gone,
  inboxBell,
  type Page,
  type Store,
  type ThreadRow,
} from './store.ts'
import type { Thread } from './thread.ts'
import { isUserBudget } from './user-budget.ts'
import { view } from './view.ts'

interface Setup extends Pick<Access, 'upToDate'> {
  store: Store
  bus: Bus
  cache?: Cache | undefined
  viewTtl?: number | undefined
  audit?: AuditKeys | undefined
  clock: Clock
  newId: NewId
  closing: AbortSignal
  ringHere: (thread: Thread) => void
  forget: (thread: Thread) => void
}

/** What is done with a caller's threads besides talking: list, show, rename, remove. */
export function keeping({ upToDate, store, bus, cache, audit, ...setup }: Setup) {
  const { clock, newId, closing, ringHere, forget } = setup
  const verdictOf = auditor(store, audit, clock)

  return {
    /** Shows the newest branch that a run is on. */
    async show(caller: Caller, clientId: string, runId: string): Promise<string> {
      return await showBranch(await upToDate(caller, clientId), runId, actorOf(caller))
    },

    async rename(caller: Caller, clientId: string, title: string): Promise<void> {
      const thread = await upToDate(caller, clientId)
      const drafts = [draft('thread.renamed', { title })]
      await thread.commit(drafts, { guard: {}, actor: actorOf(caller) })
    },

    async archive(caller: Caller, clientId: string, archived: boolean): Promise<void> {
      const thread = await upToDate(caller, clientId)
      const drafts = [draft('thread.archived', { archived })]
      await thread.commit(drafts, { guard: {}, actor: actorOf(caller) })
    },

    /** Removes the thread. What runs on it is cancelled first. */
    async erase(caller: Caller, clientId: string): Promise<void> {
      const thread = await upToDate(caller, clientId)
      while (thread.state.active !== null) {
        const runId = thread.state.line.at(-1) ?? thread.state.active
        await cancel(thread, runId, newId, actorOf(caller)).catch(unlessEnded)
        ringHere(thread)
        if (runId === thread.state.active) await idle(thread, clock, closing)
      }
      const expect = [{ fact: 'active', is: null }]
      await eraseThread(store, audit, thread.threadId, { expect }, clock.now())
      await cache?.delete(thread.threadId)
      forget(thread)
      bus.ring(thread.threadId, gone)
      bus.ring(inboxBell(caller.tenant), gone)
    },

    async list(
      caller: Caller,
      query: { limit: number; cursor?: string; archived?: boolean; active?: boolean },
    ): Promise<Page<ThreadRow>> {
      const page = await store.threads({ tenant: caller.tenant, owner: caller.user, ...query })
      return { ...page, rows: page.rows.filter(({ clientId }) => !isUserBudget(clientId)) }
    },

    /** What is made of the thread as it is now; a cache may hold it while nothing is added. */
    async view<T>(caller: Caller, clientId: string, make: (state: ThreadState) => T): Promise<T> {
      const { viewTtl: ttl = 3_600_000 } = setup
      const open = () => upToDate(caller, clientId)
      const threadId = await store.locate(nameOf(caller, clientId))
      if (!cache || threadId === undefined) return make((await open()).state)
      return await view({ store, cache, ttl }, threadId, open, make)
    },

    /** Whether anything of the thread was changed since it was written. */
    async audit(caller: Caller, clientId: string): Promise<Verdict> {
      const thread = await upToDate(caller, clientId).catch((error: unknown) => {
        if (!isRuntimeError(error, 'thread_damaged')) throw error
      })
      return thread ? await verdictOf(thread) : unreadableVerdict()
    },
  }
}

function unlessEnded(error: unknown): void {
  if (!isRuntimeError(error, 'run_ended')) throw error
}
