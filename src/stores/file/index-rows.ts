import type { AskRow, ThreadRow } from '../../core/store.ts'
import type { IndexRecord } from './tables.ts'

/** Written beside the rows, so that a later version may have others. */
const columns = [
  ...(['threadId', 'tenant', 'owner', 'clientId', 'agent', 'title', 'createdAt'] as const),
  ...(['updatedAt', 'archived', 'status', 'leg'] as const),
]

interface Chunk {
  columns: string[]
  rows: unknown[][]
}

/** Values without their names: half the bytes, and a start-up of 100,000 chats in half the time. */
export function encodeRows(records: readonly IndexRecord[]): string {
  const rows = records.map(({ id, row, timers, asks }) =>
    row ? [...columns.map((column) => row[column]), timers ?? 0, asks ?? 0] : [id],
  )
  return JSON.stringify({ columns, rows } satisfies Record<keyof Chunk, unknown>)
}

export function decodeRows(text: string): IndexRecord[] {
  const chunk = JSON.parse(text) as Chunk
  const width = chunk.columns.length
  return chunk.rows.map((values) => {
    const id = values[0] as string
    if (values.length === 1) return { id }
    const row: Record<string, unknown> = {}
    for (let n = 0; n < width; n++) row[chunk.columns[n]!] = values[n]
    return {
      id,
      row: row as unknown as ThreadRow,
      timers: (values[width] || undefined) as Record<string, number> | undefined,
      asks: (values[width + 1] || undefined) as AskRow[] | undefined,
    }
  })
}
