import type {
  AskChanges,
  AskQuery,
  AskRow,
  Marks,
  Page,
  ThreadName,
  ThreadQuery,
  ThreadRow,
} from '../../core/store.ts'
import { Inboxes } from './inboxes.ts'
import { compareKeys, decode, type Order, SortedRows } from './sorted.ts'

/** All that the index knows of one thread; `row` is absent when the thread was erased. */
export interface IndexRecord {
  id: string
  row?: ThreadRow
  timers?: Record<string, number>
  asks?: AskRow[]
}

interface Owner {
  names: Map<string, string>
  rows: SortedRows<ThreadRow>
}

/** Rows, names, asks and timers of every thread, in memory. Rows are replaced, never changed. */
export class Tables {
  readonly rows = new Map<string, ThreadRow>()
  readonly timers = new Map<string, Map<string, number>>()
  /** Threads with a leg to drive. */
  readonly legs = new Set<string>()
  /** What the index on disk does not have yet. */
  readonly dirty = new Set<string>()
  /** A thread was removed since the index on disk was last written, also one whose id was taken again. */
  erased = false
  readonly #asks = new Map<string, Map<string, AskRow>>()
  readonly #owners = new Map<string, Map<string, Owner>>()
  readonly #inboxes = new Inboxes()

  apply(threadId: string, { thread, ask, timers }: Marks): void {
    if (!thread && !ask && !timers) return
    this.dirty.add(threadId)
    const known = this.rows.get(threadId)
    if (thread && (known || thread.tenant !== undefined))
      this.#setRow({ ...(known as ThreadRow), ...thread, threadId })
    if (ask) this.#setAsk(threadId, ask)
    for (const [key, at] of Object.entries(timers ?? {})) this.#setTimer(threadId, key, at)
  }

  remove(threadId: string): void {
    this.dirty.add(threadId)
    this.erased = true
    const row = this.rows.get(threadId)
    if (row) this.#unlist(row)
    for (const ask of this.#asks.get(threadId)?.values() ?? []) this.#inboxes.set(ask, undefined)
    this.rows.delete(threadId)
    this.#asks.delete(threadId)
    this.timers.delete(threadId)
    this.legs.delete(threadId)
  }

  record(threadId: string): IndexRecord {
    const row = this.rows.get(threadId)
    if (!row) return { id: threadId }
    const timers = this.timers.get(threadId)
    const asks = this.#asks.get(threadId)
    return {
      id: threadId,
      row,
      ...(timers && { timers: Object.fromEntries(timers) }),
      ...(asks && { asks: [...asks.values()] }),
    }
  }

  restore({ id, row, timers, asks }: IndexRecord): void {
    if (this.rows.has(id)) this.remove(id)
    if (row) this.#setRow(row)
    for (const ask of asks ?? []) this.#setAsk(id, ask)
    for (const [key, at] of Object.entries(timers ?? {})) this.#setTimer(id, key, at)
  }

  locate({ tenant, owner, clientId }: ThreadName): string | undefined {
    return this.#owners.get(tenant)?.get(owner)?.names.get(clientId)
  }

  threads({ tenant, owner, archived, agent, active, limit, cursor }: ThreadQuery): Page<ThreadRow> {
    const rows = this.#owners.get(tenant)?.get(owner)?.rows
    if (!rows) return emptyPage(newest.name, cursor)
    return rows.page(
      limit,
      cursor,
      (row) =>
        (archived === undefined || row.archived === archived) &&
        (agent === undefined || row.agent === agent) &&
        (!active || row.status !== 'idle'),
    )
  }

  /** Tenants, owners and trays that have a list. */
  get lists(): number {
    let owners = this.#owners.size
    for (const some of this.#owners.values()) owners += some.size
    return owners + this.#inboxes.size
  }

  asks(query: AskQuery): Page<AskRow> {
    return this.#inboxes.page(query)
  }

  askChanges(query: AskChanges) {
    return this.#inboxes.changes(query)
  }

  #setRow(row: ThreadRow): void {
    const known = this.rows.get(row.threadId)
    if (
      known &&
      (known.tenant !== row.tenant || known.owner !== row.owner || known.clientId !== row.clientId)
    )
      this.#unlist(known)
    this.rows.set(row.threadId, row)
    const owners = within(this.#owners, row.tenant, () => new Map<string, Owner>())
    const owner = within(owners, row.owner, () => ({
      names: new Map(),
      rows: new SortedRows(newest),
    }))
    owner.names.set(row.clientId, row.threadId)
    owner.rows.set(row.threadId, row)
    if (row.leg === null) this.legs.delete(row.threadId)
    else this.legs.add(row.threadId)
  }

  #unlist({ tenant, owner, clientId, threadId }: ThreadRow): void {
    const entry = this.#owners.get(tenant)?.get(owner)
    if (entry?.names.get(clientId) === threadId) entry.names.delete(clientId)
    entry?.rows.set(threadId, undefined)
    if (entry?.names.size !== 0) return
    this.#owners.get(tenant)?.delete(owner)
    if (this.#owners.get(tenant)?.size === 0) this.#owners.delete(tenant)
  }

  #setAsk(threadId: string, columns: NonNullable<Marks['ask']>): void {
    const known = this.#asks.get(threadId)?.get(columns.askId)
    // The columns of an ask that was never raised have no row to go to.
    if (!known && columns.raisedAt === undefined) return
    const { agent = '', clientId = '' } = this.rows.get(threadId) ?? {}
    const before = known ?? { agent, clientId, decidedBy: null } // older marks do not say these
    const ask = { ...(before as AskRow), ...columns, threadId }
    within(this.#asks, threadId, () => new Map()).set(ask.askId, ask)
    this.#inboxes.set(known, ask)
  }

  #setTimer(threadId: string, key: string, at: number | null): void {
    if (at !== null) within(this.timers, threadId, () => new Map()).set(key, at)
    else {
      this.timers.get(threadId)?.delete(key)
      if (this.timers.get(threadId)?.size === 0) this.timers.delete(threadId)
    }
  }
}

/** By `updatedAt`, then by id: ids sort by the time they were made, so the greater is the newer. */
const newest: Order<ThreadRow> = {
  name: 'newest',
  key: (row) => [row.updatedAt, row.threadId],
  compare: (a, b) => -compareKeys(a, b),
  copy: (row) => ({ ...row }),
}

/** Nothing to list, but a cursor that is not ours is told so all the same. */
function emptyPage<Row>(name: string, cursor: string | undefined): Page<Row> {
  if (cursor !== undefined) decode(name, cursor)
  return { rows: [] }
}

function within<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}
