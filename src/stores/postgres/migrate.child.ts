import { create } from '../../../test/contracts/store.contract.ts'
import { migrate } from './migrate.ts'
import { postgresStore } from './store.ts'

/** One server that starts: migrates, says so, and writes. */
const [url = '', threadId = ''] = process.argv.slice(2)
const { applied } = await migrate(url, 'at_once')
process.stdout.write(`applied ${applied.join() || 'nothing'}\n`)
const store = await postgresStore({ url, schema: 'at_once' })
await create(store, threadId)
await store.close()
