import { expect, test } from 'vitest'
import { askOf, create, entry } from '../../../test/contracts/store.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'

const { open, judge, schema } = postgresWorkshop('fsync = off')
const decider = { user: 'carl', roles: ['approver'] }

test('a change that is committed after a later one is told all the same', async () => {
  const store = await open()
  await create(store, 't')
  await create(store, 'u')
  const { next: start } = await store.askChanges({ tenant: 'acme', decider, limit: 9 })
  const slow = await judge()
  const asks = `"${schema()}".asks`
  await slow.query('BEGIN')
  await slow.query(`INSERT INTO ${asks} (thread_id, ask_id, tenant, owner, run_id, kind, title, audience,
    state, raised_at, deadline) VALUES ('t', 'slow', 'acme', 'ann', 'r', 'approval', 'A title', '{approver}',
    'pending', 1, 1)`)
  await store.append('u', [entry('u', { marks: { ask: askOf('fast', 'u') } })], {})
  const look = async (after: string) => {
    const { rows, next } = await store.askChanges({ tenant: 'acme', decider, after, limit: 9 })
    return { asks: rows?.map(({ askId }) => askId), next }
  }
  const first = await look(start)
  expect(first.asks).toEqual(['fast']) // at once, although the other is under way
  await slow.query('COMMIT')
  const second = await look(first.next)
  expect(second.asks).toContain('slow')
  expect((await look(second.next)).asks).toEqual([])
  await store.close()
})
