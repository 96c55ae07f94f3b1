import type { Entry } from '../../core/entries.ts'
import type { Archive, Marks, NewEntry, Store, ThreadRow } from '../../core/store.ts'
import { type Found, threadOf } from './rows.ts'
import type { Statement, Statements } from './statements.ts'
import { keyOf, unpack } from './text.ts'

type Query = <T extends Record<string, unknown>>(
  statement: Statement,
  values: unknown[],
) => Promise<T[]>

/** Whole threads, out and in. */
export function archive(query: Query, sql: Statements, append: Store['append']): Archive {
  return {
    async *everyThread(): AsyncGenerator<ThreadRow> {
      for (let after: unknown = null; ; ) {
        const found = await query<Found>(sql.everyThread, [after])
        if (found.length === 0) return
        after = found.at(-1)?.thread_id
        yield* found.map(threadOf)
      }
    },

    async dump(threadId) {
      const entries: NewEntry[] = []
      for (let after = 0; ; ) {
        const found = await query<Kept>(sql.dump, [keyOf(threadId), after])
        if (found.length === 0) return entries
        after = found.at(-1)!.seq
        for (const { envelope, marks, body } of found)
          entries.push({ ...envelope, body: unpack(body), ...(marks && { marks }) })
      }
    },

    async restore(threadId, entries) {
      // First: should we be stopped in between, some numbers are never used.
      const most = entries.reduce((most, { fence }) => Math.max(most, fence), 0)
      if (most > 0) await query(sql.raiseFences, [most])
      await append(threadId, entries, {})
    },
  }
}

interface Kept extends Record<string, unknown> {
  seq: number
  envelope: Omit<Entry, 'seq' | 'body'>
  marks: Marks | null
  body: string
}
