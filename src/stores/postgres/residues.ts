import type { Residue } from '../../core/store.ts'
import { sqlState } from './problems.ts'
import type { Query, Statements } from './statements.ts'
import { unpack } from './text.ts'

/** None in a schema that is older than they are: an audit migrates nothing. */
export async function* residuesFrom(query: Query, sql: Statements): AsyncGenerator<Residue> {
  for (let after: string | null = null; ; ) {
    const found: Found[] = await query<Found>(sql.residues, [after]).catch((error: unknown) => {
      if (sqlState(error) === undefinedTable) return []
      throw error
    })
    if (found.length === 0) return
    after = found.at(-1)!.id
    for (const { id, content } of found) yield { id: unpack(id), text: unpack(content) }
  }
}

interface Found extends Record<string, unknown> {
  id: string
  content: string
}

const undefinedTable = '42P01'
