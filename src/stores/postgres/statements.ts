import pg from 'pg'
import { askList, threadList } from './rows.ts'

export type Statements = ReturnType<typeof statements>

/** All that is said to Postgres. The schema is the only name in it; all values are parameters. */
export function statements(schema: string) {
  const s = pg.escapeIdentifier(schema)
  return {
    append: `SELECT * FROM ${s}.append($1, $2)`,
    erase: `SELECT * FROM ${s}.erase($1, $2, $3, $4)`,
    giveUp: `SELECT * FROM ${s}.give_up($1, $2)`,
    forgetGivenUp: `DELETE FROM ${s}.given_up WHERE at < now() - interval '7 days'`,
    read: `SELECT seq, envelope, body FROM ${s}.entries
      WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
    locate: `SELECT thread_id, names FROM ${s}.threads
      WHERE tenant = $1 AND owner = $2 AND client_id = $3`,
    thread: `SELECT ${threadList} FROM ${s}.threads WHERE thread_id = $1`,
    claim: `SELECT ${s}.claim($1, $2, $3, $4, $5) AS fence`,
    renew: `UPDATE ${s}.leases SET until = coalesce($3, ${s}.now_ms()) + $2
      WHERE holder = $1 RETURNING fence`,
    release: `UPDATE ${s}.leases SET holder = NULL, until = NULL WHERE thread_id = $1 AND fence = $2`,
    /** Legs without a live lease, the longest untouched first, then timers that are due. */
    work: `WITH clock AS (SELECT coalesce($2, ${s}.now_ms()) AS now)
      SELECT thread_id, names FROM (
        (SELECT t.thread_id, t.names
          FROM ${s}.threads t LEFT JOIN ${s}.leases l USING (thread_id)
          WHERE t.leg IS NOT NULL AND (l.until IS NULL OR l.until <= (SELECT now FROM clock))
          ORDER BY t.updated_at LIMIT $1)
        UNION ALL
        (SELECT t.thread_id, t.names
          FROM ${s}.timers d JOIN ${s}.threads t USING (thread_id)
          WHERE d.at <= (SELECT now FROM clock)
          ORDER BY d.at LIMIT $1)
      ) found`,
    /** When the next lease of a leg lapses or the next timer is due. */
    nextAt: `WITH clock AS (SELECT coalesce($1, ${s}.now_ms()) AS now)
      SELECT least(
        (SELECT min(l.until) FROM ${s}.threads t JOIN ${s}.leases l USING (thread_id)
          WHERE t.leg IS NOT NULL AND l.until > (SELECT now FROM clock)),
        (SELECT min(d.at) FROM ${s}.timers d WHERE d.at > (SELECT now FROM clock))
      ) AS next_at`,
    threads: (where: string, limit: string) =>
      `SELECT ${threadList} FROM ${s}.threads WHERE ${where}
        ORDER BY updated_at DESC, thread_id DESC LIMIT ${limit}`,
    asks: (where: string, limit: string) =>
      `SELECT ${askList} FROM ${s}.asks WHERE ${where}
        ORDER BY deadline, ask_id, thread_id LIMIT ${limit}`,
  }
}
