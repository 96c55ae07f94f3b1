import pg from 'pg'
import { sha256 } from '../../lib/canonical.ts'
import { askList, threadList, threadListOf } from './rows.ts'

export type Statements = ReturnType<typeof statements>

/** With a name it is parsed and planned once per connection. */
export interface Statement {
  text: string
  name?: string
}

export type Query = <T extends Record<string, unknown>>(
  statement: Statement,
  values: unknown[],
) => Promise<T[]>

interface AskOrder {
  /** Its columns, of the table that goes by this name. */
  key(of: string): string[]
  down: string
}

const prepared = (text: string): Statement => ({
  text,
  name: `handrail_${sha256(text).slice(0, 16)}`,
})

const some = (entries: string, columns: string) => `SELECT ${columns} FROM (
    SELECT e.*, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before FROM (
      SELECT ${columns} FROM ${entries} WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3
    ) e
  ) page WHERE before < $4 ORDER BY seq`

/** All that is said to Postgres. The schema is the only name in it; all values are parameters. */
export function statements(schema: string) {
  const s = pg.escapeIdentifier(schema)
  const until = `(SELECT l.until FROM ${s}.leases l WHERE l.thread_id = t.thread_id)`
  return {
    append: prepared(`SELECT * FROM ${s}.append($1, $2)`),
    erase: { text: `SELECT * FROM ${s}.erase($1, $2, $3, $4, $5, $6)` },
    residues: {
      text: `SELECT id, content FROM ${s}.residues
        WHERE $1::text IS NULL OR id > $1 ORDER BY id LIMIT 100`,
    },
    keepResidue: {
      text: `INSERT INTO ${s}.residues (id, content) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
    },
    /** Writes nothing, and is refused where nothing may be written. */
    tryWrite: { text: `UPDATE ${s}.leases SET holder = holder WHERE false` },
    /** Writes some pages that nobody will see. */
    tryRoom: {
      text: `DO $$ BEGIN
        INSERT INTO ${s}.residues (id, content)
          SELECT gen_random_uuid()::text, string_agg(md5(n::text), '') FROM generate_series(1, 2000) n;
        RAISE SQLSTATE 'HR000';
      EXCEPTION WHEN SQLSTATE 'HR000' THEN NULL;
      END $$`,
    },
    giveUp: { text: `SELECT * FROM ${s}.give_up($1, $2)` },
    forgetGivenUp: { text: `DELETE FROM ${s}.given_up WHERE at < now() - interval '7 days'` },
    read: prepared(`SELECT seq, envelope, body FROM ${s}.entries
      WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`),
    kept: {
      text: `SELECT seq, envelope, marks, body FROM ${s}.entries
        WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
    },
    /** The same, ended by the entry with which there are $4 bytes of bodies. Those behind it are not read. */
    readSome: prepared(some(`${s}.entries`, 'seq, envelope, body')),
    keptSome: { text: some(`${s}.entries`, 'seq, envelope, marks, body') },
    everyThread: {
      text: `SELECT ${threadList} FROM ${s}.threads
        WHERE $1::text IS NULL OR thread_id > $1 ORDER BY thread_id LIMIT 1000`,
    },
    /**
     * The newest texts with all the keys, after a place if one is given, and their entries. First these and
     * then whose they are: Postgres cannot know that there are few. What has the keys by chance has no thread.
     */
    said: {
      text: `SELECT s.thread_id AS place_of, s.seq, s.at, ${threadListOf('t.')}, e.envelope, e.body
        FROM (
          SELECT thread_id, seq, at FROM ${s}.said
          WHERE keys @> $3::integer[] AND ($4::text IS NULL OR thread_id <> $4)
            AND ($5::bigint IS NULL OR (at, thread_id, seq) < ($5, $6::text COLLATE "C", $7))
          ORDER BY at DESC, thread_id DESC, seq DESC LIMIT $8
        ) s
        LEFT JOIN ${s}.threads t ON t.thread_id = s.thread_id AND t.tenant = $1 AND t.owner = $2
        LEFT JOIN ${s}.entries e ON e.thread_id = t.thread_id AND e.seq = s.seq
        ORDER BY s.at DESC, s.thread_id DESC, s.seq DESC`,
    },
    /** Threads of an owner that are behind, and always one row with the owner's key. */
    behindOf: prepared(`SELECT o.key, b.thread_id, b.after
      FROM (SELECT ${s}.owner_key($1, $2) AS key) o LEFT JOIN LATERAL (
        SELECT t.thread_id, coalesce(l.seq, 0) AS after FROM ${s}.threads t
        LEFT JOIN ${s}.looked l ON l.thread_id = t.thread_id AND l.owner_key = o.key
        WHERE t.tenant = $1 AND t.owner = $2 AND t.last_seq > coalesce(l.seq, 0) LIMIT 10
      ) b ON true`),
    sweep: {
      text: `SELECT t.thread_id, t.last_seq, coalesce(l.seq, 0) AS after FROM ${s}.threads t
        LEFT JOIN ${s}.looked l ON l.thread_id = t.thread_id
          AND l.owner_key = ${s}.owner_key(t.tenant, t.owner)
        WHERE $1::text IS NULL OR t.thread_id > $1 ORDER BY t.thread_id LIMIT 1000`,
    },
    unlooked: {
      text: `SELECT seq, envelope,
          CASE WHEN envelope->>'kind' = 'message.added' THEN body END AS body
        FROM ${s}.entries WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
    },
    catchUp: { text: `SELECT ${s}.catch_up($1, $2, $3, $4)` },
    raiseFences: { text: `SELECT ${s}.raise_fences($1)` },
    locate: prepared(`SELECT thread_id, names FROM ${s}.threads
      WHERE tenant = $1 AND owner = $2 AND client_id = $3`),
    thread: prepared(`SELECT ${threadList} FROM ${s}.threads WHERE thread_id = $1`),
    claim: prepared(`SELECT ${s}.claim($1, $2, $3, $4, $5) AS fence`),
    time: prepared(`SELECT ${s}.now_ms() AS now`),
    renew: prepared(`UPDATE ${s}.leases SET until = coalesce($3, ${s}.now_ms()) + $2
      WHERE holder = $1 RETURNING fence`),
    release: prepared(`UPDATE ${s}.leases SET holder = NULL, until = NULL
      WHERE thread_id = $1 AND fence = $2`),
    /**
     * Legs without a live lease, the longest untouched first, and timers that are due. Leases are
     * looked up one by one: there are few legs, and a lease for every thread that ever had one.
     */
    work: {
      text: `WITH clock AS (SELECT coalesce($2, ${s}.now_ms()) AS now)
        SELECT thread_id, names, due FROM (
          (SELECT t.thread_id, t.names, false AS due FROM ${s}.threads t
            WHERE t.leg IS NOT NULL AND coalesce(${until}, 0) <= (SELECT now FROM clock)
            ORDER BY t.updated_at LIMIT $1)
          UNION ALL
          (SELECT t.thread_id, t.names, true AS due
            FROM ${s}.timers d JOIN ${s}.threads t USING (thread_id)
            WHERE d.at <= (SELECT now FROM clock)
            ORDER BY d.at LIMIT $1)
        ) found`,
    },
    /** When the next lease of a leg lapses or the next timer is due. */
    nextAt: {
      text: `WITH clock AS (SELECT coalesce($1, ${s}.now_ms()) AS now)
        SELECT least(
          (SELECT min(until) FROM
            (SELECT ${until} AS until FROM ${s}.threads t WHERE t.leg IS NOT NULL) legs
            WHERE until > (SELECT now FROM clock)),
          (SELECT min(d.at) FROM ${s}.timers d WHERE d.at > (SELECT now FROM clock))
        ) AS next_at`,
    },
    threads: (where: string, limit: string): Statement => ({
      text: `SELECT ${threadList} FROM ${s}.threads WHERE ${where}
        ORDER BY updated_at DESC, thread_id DESC LIMIT ${limit}`,
    }),
    asks: (where: string, limit: string, { key, down }: AskOrder): Statement => ({
      text: `SELECT ${askList} FROM ${s}.asks a WHERE ${where}
        ORDER BY ${key('a').join(`${down}, `)}${down} LIMIT ${limit}`,
    }),
    /**
     * The first of each tray and state, of which the index knows the order; of these the first; then their
     * rows. What else is wanted of a row is looked up for one after the other: a join would read whole trays.
     */
    inbox: (trays: string, states: string, where: string, limit: string): Statement => ({
      text: `SELECT ${askList} FROM (
          SELECT DISTINCT ON (i.deadline, i.ask_id, i.thread_id) i.thread_id, i.ask_id
          FROM unnest(${trays}::text[]) AS wanted_tray, unnest(${states}::text[]) AS wanted_state,
          LATERAL (
            SELECT i.deadline, i.ask_id, i.thread_id FROM ${s}.inbox i
            WHERE i.tray = wanted_tray AND i.state = wanted_state AND ${where}
            ORDER BY i.deadline, i.ask_id, i.thread_id LIMIT ${limit}
          ) i
          ORDER BY i.deadline, i.ask_id, i.thread_id LIMIT ${limit}
        ) i JOIN ${s}.asks a ON a.thread_id = i.thread_id AND a.ask_id = i.ask_id
        ORDER BY a.deadline, a.ask_id, a.thread_id`,
    }),
    /** The same of what was settled, the latest first: whichever state that was. */
    settled: (trays: string, where: string, limit: string): Statement => ({
      text: `SELECT ${askList} FROM (
          SELECT DISTINCT ON (i.settled_at, i.ask_id, i.thread_id)
            i.settled_at, i.thread_id, i.ask_id
          FROM unnest(${trays}::text[]) AS wanted_tray,
          LATERAL (
            SELECT i.settled_at, i.ask_id, i.thread_id FROM ${s}.inbox i
            WHERE i.tray = wanted_tray AND i.settled_at IS NOT NULL AND ${where}
            ORDER BY i.settled_at DESC, i.ask_id DESC, i.thread_id DESC LIMIT ${limit}
          ) i
          ORDER BY i.settled_at DESC, i.ask_id DESC, i.thread_id DESC LIMIT ${limit}
        ) i JOIN ${s}.asks a ON a.thread_id = i.thread_id AND a.ask_id = i.ask_id
        ORDER BY i.settled_at DESC, a.ask_id DESC, a.thread_id DESC`,
    }),
    rowHas: (what: string) => `(SELECT ${what} FROM ${s}.asks a
      WHERE a.thread_id = i.thread_id AND a.ask_id = i.ask_id)`,
    /**
     * Changes since a transaction before which all were done: what was committed meanwhile is among them,
     * in whatever order. Those that the next look may find again are after `next`.
     */
    askChanges: prepared(`SELECT pg_snapshot_xmin(at.snapshot)::text AS next,
        pg_snapshot_xmax(at.snapshot)::text AS latest, ${askList}
      FROM (SELECT pg_current_snapshot() AS snapshot) at
      LEFT JOIN LATERAL (
        SELECT DISTINCT i.thread_id, i.ask_id FROM ${s}.inbox i
        WHERE i.tenant = $1 AND i.tray = ANY ($2::text[]) AND i.changed >= $3::text::xid8
          AND i.changed < pg_snapshot_xmax(at.snapshot)
        LIMIT $4
      ) i ON true
      LEFT JOIN ${s}.asks a ON a.thread_id = i.thread_id AND a.ask_id = i.ask_id`),
    liesIn: (trays: string) => `EXISTS (SELECT FROM ${s}.inbox i
      WHERE i.thread_id = a.thread_id AND i.ask_id = a.ask_id AND i.tray = ANY (${trays}::text[]))`,
  }
}
