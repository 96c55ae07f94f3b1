import type { Archive, NewEntry, Store, ThreadRow } from '../../core/store.ts'
import { residuesFrom } from './residues.ts'
import { type Found, type KeptRow, keptOf, threadOf } from './rows.ts'
import type { Query, Statements } from './statements.ts'
import { keyOf, pack } from './text.ts'

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
        const found = await query<KeptRow>(sql.kept, [keyOf(threadId), after, 1_000])
        if (found.length === 0) return entries
        after = found.at(-1)!.seq
        for (const { entry, marks } of found.map(keptOf)) {
          const { seq: _, ...given } = entry
          entries.push({ ...given, ...(marks && { marks }) })
        }
      }
    },

    residues: () => residuesFrom(query, sql),

    async keepResidue({ id, text }) {
      await query(sql.keepResidue, [keyOf(id), pack(text)])
    },

    async restore(threadId, entries) {
      // First: should we be stopped in between, some numbers are never used.
      const most = entries.reduce((most, { fence }) => Math.max(most, fence), 0)
      if (most > 0) await query(sql.raiseFences, [most])
      await append(threadId, entries, {})
    },
  }
}
