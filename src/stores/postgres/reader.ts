import pg from 'pg'
import type { Reader } from '../../core/store.ts'
import { residuesFrom } from './residues.ts'
import { type Found, type KeptRow, keptOf, threadOf } from './rows.ts'
import { type Query, statements } from './statements.ts'
import { keyOf } from './text.ts'

const page = 1_000

/** Reads a schema and changes nothing in it: a role that may only read will do. */
export async function postgresReader(url: string, schema: string): Promise<Reader> {
  const client = new pg.Client({ connectionString: url, application_name: 'handrail audit' })
  client.on('error', () => {}) // the statement under way rejects
  await client.connect()
  await client.query('SET default_transaction_read_only = on')
  const sql = statements(schema)
  const query: Query = async (statement, values) =>
    (await client.query(statement.text, values)).rows
  return {
    async *threadIds() {
      for (let after: unknown = null; ; ) {
        const rows = await query<Found>(sql.everyThread, [after])
        if (rows.length === 0) return
        after = rows.at(-1)?.thread_id
        for (const row of rows) yield threadOf(row).threadId
      }
    },

    async *entries(threadId) {
      for (let after = 0; ; ) {
        const values = [keyOf(threadId), after, page]
        const rows = await query<KeptRow>(sql.kept, values)
        for (const row of rows) yield keptOf({ ...row, seq: Number(row.seq) })
        if (rows.length < page) return
        after = Number(rows.at(-1)!.seq)
      }
    },

    residues: () => residuesFrom(query, sql),

    close: () => client.end(),
  }
}
