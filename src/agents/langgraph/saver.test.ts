import { afterAll } from 'vitest'
import { saverContract } from '../../../test/contracts/saver.contract.ts'
import { startPostgres } from '../../../test/support/postgres.ts'
import { temporaryDirectory } from '../../../test/support/server.ts'
import { systemClock } from '../../lib/clock.ts'
import { fileStore } from '../../stores/file/store.ts'
import { memoryStore } from '../../stores/memory/store.ts'
import { postgresStore } from '../../stores/postgres/store.ts'

const ends: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

saverContract('memory', async () => memoryStore({ clock: systemClock }))

saverContract('file', async () => {
  const { path, remove } = await temporaryDirectory()
  const store = await fileStore({ directory: path, clock: systemClock })
  ends.push(remove, () => store.close())
  return store
})

saverContract('postgres', async () => {
  const server = await startPostgres()
  const store = await postgresStore({ url: server.url, schema: 'saver', connections: 4 })
  ends.push(
    () => server.stop(),
    () => store.close(),
  )
  return store
})
