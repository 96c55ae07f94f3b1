import type { Entry } from '../../core/entries.ts'
import type { AskRow, Kept, Marks, ThreadRow } from '../../core/store.ts'
import { isShortened, keyOf, pack, unpack } from './text.ts'

type Column<Row> = readonly [
  field: keyof Row & string,
  column: string,
  kind: 'key' | 'text' | 'raw',
]

const threadFields: readonly Column<ThreadRow>[] = [
  ['threadId', 'thread_id', 'key'],
  ['tenant', 'tenant', 'key'],
  ['owner', 'owner', 'key'],
  ['clientId', 'client_id', 'key'],
  ['agent', 'agent', 'text'],
  ['title', 'title', 'text'],
  ['createdAt', 'created_at', 'raw'],
  ['updatedAt', 'updated_at', 'raw'],
  ['archived', 'archived', 'raw'],
  ['status', 'status', 'text'],
  ['leg', 'leg', 'text'],
]

const askFields: readonly Column<AskRow>[] = [
  ['threadId', 'thread_id', 'key'],
  ['askId', 'ask_id', 'key'],
  ['tenant', 'tenant', 'key'],
  ['owner', 'owner', 'key'],
  ['clientId', 'client_id', 'key'],
  ['runId', 'run_id', 'text'],
  ['agent', 'agent', 'text'],
  ['kind', 'kind', 'text'],
  ['title', 'title', 'text'],
  ['tool', 'tool', 'text'],
  ['audience', 'audience', 'text'],
  ['state', 'state', 'text'],
  ['raisedAt', 'raised_at', 'raw'],
  ['deadline', 'deadline', 'raw'],
  ['settledAt', 'settled_at', 'raw'],
  ['decidedBy', 'decided_by', 'key'],
  ['edited', 'edited', 'raw'],
]

const list = (fields: readonly Column<never>[], of = '') =>
  [...fields.map(([, column]) => column), 'names'].map((column) => of + column).join(', ')

export const threadListOf = (of: string) => list(threadFields, of)
export const threadList = threadListOf('')
export const askList = list(askFields, 'a.')

export const threadColumns = (row: Partial<ThreadRow>) => columnsOf(threadFields, row)
export const askColumns = (row: Partial<AskRow>) => columnsOf(askFields, row)
export const threadOf = (found: Found): ThreadRow => rowOf(threadFields, found)
export function askOf(found: Found): AskRow {
  const { edited, ...row } = rowOf(askFields, found)
  return edited ? { ...row, edited } : row
}

export type Found = Record<string, unknown> & { names: Record<string, string> | null }

export interface KeptRow extends Record<string, unknown> {
  seq: number
  envelope: Omit<Entry, 'seq' | 'body'>
  marks: Marks | null
  body: string
}

export const keptOf = ({ seq, envelope, marks, body }: KeptRow): Kept => ({
  entry: { ...envelope, seq, body: unpack(body) },
  ...(marks && { marks }),
})

/** Those columns that are given. Names too long for a column go beside it. */
function columnsOf<Row>(fields: readonly Column<Row>[], row: Partial<Row>): object {
  const columns: Record<string, unknown> = {}
  const names: Record<string, string> = {}
  for (const [field, column, kind] of fields) {
    const value = row[field]
    if (value === undefined) continue
    columns[column] = kind === 'raw' ? value : onText(value, kind === 'key' ? keyOf : pack)
    if (kind === 'key' && isShortened(columns[column])) names[field] = pack(value as string)
  }
  if (Object.keys(names).length > 0) columns.names = names
  return columns
}

function rowOf<Row>(fields: readonly Column<Row>[], found: Found): Row {
  const row: Record<string, unknown> = {}
  for (const [field, column, kind] of fields) {
    const value = found[column]
    const full = kind === 'key' && isShortened(value) ? found.names?.[field] : undefined
    row[field] = kind === 'raw' ? value : onText(full ?? value, unpack)
  }
  return row as Row
}

function onText(value: unknown, change: (text: string) => string): unknown {
  if (Array.isArray(value)) return value.map(change)
  return typeof value === 'string' ? change(value) : value
}
