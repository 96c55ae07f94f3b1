import type { Entry } from '../../core/entries.ts'
import { saidIn } from '../../core/said.ts'
import { systemClock } from '../../lib/clock.ts'
import { keysOf } from '../../lib/words.ts'
import { Database } from './database.ts'
import { type Query, type Statements, statements } from './statements.ts'
import { unpack } from './text.ts'

/** A thread, by its key, and how far it has been looked at for words. */
export interface Behind extends Record<string, unknown> {
  thread_id: string
  after: number
}

/** Entries that are looked at in one step: few enough for a statement. */
const step = 500

/**
 * Puts what was said into the index, which appends leave alone: they would pay for searches that may never
 * come. Each step is whole, so it may be stopped at any time and be done by several at once.
 */
export async function catchUp(query: Query, sql: Statements, behind: Behind): Promise<void> {
  const { thread_id: thread, after } = behind
  const found = await query<Looked>(sql.unlooked, [thread, after, step])
  const last = found.at(-1)
  if (!last) return // erased since
  const noted = found.flatMap(({ seq, envelope, body }) => {
    const said = body === null ? undefined : saidIn({ ...envelope, body: unpack(body) })
    return said ? [{ seq, at: envelope.at, keys: [...keysOf(said.text)] }] : []
  })
  await query(sql.catchUp, [thread, after, last.seq, JSON.stringify(noted)])
}

interface Looked extends Record<string, unknown> {
  seq: number
  envelope: Omit<Entry, 'seq' | 'body'>
  /** Of messages alone. */
  body: string | null
}

/** Looks at all threads, in the order of their keys. How many steps it took. */
export async function sweep(
  query: Query,
  sql: Statements,
  rest = async (_took: number, _steps: number) => {},
): Promise<number> {
  let steps = 0
  for (let from: string | null = null; ; ) {
    const since = systemClock.monotonic()
    const page: Swept[] = await query<Swept>(sql.sweep, [from])
    const before = steps
    for (const { thread_id, last_seq, ...at } of page)
      for (let { after } = at; after < last_seq; after += step, steps++)
        await catchUp(query, sql, { thread_id, after })
    from = page.at(-1)?.thread_id ?? null
    if (from === null) return steps
    await rest(systemClock.monotonic() - since, steps - before)
  }
}

/** Once, with nobody else to do it: how many steps there were to do. */
export async function sweepOnce(url: string, schema: string): Promise<number> {
  const database = new Database({ url, connections: 1 })
  try {
    return await sweep((statement, values) => database.query(statement, values), statements(schema))
  } finally {
    await database.close()
  }
}

interface Swept extends Behind {
  last_seq: number
}

/** Milliseconds from one sweep to the next, and from one page to the next. */
const between = { sweeps: 60_000, pages: 1_000 }

/**
 * Again and again, at a quarter of its time: then whoever looks for something after a long time finds the
 * index nearly there. Nothing depends on it.
 */
export async function keepSweeping(query: Query, sql: Statements, signal: AbortSignal) {
  const sleep = (ms: number) => systemClock.sleep(ms, signal).catch(() => {})
  while (!signal.aborted) {
    await sleep(between.sweeps)
    if (signal.aborted) return
    await sweep(query, sql, (took, steps) => sleep(steps > 0 ? took * 3 : between.pages)).catch(
      () => {}, // Postgres is away, or the store is closing
    )
  }
}
