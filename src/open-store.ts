import type { Config } from './config.ts'
import type { Archive, Store } from './core/store.ts'
import type { Log } from './core/worker.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { makeDirectory } from './lib/directory.ts'
import { type FileStoreExtras, type FileStoreOptions, fileStore } from './stores/file/store.ts'

interface Around extends Pick<FileStoreOptions, 'crash'> {
  clock: Clock
  log: Log
}

/** The store that the environment asks for: Postgres with `DATABASE_URL`, else files. */
export async function openStore(
  config: Config,
  { clock, log, crash }: Around,
): Promise<Store & Archive & Partial<FileStoreExtras>> {
  const { data: directory, segmentBytes, database } = config
  if (!database) {
    makeDirectory(directory, 'HANDRAIL_DATA')
    return await fileStore({ directory, clock, log, segmentBytes, ...(crash && { crash }) })
  }
  const { postgresStore } = await import('./stores/postgres/store.ts')
  // With many servers it is the database's clock that decides; only a test brings another.
  return await postgresStore({ ...database, log, ...(clock !== systemClock && { clock }) })
}
