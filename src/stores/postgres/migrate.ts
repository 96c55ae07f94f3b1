import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'

interface Migration {
  version: number
  name: string
  file: URL
}

export interface Migrated {
  /** The names of those that were applied, in their order. */
  applied: string[]
  version: number
}

/** Any number of ours: whoever has this lock migrates. */
const lock = '5209717216021'
const here = new URL('./', import.meta.url)

/**
 * Brings the schema up to date, all of it or nothing. Servers that start at once wait for each other.
 * Rejects when the schema is newer than this code.
 */
export async function migrate(url: string, schema: string): Promise<Migrated> {
  const client = new pg.Client({
    ...{ connectionString: url, application_name: 'handrail migrate' },
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => {}) // the statement under way rejects
  await client.connect().catch((cause: unknown) => {
    throw unreachable(cause)
  })
  try {
    return await migrateOn(client, schema)
  } finally {
    await client.end()
  }
}

export async function migrateOn(client: pg.ClientBase, schema: string): Promise<Migrated> {
  await client.query('BEGIN')
  try {
    const migrated = await bringUp(client, schema)
    await client.query('COMMIT')
    return migrated
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function bringUp(client: pg.ClientBase, schema: string): Promise<Migrated> {
  await client.query('SET LOCAL statement_timeout = 0')
  await client.query('SELECT pg_advisory_xact_lock($1)', [lock])
  await checkServer(client)
  const s = pg.escapeIdentifier(schema)
  const existing = 'SELECT FROM pg_namespace WHERE nspname = $1'
  // Asked first: a role that may not create schemas can use one that was made for it.
  const { rowCount } = await client.query(existing, [schema])
  if (rowCount === 0) await client.query(`CREATE SCHEMA ${s}`)
  await client.query("SELECT set_config('search_path', $1, true)", [s])
  await client.query(
    'CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())',
  )
  const known = await migrations()
  const newest = known.at(-1)!.version
  const { rows } = await client.query('SELECT coalesce(max(version), 0) AS version FROM migrations')
  const { version } = rows[0] as { version: number }
  if (version > newest)
    throw new SchemaError(
      `The database has version ${version} of the schema and this Handrail knows ${newest}: start a newer Handrail.`,
    )
  const applied: string[] = []
  for (const each of known.filter((one) => one.version > version)) {
    await client.query(await readFile(each.file, 'utf8'))
    const insert = 'INSERT INTO migrations (version, name) VALUES ($1, $2)'
    await client.query(insert, [each.version, each.name])
    applied.push(each.name)
  }
  return { applied, version: newest }
}

async function checkServer(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query(
    `SELECT current_setting('server_version_num')::integer AS version,
      current_setting('server_encoding') AS encoding,
      current_setting('default_transaction_isolation') AS isolation`,
  )
  const { version, encoding, isolation } = rows[0] as Record<string, string | number>
  if (Number(version) < 140_000)
    throw new SchemaError('Handrail needs Postgres 14 or newer: upgrade the database server.')
  if (encoding !== 'UTF8')
    throw new SchemaError(
      `The database is encoded in ${encoding}: create one with ENCODING 'UTF8' and use that.`,
    )
  // A guard must see what was written while it waited for the thread.
  if (isolation !== 'read committed')
    throw new SchemaError(
      `Transactions begin as ${isolation}: set default_transaction_isolation to read committed for this role.`,
    )
}

/** The numbered files beside this one, the lowest first. */
async function migrations(): Promise<Migration[]> {
  const names = (await readdir(here)).filter((name) => /^\d+-.+\.sql$/.test(name)).sort()
  return names.map((name) => ({
    version: Number.parseInt(name, 10),
    name: name.slice(0, -'.sql'.length),
    file: new URL(name, here),
  }))
}

/** Said to whoever starts the server; there is no more to it than the sentence. */
export class SchemaError extends Error {
  readonly code = 'schema'
}

function unreachable(cause: unknown): Error {
  // Several addresses that all failed come as one error without words.
  const { errors = [cause] } = cause as { errors?: unknown[] }
  const why = errors.map((one) => (one as Error).message).join('; ')
  return Object.assign(new SchemaError(`Postgres cannot be reached: ${why}`), { cause })
}
