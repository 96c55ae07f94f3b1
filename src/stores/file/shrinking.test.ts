import { expect, test } from 'vitest'
import { askOf, rowOf } from '../../../test/contracts/store.contract.ts'
import { fakeClock } from '../../../test/support/clock.ts'
import { workshop } from '../../../test/support/file-workshop.ts'
import { Chats, capacity } from './chats.ts'
import { nodeDisk } from './disk.ts'
import { Leases, mostFences } from './leases.ts'
import { compareKeys, SortedRows } from './sorted.ts'
import { Tables } from './tables.ts'

const { directory } = workshop()

test('the fences of threads without a lease are kept up to a number', async () => {
  const clock = fakeClock()
  const leases = new Leases(clock)
  leases.enter(1)
  const held = leases.claim('held', 'server', 1e9)!
  for (let n = 0; n < mostFences + 100; n++) {
    const { fence } = leases.claim(`t${n}`, 'server', 1_000)!
    if (n % 2 === 0) leases.release(`t${n}`, fence)
  }
  await clock.advance(2_000)
  for (let n = 0; n < 10; n++) leases.claim(`more${n}`, 'server', 1_000)
  expect(leases.size).toBeLessThanOrEqual(mostFences)
  expect(leases.newest('held')).toBe(held.fence)
  expect(leases.newest(`t${mostFences + 99}`)).toBeDefined()
  expect(leases.newest('t0')).toBeUndefined()
})

test('a list that is never read forgets the rows that are no longer in it', () => {
  const order = {
    name: 'x',
    key: ({ id }: { id: string }) => [id],
    compare: compareKeys,
    copy: (row: { id: string }) => row,
  }
  const list = new SortedRows<{ id: string }>(order)
  for (let n = 0; n < 1_000; n++) {
    list.set(`r${n}`, { id: `r${n}` })
    list.set(`r${n}`, undefined)
  }
  expect(list.size).toBe(0)
  list.set('a', { id: 'a' })
  expect(list.first(10, undefined, () => true)).toEqual([{ id: 'a' }])
  list.set('a', undefined)
  expect(list.first(10, undefined, () => true)).toEqual([])
  expect(list.size).toBe(0)
})

test('nothing is kept of tenants, owners and deciders whose threads were erased', () => {
  const tables = new Tables()
  const query = { tenant: 'acme', state: 'pending' as const, limit: 10 }
  for (let n = 0; n < 100; n++) {
    const names = { tenant: `t${n % 10}`, owner: `o${n}` }
    tables.apply(`c${n}`, { thread: rowOf(`c${n}`, names) })
    const ask = askOf(`a${n}`, `c${n}`, { ...names, audience: ['owner', `role${n}`] })
    tables.apply(`c${n}`, { ask })
    if (n % 3 === 0) tables.asks({ ...query, tenant: names.tenant })
    tables.apply(`c${n}`, { ask: { askId: `a${n}`, state: 'approved', settledAt: 5 } })
  }
  expect(tables.lists).toBeGreaterThan(100)
  for (let n = 0; n < 100; n++) tables.remove(`c${n}`)
  expect(tables.lists).toBe(0)
})

test('journals stay in memory up to a number of entries and facts', async () => {
  const log = { info() {}, warn() {}, error() {} }
  const chats = new Chats(await directory(), { log, crash() {}, disk: nodeDisk }, () => false)
  const facts = Object.fromEntries(Array.from({ length: 99_999 }, (_, n) => [`message:${n}`, 'r']))
  for (let n = 0; n < 15; n++) {
    const journal = chats.create(`c${n}`)
    journal.push(Buffer.from('{}'), { facts }, undefined)
    await journal.flush(() => {})
  }
  expect(chats.size).toBeLessThanOrEqual(capacity.items / 100_000 + 1)
  expect(chats.peek('c0')).toBeUndefined()
  expect(chats.peek('c14')).toBeDefined()
})
