import { isRuntimeError } from '../../core/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { paced } from '../../lib/paced.ts'
import type { Database, Log } from './database.ts'
import { isReadOnly, problemOf } from './problems.ts'
import type { Statements } from './statements.ts'

/** Milliseconds between two looks. */
const probeEvery = 1_000

/** Knows whether Postgres takes writes, from those that are made and from looks of its own. Says so when it changes. */
export function writable(database: Database, sql: Statements, log?: Log) {
  let refused = false

  function tell(error?: unknown): void {
    if (refused === (error !== undefined)) return
    refused = error !== undefined
    if (refused) log?.warn({ err: error }, 'writes are refused')
    else log?.info({}, 'writes are taken again')
  }

  const probe = paced(
    async () => {
      try {
        // After a refusal with something to write, for it may be room that there is none of.
        await database.query(refused ? sql.tryRoom : sql.tryWrite)
        tell()
      } catch (error) {
        tell(error)
        // To a primary that is no more, or was none when they were made: others may lead to the new one.
        if (isReadOnly(error)) database.startAfresh()
        throw problemOf(error)
      }
    },
    probeEvery,
    systemClock,
  )

  return {
    probe,
    /** What it came to is what is known from here on. */
    async watch<T>(write: Promise<T>): Promise<T> {
      try {
        const done = await write
        tell()
        return done
      } catch (error) {
        if (isRuntimeError(error, 'store_unavailable')) tell(error.cause ?? error)
        throw error
      }
    },
  }
}
