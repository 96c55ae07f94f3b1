import { auditContract } from '../../../test/contracts/audit.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import type { Kept } from '../../core/store.ts'
import { postgresReader } from './reader.ts'
import { keyOf, pack } from './text.ts'

const workshop = postgresWorkshop()

async function open() {
  const store = await workshop.open()
  const judge = await workshop.judge()
  return {
    store,
    reader: () => postgresReader(workshop.server().url, workshop.schema()),
    async put(threadId: string, kept: readonly Kept[]) {
      const rows = kept.map(({ entry: { seq, body, ...envelope }, marks = null }) => ({
        ...{ seq, envelope, marks, body: pack(body) },
      }))
      await judge.query('DELETE FROM entries WHERE thread_id = $1', [keyOf(threadId)])
      await judge.query(
        `INSERT INTO entries SELECT $1, seq, envelope, marks, body FROM
          json_to_recordset($2) AS r (seq bigint, envelope json, marks json, body text)`,
        [keyOf(threadId), JSON.stringify(rows)],
      )
    },
    dispose: async () => {},
  }
}

auditContract('postgres', open, 60)
