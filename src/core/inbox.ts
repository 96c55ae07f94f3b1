import type { Clock } from '../lib/clock.ts'
import type { Answering } from './asks.ts'
import type { AskKind } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { followInbox } from './follow-inbox.ts'
import type { Caller } from './runtime.ts'
import type { AskRecord } from './state.ts'
import type { AskQuery, AskRow, Bus, Page, Store } from './store.ts'
import type { Thread } from './thread.ts'

export interface InboxQuery
  extends Pick<AskQuery, 'state' | 'tool' | 'agent' | 'limit' | 'cursor'> {
  kind?: AskKind
  /** A thread of the caller's own, by its name. */
  thread?: string
}

interface Setup {
  store: Store
  bus: Bus
  clock: Clock
  /** Milliseconds after which an inbox is looked into although nobody rang. */
  every: number
  open: (threadId: string) => Promise<Thread>
  settle: (caller: Caller, thread: Thread, answering: Answering) => Promise<ReadonlySet<string>>
}

/**
 * Asks across threads, for whoever may decide them. What is another's, another tenant's or nobody's is the
 * same to a caller: it is not there (I10). The thread around an ask is never shown.
 */
export function inbox(setup: Setup) {
  const { store, open, settle } = setup
  async function find(caller: Caller, askId: string): Promise<{ row: AskRow; thread: Thread }> {
    const query = { tenant: caller.tenant, decider: caller, askId, limit: 1 }
    const [row] = (await store.asks(query)).rows
    if (!row) throw missing()
    const thread = await open(row.threadId)
    await thread.sync()
    return { row, thread }
  }

  return {
    async list(caller: Caller, { thread, ...query }: InboxQuery): Promise<Page<AskRow>> {
      const own = thread === undefined ? {} : { clientId: thread, owner: caller.user }
      return await store.asks({ tenant: caller.tenant, decider: caller, ...own, ...query })
    },

    /** All that there is to judge by. */
    async read(caller: Caller, askId: string): Promise<{ row: AskRow; record: AskRecord }> {
      const { row, thread } = await find(caller, askId)
      return { row, record: recordOf(thread, askId) }
    },

    /** Settles an ask, unless it is settled; `mine` says whether by this request. */
    async decide(
      caller: Caller,
      { key, ...said }: Answering['decisions'][number] & Pick<Answering, 'key'>,
    ): Promise<{ record: AskRecord; mine: boolean }> {
      const { askId } = said
      const { thread } = await find(caller, askId)
      // Keys are of one person: what another one has used on this thread is not ours to know. No key
      // that comes by a header has a line break.
      const own = key && { ...key, key: `${caller.user}\n${key.key}` }
      const settled = await settle(caller, thread, { decisions: [said], ...(own && { key: own }) })
      const again = own && thread.state.keys.get(own.key)?.ref === `ask:${askId}`
      return { record: recordOf(thread, askId), mine: settled.has(askId) || again === true }
    },

    /** What is open, unless the reader has been here, and then what changes. */
    follow: (caller: Caller, after: string | undefined, signal: AbortSignal) =>
      followInbox({ ...setup, person: caller, tenant: caller.tenant }, after, signal),
  }
}

function recordOf({ state }: Thread, askId: string): AskRecord {
  const record = state.asks.get(askId)
  if (!record) throw missing()
  return record
}

const missing = () => new RuntimeError('ask_not_found', 'There is no such approval.')
