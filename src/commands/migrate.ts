import { ConfigError } from '../config.ts'
import type { Command } from './command.ts'

/** `handrail migrate`: brings the schema up to date, as every server does when it starts. */
export async function migrateDatabase({ config, say }: Command): Promise<number> {
  if (!config.database)
    throw new ConfigError('DATABASE_URL is not set: there is nothing to migrate.')
  const { url, schema } = config.database
  const { migrate } = await import('../stores/postgres/migrate.ts')
  const { applied, version } = await migrate(url, schema)
  for (const name of applied) say(`applied ${name}`)
  // Servers would come to it too, little by little.
  const { sweepOnce } = await import('../stores/postgres/catch-up.ts')
  if ((await sweepOnce(url, schema)) > 0) say('What was said so far can be searched.')
  say(`The schema ${schema} is at version ${version}.`)
  return 0
}
