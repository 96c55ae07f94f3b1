import { expect, test } from 'vitest'
import { create, seat } from '../../test/support/chained.ts'
import { gate } from '../../test/support/gate.ts'
import { localCache } from '../cache/local/cache.ts'
import { systemClock } from '../lib/clock.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { view } from './view.ts'

test('a view of a thread that is erased while the view is made does not stay in the cache', async () => {
  const store = memoryStore({ clock: systemClock })
  const cache = localCache({ log: { info() {} } })
  const thread = seat(store, 't')
  await create(thread)
  const held = gate()
  const { set } = cache
  const slow = {
    ...cache,
    set: async (...all: Parameters<typeof set>) => {
      await held.pass()
      await set(...all)
    },
  }
  const made = view(
    { store, cache: slow, ttl: 60_000 },
    't',
    async () => thread,
    () => 'secret',
  )
  await held.reached
  await store.erase('t', {})
  await cache.delete('t')
  thread.close()
  held.open()
  await made
  expect(await cache.get('t')).toBeUndefined()
  await cache.close()
})
