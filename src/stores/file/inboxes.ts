import { isWanted, liesIn, traysFor, traysOf } from '../../core/audience.ts'
import type { AskChanges, AskQuery, AskRow, Page } from '../../core/store.ts'
import { Changes } from './changes.ts'
import { compareKeys, decode, encode, type Key, type Order, SortedRows } from './sorted.ts'

/** The asks of a tenant: all of them, those of each tray, and by their ids. */
interface Inbox {
  whole: Tray
  trays: Map<string, Tray>
  ids: Map<string, Map<string, AskRow>>
}

/** The open ones apart: what was settled stays for ever, and nobody who asks for work reads past it. */
interface Tray {
  all: SortedRows<AskRow>
  pending: SortedRows<AskRow>
  settled: SortedRows<AskRow>
}

const newTray = (): Tray => ({
  all: new SortedRows(soonest),
  pending: new SortedRows(soonest),
  settled: new SortedRows(latest),
})

/** Every ask, in the order in which they must be answered. A page reads its own rows only. */
export class Inboxes {
  readonly #inboxes = new Map<string, Inbox>()
  readonly #changes = new Changes()

  /** Lists the ask as it is now, in place of what was known of it. */
  set(known: AskRow | undefined, ask: AskRow | undefined): void {
    if (known && known.tenant !== ask?.tenant) this.#put(known, undefined, traysOf(known))
    if (!ask) return
    const left = known?.tenant === ask.tenant ? [...traysOf(known)] : []
    this.#put(ask, ask, traysOf(ask), left)
  }

  /** Inboxes and trays. */
  get size(): number {
    let trays = 0
    for (const inbox of this.#inboxes.values()) trays += 1 + inbox.trays.size
    return trays
  }

  page({ tenant, limit, cursor, ...query }: AskQuery): Page<AskRow> {
    const order = query.state === 'settled' ? latest : soonest
    const after = cursor === undefined ? undefined : decode(order.name, cursor)
    const inbox = this.#inboxes.get(tenant)
    const wanted = (ask: AskRow) => isWanted(ask, { tenant, ...query })
    if (!inbox) return { rows: [] }
    const rows =
      query.askId === undefined
        ? listsFor(inbox, query).map((list) => list.first(limit + 1, after, wanted))
        : [byId(inbox, query).filter(wanted)]
    return joined(rows, limit, order)
  }

  changes({ tenant, decider, after, limit }: AskChanges): { rows?: AskRow[]; next: string } {
    const { next } = this.#changes
    const changed = after === undefined ? [] : this.#changes.since(after)
    if (!changed) return { next }
    const trays = traysFor(decider)
    const rows = new Set<AskRow>()
    for (const one of changed) {
      const ids = one.tenant === tenant ? this.#inboxes.get(tenant)?.ids : undefined
      const ask = ids?.get(one.askId)?.get(one.threadId)
      if (ask && liesIn(ask, trays)) rows.add(ask)
    }
    return rows.size > limit ? { next } : { rows: Array.from(rows, soonest.copy), next }
  }

  #put(
    { tenant, threadId, askId }: AskRow,
    ask: AskRow | undefined,
    trays: ReadonlySet<string>,
    left: readonly string[] = [],
  ): void {
    const inbox = this.#inboxes.get(tenant) ?? {
      whole: newTray(),
      trays: new Map(),
      ids: new Map(),
    }
    this.#inboxes.set(tenant, inbox)
    const id = JSON.stringify([threadId, askId])
    const put = ({ all, pending, settled }: Tray, row: AskRow | undefined) => {
      const open = row?.state === 'pending'
      all.set(id, row)
      pending.set(id, open ? row : undefined)
      settled.set(id, open ? undefined : row)
    }
    put(inbox.whole, ask)
    for (const name of [...left.filter((one) => !trays.has(one)), ...trays]) {
      const tray = inbox.trays.get(name) ?? newTray()
      inbox.trays.set(name, tray)
      put(tray, trays.has(name) ? ask : undefined)
    }
    if (!ask) this.#forgetEmpty(tenant, inbox, [...left, ...trays])
    const alike = inbox.ids.get(askId) ?? new Map<string, AskRow>()
    this.#changes.add({ tenant, threadId, askId })
    if (ask) inbox.ids.set(askId, alike.set(threadId, ask))
    else if (alike.delete(threadId) && alike.size === 0) inbox.ids.delete(askId)
  }

  /** Removes the trays of these names, and the inbox, if no ask is in them any more. */
  #forgetEmpty(tenant: string, inbox: Inbox, names: readonly string[]): void {
    for (const name of names) if (inbox.trays.get(name)?.all.isEmpty) inbox.trays.delete(name)
    if (inbox.whole.all.isEmpty) this.#inboxes.delete(tenant)
  }
}

function listsFor(inbox: Inbox, { decider, state }: Pick<AskQuery, 'decider' | 'state'>) {
  const trays = decider ? traysFor(decider).map((name) => inbox.trays.get(name)) : [inbox.whole]
  const list = state === 'pending' || state === 'settled' ? state : 'all'
  return trays.flatMap((tray) => tray?.[list] ?? [])
}

function byId({ ids }: Inbox, { askId = '', decider }: Pick<AskQuery, 'askId' | 'decider'>) {
  const trays = decider && traysFor(decider)
  return [...(ids.get(askId)?.values() ?? [])]
    .filter((ask) => !trays || liesIn(ask, trays))
    .map(soonest.copy)
}

/** The first of several lists; an ask that is in more than one of them is one. */
function joined(lists: AskRow[][], limit: number, order: Order<AskRow>): Page<AskRow> {
  const all = new Map<string, { row: AskRow; key: Key }>()
  for (const row of lists.flat()) {
    const key = order.key(row)
    all.set(JSON.stringify(key), { row, key })
  }
  const sorted = [...all.values()].sort((a, b) => order.compare(a.key, b.key))
  const page = sorted.slice(0, Math.max(0, limit))
  const last = page.at(-1)
  const rows = page.map(({ row }) => row)
  return last && sorted.length > page.length
    ? { rows, next: encode(order.name, last.key) }
    : { rows }
}

const soonest: Order<AskRow> = {
  name: 'soonest',
  key: (ask) => [ask.deadline, ask.askId, ask.threadId],
  compare: compareKeys,
  copy: (ask) => ({ ...ask, audience: [...ask.audience] }),
}

/** What was settled, the latest first. */
const latest: Order<AskRow> = {
  name: 'latest',
  key: (ask) => [ask.settledAt ?? ask.deadline, ask.askId, ask.threadId],
  compare: (a, b) => compareKeys(b, a),
  copy: soonest.copy,
}
