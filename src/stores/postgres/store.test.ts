import { afterAll, beforeAll } from 'vitest'
import { findContract } from '../../../test/contracts/find.contract.ts'
import { storeContract } from '../../../test/contracts/store.contract.ts'
import { type Postgres, startPostgres } from '../../../test/support/postgres.ts'
import type { Clock } from '../../lib/clock.ts'
import { postgresStore } from './store.ts'

let server: Postgres
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

let schemas = 0

const open = async (clock?: Clock) => {
  const options = {
    url: server.url,
    schema: `s${++schemas}`,
    connections: 4,
    ...(clock && { clock }),
  }
  let store = await postgresStore(options)
  return {
    store,
    async reopen() {
      await store.close()
      store = await postgresStore(options)
      return store
    },
    dispose: () => store.close(),
  }
}

storeContract('postgres', open)
findContract('postgres', open)
