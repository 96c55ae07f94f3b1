import pg from 'pg'
import { afterAll, afterEach, beforeAll, onTestFinished } from 'vitest'
import type { Archive, Store } from '../../src/core/store.ts'
import { type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres/store.ts'
import { type Postgres, startPostgres } from './postgres.ts'

/** A server for one test file, a schema for each test, and stores that are closed after it. */
export function postgresWorkshop(settings?: string) {
  const stores: Store[] = []
  let server: Postgres
  let schemas = 0
  beforeAll(async () => {
    server = await startPostgres(settings)
  })
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()))
    schemas++
  })
  afterAll(() => server?.stop())
  return {
    server: () => server,
    schema: () => `test_${schemas}`,
    /** Somebody else at the same database. */
    async judge(): Promise<pg.Client> {
      const client = new pg.Client(`${server.url}?options=-csearch_path%3Dtest_${schemas}`)
      await client.connect()
      client.on('error', () => {})
      onTestFinished(() => client.end())
      return client
    },
    async open(options: Partial<PostgresStoreOptions> = {}): Promise<Store & Archive> {
      const base = { url: server.url, schema: `test_${schemas}`, connections: 6 }
      const store = await postgresStore({ ...base, ...options })
      stores.push(store)
      return store
    },
  }
}
