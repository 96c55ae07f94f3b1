import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import type { Reader } from './core/store.ts'
import { ConfigError } from './lib/config-error.ts'
import { fileReader } from './stores/file/reader.ts'

/** For whoever looks for what is there: a directory that no server wrote is another than the one meant. */
export function refuseEmpty({ data, database }: Pick<Config, 'data' | 'database'>): void {
  if (!database && !existsSync(join(data, 'chats')))
    throw new ConfigError(`${data} has no chats: set HANDRAIL_DATA or DATABASE_URL.`)
}

/** The store that the environment names, to be looked at while servers go on. */
export async function openReader({
  data,
  database,
}: Pick<Config, 'data' | 'database'>): Promise<Reader> {
  if (!database) {
    refuseEmpty({ data, database })
    return await fileReader(data)
  }
  const { postgresReader } = await import('./stores/postgres/reader.ts')
  return await postgresReader(database.url, database.schema)
}
