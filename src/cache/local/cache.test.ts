import { expect, test } from 'vitest'
import { cacheContract } from '../../../test/contracts/cache.contract.ts'
import { fakeClock } from '../../../test/support/clock.ts'
import { localCache } from './cache.ts'

const silent = { info: () => {} }

cacheContract('the local', async () => localCache({ log: silent }))

test('says how many were evicted, and keeps no more than its limit', async () => {
  const clock = fakeClock()
  const said: object[] = []
  const cache = localCache({ clock, limit: 3, log: { info: (about) => said.push(about) } })
  for (const key of ['a', 'b', 'c', 'd']) await cache.set(key, key, key === 'b' ? 1_000 : 90_000)
  expect(await cache.get('a')).toBeUndefined()
  expect(await cache.get('d')).toBe('d')
  await clock.advance(60_000)
  expect(said).toEqual([{ evicted: 1, kept: 2 }])
  await clock.advance(60_000)
  expect(said).toEqual([
    { evicted: 1, kept: 2 },
    { evicted: 2, kept: 0 },
  ])
  await cache.close()
})

test('values are kept up to a number of characters, the one set longest ago goes first', async () => {
  const cache = localCache({ log: { info() {} }, size: 1_000 })
  for (let n = 0; n < 10; n++) await cache.set(`k${n}`, 'x'.repeat(298), 60_000)
  const found = await Promise.all(Array.from({ length: 10 }, (_, n) => cache.get(`k${n}`)))
  expect(found.map((value) => value !== undefined)).toEqual([
    ...Array(7).fill(false),
    ...Array(3).fill(true),
  ])
  await cache.set('k9', 'short', 60_000)
  await cache.set('more', 'x'.repeat(298), 60_000)
  expect(await cache.get('k7')).toBeDefined()
  await cache.close()
})
