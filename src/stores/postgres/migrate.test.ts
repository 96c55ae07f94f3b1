import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { create } from '../../../test/contracts/store.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import { migrate } from './migrate.ts'
import { postgresStore } from './store.ts'

const { server, open, judge } = postgresWorkshop()
const names = readdirSync(new URL('./', import.meta.url))
  .filter((name) => name.endsWith('.sql'))
  .map((name) => name.replace('.sql', ''))
  .sort()
const newest = Number.parseInt(names.at(-1)!, 10)
const child = fileURLToPath(new URL('./migrate.child.ts', import.meta.url))

test('four processes that start at once migrate once, and all of them can write', async () => {
  const run = promisify(execFile)
  const started = Array.from({ length: 4 }, (_, n) =>
    run(process.execPath, ['--import', 'tsx', child, server().url, `t${n}`]),
  )
  const said = (await Promise.all(started)).map(({ stdout }) => stdout.trim())
  expect(said.filter((line) => line === `applied ${names}`)).toHaveLength(1)
  expect(said.filter((line) => line === 'applied nothing')).toHaveLength(3)
  const store = await postgresStore({ url: server().url, schema: 'at_once' })
  const page = await store.threads({ tenant: 'acme', owner: 'ann', limit: 9 })
  expect(page.rows).toHaveLength(4)
  await store.close()
})

test('says what it did, and does nothing the second time', async () => {
  const first = await migrate(server().url, 'twice')
  expect(first).toEqual({ applied: names, version: newest })
  expect(await migrate(server().url, 'twice')).toEqual({ applied: [], version: newest })
})

test('a schema that is newer than the code is refused in one sentence', async () => {
  const store = await open()
  await create(store, 't')
  const client = await judge()
  await client.query("INSERT INTO migrations (version, name) VALUES (999, '999-later')")
  await expect(open()).rejects.toThrow(
    `has version 999 of the schema and this Handrail knows ${newest}: start a newer Handrail`,
  )
  // Whoever is at work already goes on.
  await create(store, 'u')
})

test('a migration that fails leaves nothing behind', async () => {
  const client = await judge()
  await client.query('CREATE SCHEMA broken; CREATE TABLE broken.facts ()')
  await expect(migrate(server().url, 'broken')).rejects.toThrow(/facts/)
  const tables = "SELECT FROM pg_tables WHERE schemaname = 'broken'"
  expect((await client.query(tables)).rowCount).toBe(1)
})

test('works for a role that may not create schemas, in one that was made for it', async () => {
  const client = await judge()
  await client.query(`CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC;
    CREATE SCHEMA lodging AUTHORIZATION guest`)
  const url = server().url.replace('app@', 'guest@')
  const store = await postgresStore({ url, schema: 'lodging' })
  await create(store, 't')
  await store.close()
  await expect(migrate(url, 'elsewhere')).rejects.toThrow(/permission denied/)
})

test('a database that will not do, or none at all, is refused in one sentence', async () => {
  const client = await judge()
  await client.query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
  await expect(migrate(server().url.replace('/postgres', '/latin'), 'x')).rejects.toThrow(
    /encoded in LATIN1: create one with ENCODING 'UTF8'/,
  )
  await expect(migrate('postgresql://app@127.0.0.1:1/x', 'x')).rejects.toThrow(
    /^Postgres cannot be reached: connect ECONNREFUSED/,
  )
  await client.query("ALTER ROLE app SET default_transaction_isolation = 'repeatable read'")
  await expect(migrate(server().url, 'x')).rejects.toThrow(/set default_transaction_isolation/)
  await client.query('ALTER ROLE app RESET default_transaction_isolation')
})

test('any name is a schema', async () => {
  const odd = await postgresStore({ url: server().url, schema: `o"d'd; DROP` })
  await create(odd, 't')
  await odd.close()
})
