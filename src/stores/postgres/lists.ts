import { type Person, rolesOf } from '../../core/audience.ts'
import { askStates } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type {
  AskChanges,
  AskQuery,
  AskRow,
  Page,
  ThreadQuery,
  ThreadRow,
} from '../../core/store.ts'
import type { Database } from './database.ts'
import { askOf, type Found, threadOf } from './rows.ts'
import type { Statements } from './statements.ts'
import { keyOf, pack } from './text.ts'

/** Pages of threads and asks. A cursor is the key of a page's last row, so new rows shift nothing. */
export function lists(database: Database, sql: Statements) {
  return {
    async threads(query: ThreadQuery): Promise<Page<ThreadRow>> {
      const after = decode(query.cursor, 'newest', 1)
      const where = new Where()
      where.is('tenant', keyOf(query.tenant))
      where.is('owner', keyOf(query.owner))
      where.is('archived', query.archived)
      where.is('agent', query.agent === undefined ? undefined : pack(query.agent))
      // Spelled out as in the index of those.
      if (query.active) where.parts.push("status <> 'idle'")
      where.beyond('(updated_at, thread_id) <', after)
      const statement = sql.threads(where.text, where.add(most(query.limit) + 1))
      const found = await database.query<Found>(statement, where.values)
      const keyOfRow = (row: ThreadRow) => ['newest', row.updatedAt, row.threadId]
      return pageOf(found.map(threadOf), query.limit, keyOfRow)
    },

    async asks(query: AskQuery): Promise<Page<AskRow>> {
      const order = query.state === 'settled' ? latest : soonest
      const after = decode(query.cursor, order.name, 2)
      const { statement, values } = asksOf(query, after, sql)
      const found = await database.query<Found>(statement, values)
      const keyOfRow = (ask: AskRow) => [order.name, order.at(ask), ask.askId, ask.threadId]
      return pageOf(found.map(askOf), query.limit, keyOfRow)
    },

    async askChanges({ tenant, decider, after, limit }: AskChanges) {
      const known = after === undefined || /^\d{1,19}$/.test(after)
      // The largest there is: nothing came after it.
      const from = known && after !== undefined ? after : '18446744073709551615'
      const values = [keyOf(tenant), traysOf(decider), from, most(limit) + 1]
      const found = await database.query<Found>(sql.askChanges, values)
      const { next, latest } = found[0] as unknown as { next: string; latest: string }
      const lost = !known || (after !== undefined && BigInt(after) > BigInt(latest))
      const rows = found.filter(({ ask_id }) => ask_id !== null).map(askOf)
      return lost || rows.length > most(limit) ? { next } : { rows, next }
    },
  }
}

const soonest = {
  name: 'soonest',
  at: ({ deadline }: AskRow) => deadline,
  key: (of: string) => [`${of}.deadline`, `${of}.ask_id`, `${of}.thread_id`],
  down: '',
}

const latest = {
  name: 'latest',
  at: ({ settledAt, deadline }: AskRow) => settledAt ?? deadline,
  key: (of: string) => [
    of === 'i' ? 'i.settled_at' : `coalesce(${of}.settled_at, ${of}.deadline)`,
    ...[`${of}.ask_id`, `${of}.thread_id`],
  ],
  down: ' DESC',
}

type Key = (number | string)[] | undefined

function asksOf(query: AskQuery, after: Key, sql: Statements) {
  const where = new Where()
  const { decider, askId, state } = query
  const key = (name: string | undefined) => (name === undefined ? undefined : keyOf(name))
  const text = (name: string | undefined) => (name === undefined ? undefined : pack(name))
  const trays = decider && where.add(traysOf(decider))
  // A single one is looked up; pages follow the order of the trays.
  const inTrays = trays !== undefined && askId === undefined
  const from = inTrays ? 'i' : 'a'
  where.is(`${from}.tenant`, keyOf(query.tenant))
  const order = state === 'settled' ? latest : soonest
  where.beyond(`(${order.key(from).join(', ')}) ${order === latest ? '<' : '>'}`, after)
  const row = new Where(where.values)
  row.is('a.owner', key(query.owner))
  row.is('a.ask_id', key(askId))
  row.is('a.client_id', key(query.clientId))
  row.is('a.kind', query.kind)
  row.is('a.tool', text(query.tool))
  row.is('a.agent', text(query.agent))
  if (inTrays) {
    if (row.parts.length > 0) where.parts.push(sql.rowHas(row.text))
    const limit = most(query.limit) + 1
    if (state === 'settled') {
      const statement = sql.settled(trays, where.text, where.add(limit))
      return { statement, values: where.values }
    }
    const states = where.add(state ? [state] : askStates)
    const statement = sql.inbox(trays, states, where.text, where.add(limit))
    return { statement, values: where.values }
  }
  where.parts.push(...row.parts)
  if (trays) where.parts.push(sql.liesIn(trays))
  // Spelled out, because Postgres takes the index of pending ones only for this very word.
  if (state === 'pending') where.parts.push("a.state = 'pending'")
  else if (state === 'settled') where.parts.push("a.state <> 'pending'")
  else where.is('a.state', state)
  const statement = sql.asks(where.text, where.add(most(query.limit) + 1), order)
  return { statement, values: where.values }
}

/** As the trigger names them. */
const traysOf = ({ user, roles }: Person) => [
  `owner:${keyOf(user)}`,
  ...rolesOf(roles).map((role) => `role:${pack(role)}`),
  `by:${keyOf(user)}`,
]

/** Conditions and their parameters. */
class Where {
  readonly parts: string[] = []
  readonly values: unknown[]

  constructor(values: unknown[] = []) {
    this.values = values
  }

  get text(): string {
    return this.parts.join(' AND ')
  }

  add(value: unknown): string {
    return `$${this.values.push(value)}`
  }

  is(column: string, value: unknown): void {
    if (value !== undefined) this.parts.push(`${column} = ${this.add(value)}`)
  }

  beyond(comparison: string, key: readonly (number | string)[] | undefined): void {
    if (key) this.parts.push(`${comparison} (${key.map((part) => this.add(part)).join(', ')})`)
  }
}

const most = (limit: number) => Math.min(Math.max(0, limit), 1_000_000)

/** One row more than wanted was asked for: it says whether there is a next page. */
function pageOf<Row>(found: Row[], limit: number, keyOfRow: (row: Row) => unknown[]): Page<Row> {
  const rows = found.slice(0, most(limit))
  const last = rows.at(-1)
  if (last === undefined || found.length <= rows.length) return { rows }
  return { rows, next: Buffer.from(JSON.stringify(keyOfRow(last))).toString('base64url') }
}

function decode(cursor: string | undefined, order: string, names: number) {
  if (cursor === undefined) return undefined
  try {
    const [made, at, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const strings = rest.length === names && rest.every((part: unknown) => typeof part === 'string')
    if (made === order && Number.isFinite(at) && strings) {
      const safe = Math.max(-(2 ** 53), Math.min(2 ** 53, Math.trunc(at)))
      return [safe, ...rest.map(keyOf)] as (number | string)[]
    }
  } catch {}
  throw new RuntimeError('invalid_cursor', undefined, { field: 'cursor' })
}
