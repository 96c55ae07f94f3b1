import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { Person } from '../../src/core/audience.ts'
import type { Entry } from '../../src/core/entries.ts'
import type {
  AskRow,
  Marks,
  NewEntry,
  Residue,
  Residues,
  Store,
  ThreadRow,
} from '../../src/core/store.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { fakeClock } from '../support/clock.ts'

export interface OpenedStore {
  store: Store & Residues
  /** Closes the store and opens it again, for those that outlive their process. */
  reopen?: () => Promise<Store & Residues>
  dispose(): Promise<void>
}

let ids = 0

export function entry(threadId: string, more: Partial<NewEntry> = {}): NewEntry {
  return {
    v: 1,
    id: `e_${++ids}`,
    threadId,
    tx: 'tx_1',
    at: 1_700_000_000_000,
    fence: 0,
    kind: 'event',
    actor: { type: 'user', id: 'ann' },
    digest: 'd',
    body: '{"name":"x"}',
    ...more,
  }
}

export function rowOf(threadId: string, more: Partial<ThreadRow> = {}): ThreadRow {
  return {
    ...{ threadId, tenant: 'acme', owner: 'ann', clientId: threadId, agent: 'default' },
    ...{ title: null, createdAt: 1, updatedAt: 1, archived: false, status: 'idle', leg: null },
    ...more,
  }
}

export function askOf(askId: string, threadId: string, more: Partial<AskRow> = {}): AskRow {
  return {
    ...{ askId, threadId, tenant: 'acme', owner: 'ann', runId: 'r1', kind: 'approval' },
    ...{ clientId: threadId, agent: 'default', decidedBy: null },
    ...{ title: 'Run it?', tool: 'code', audience: ['approver'], state: 'pending' },
    ...{ raisedAt: 1, deadline: 100, settledAt: null },
    ...more,
  }
}

export const creation = (threadId: string, more: Partial<ThreadRow> = {}, marks: Marks = {}) =>
  entry(threadId, { kind: 'thread.created', marks: { ...marks, thread: rowOf(threadId, more) } })

export const create = (
  store: Store,
  threadId: string,
  more: Partial<ThreadRow> = {},
  marks?: Marks,
) => store.append(threadId, [creation(threadId, more, marks)], {})

async function residuesOf(store: Residues): Promise<Residue[]> {
  const found: Residue[] = []
  for await (const residue of store.residues()) found.push(residue)
  return found
}

const marking = (threadId: string, marks: Marks) => entry(threadId, { marks })
const hostile = ['../x', 'a\u0000b', '💥', 'x'.repeat(4096), '__proto__', 'CON', '%2e%2e', '.', '']

/** What every store promises. `open` gives an empty one; the clock, if given, is the store's. */
export function storeContract(name: string, open: (clock?: Clock) => Promise<OpenedStore>) {
  describe(`${name} store`, () => {
    const opened: OpenedStore[] = []
    afterEach(async () => {
      for (const each of opened.splice(0)) await each.dispose()
    })
    async function start(clock?: Clock) {
      const each = await open(clock)
      opened.push(each)
      return each
    }

    test('gives the entries of a thread seqs without gaps, from 1', async () => {
      const { store } = await start()
      const [first] = await create(store, 't')
      expect(first).toMatchObject({ seq: 1, kind: 'thread.created' })
      const placed = await Promise.all(
        Array.from({ length: 20 }, () => store.append('t', [entry('t'), entry('t')], {})),
      )
      expect(placed.flat().map(({ seq }) => seq)).toEqual(
        Array.from({ length: 40 }, (_, n) => n + 2),
      )
      expect((await store.read('t')).map(({ seq }) => seq)).toEqual(
        Array.from({ length: 41 }, (_, n) => n + 1),
      )
    })

    test('returns entries as they will be read, without their marks', async () => {
      const { store } = await start()
      const placed = await create(store, 't', {}, { facts: { a: '1' } })
      expect(placed[0]).not.toHaveProperty('marks')
      expect(await store.read('t')).toEqual(placed)
    })

    test('reads a range, and nothing of an unknown thread', async () => {
      const { store } = await start()
      await create(store, 't')
      await store.append('t', [entry('t'), entry('t'), entry('t')], {})
      const seqs = async (range: object) => (await store.read('t', range)).map(({ seq }) => seq)
      expect(await seqs({ after: 1, limit: 2 })).toEqual([2, 3])
      expect(await seqs({ after: 3 })).toEqual([4])
      expect(await seqs({ after: 4 })).toEqual([])
      expect(await seqs({ after: 99 })).toEqual([])
      expect(await store.read('nobody')).toEqual([])
      expect(await store.thread('nobody')).toBeUndefined()
    })

    test('ends a page once it has the given number of bytes, after at least one entry', async () => {
      const { store, reopen } = await start()
      await create(store, 't')
      const body = JSON.stringify({ name: 'x'.repeat(50_000) })
      for (let n = 0; n < 6; n++) await store.append('t', [entry('t', { body })], {})
      const check = async (place: Store) => {
        const pages: number[][] = []
        for (let after = 0; after < 7; after = pages.at(-1)!.at(-1)!) {
          const page = await place.read('t', { after, bytes: 120_000 })
          const kept = await place.kept('t', { after, bytes: 120_000 })
          expect(kept.map(({ entry: one }) => one)).toEqual(page)
          pages.push(page.map(({ seq }) => seq))
        }
        expect(pages.flat()).toEqual([1, 2, 3, 4, 5, 6, 7])
        expect(pages.length).toBeGreaterThan(1)
        expect(Math.max(...pages.map((page) => page.length))).toBeLessThan(7)
        const one = await place.read('t', { after: 1, bytes: 1 })
        expect(one.map(({ seq }) => seq)).toEqual([2])
        expect(await place.read('t', { after: 0, limit: 2, bytes: 1_000_000 })).toHaveLength(2)
      }
      await check(store)
      if (reopen) await check(await reopen())
    })

    test('refuses a thread that is not there and was not created', async () => {
      const { store } = await start()
      const code = (c: string) => expect.objectContaining({ code: c })
      await expect(store.append('t', [entry('t')], {})).rejects.toEqual(code('thread_not_found'))
      const half = entry('t', { kind: 'thread.created', marks: { thread: { tenant: 'acme' } } })
      await expect(store.append('t', [half], {})).rejects.toEqual(code('thread_not_found'))
      await expect(store.erase('t', {})).rejects.toEqual(code('thread_not_found'))
      expect(await store.read('t')).toEqual([])
    })

    test('writes all entries of a transition and their marks, or nothing at all', async () => {
      const { store } = await start()
      await create(store, 't', {}, { facts: { a: '1' } })
      const marks = { facts: { b: '2' }, thread: { title: 'new' }, timers: { k: 5 } }
      const refused = store.append('t', [marking('t', marks), entry('t')], {
        expect: [{ fact: 'a', is: 'other' }],
      })
      await expect(refused).rejects.toMatchObject({ code: 'journal_conflict' })
      expect(await store.read('t')).toHaveLength(1)
      expect(await store.thread('t')).toMatchObject({ title: null })
      expect(await store.work(10)).toEqual({ threadIds: [] })
      await store.append('t', [entry('t')], { expect: [{ fact: 'b', is: null }] })
    })

    test('lets one of two racing appends win, and tells the other which fact', async () => {
      const { store } = await start()
      await create(store, 't', {}, { facts: { 'ask:1': 'pending' } })
      const answer = (state: string) =>
        store.append('t', [marking('t', { facts: { 'ask:1': state } })], {
          expect: [{ fact: 'ask:1', is: 'pending' }],
        })
      const [won, lost] = await Promise.allSettled([answer('approved'), answer('rejected')])
      expect(won.status).toBe('fulfilled')
      expect(lost).toMatchObject({
        reason: { code: 'journal_conflict', data: { fact: 'ask:1', actual: 'approved' } },
      })
      expect(await store.read('t')).toHaveLength(2)
    })

    test('checks expectations of being, of being absent and of not being', async () => {
      const { store } = await start()
      await create(store, 't', {}, { facts: { a: '1', gone: 'x' } })
      await store.append('t', [marking('t', { facts: { gone: null } })], {})
      const holds = (
        expectation: { fact: string; is: string | null } | { fact: string; not: string },
      ) =>
        store.append('t', [entry('t')], { expect: [expectation] }).then(
          () => true,
          () => false,
        )
      expect(await holds({ fact: 'a', is: '1' })).toBe(true)
      expect(await holds({ fact: 'a', is: null })).toBe(false)
      expect(await holds({ fact: 'a', not: '1' })).toBe(false)
      expect(await holds({ fact: 'a', not: '2' })).toBe(true)
      expect(await holds({ fact: 'gone', is: null })).toBe(true)
      expect(await holds({ fact: 'never', not: '1' })).toBe(true)
      expect(await holds({ fact: '__proto__', is: null })).toBe(true)
      expect(await holds({ fact: 'constructor', is: null })).toBe(true)
    })

    test('refuses a stale fence, also of a driver that only slept', async () => {
      const clock = fakeClock()
      const { store } = await start(clock)
      await create(store, 't')
      const one = await store.claim('t', 'one', 1000)
      await store.append('t', [entry('t')], { fence: one!.fence })
      await clock.advance(5000)
      // Nobody took it: it may finish what it was doing.
      await store.append('t', [entry('t')], { fence: one!.fence })
      const two = await store.claim('t', 'two', 1000)
      await expect(store.append('t', [entry('t')], { fence: one!.fence })).rejects.toMatchObject({
        code: 'journal_conflict',
        data: { fence: two!.fence },
      })
      await store.release('t', one!.fence)
      expect(await store.claim('t', 'three', 1000)).toBeUndefined()
      await expect(store.append('t', [entry('t')], { fence: 0 })).rejects.toMatchObject({
        code: 'journal_conflict',
      })
    })

    test('leases by its own clock, and renews only what is the holder’s', async () => {
      const clock = fakeClock()
      const { store } = await start(clock)
      await create(store, 't')
      await create(store, 'u')
      const t = await store.claim('t', 'one', 1000)
      const u = await store.claim('u', 'one', 1000)
      await clock.advance(900)
      expect(await store.renew('one', 1000)).toEqual(new Set([t!.fence, u!.fence]))
      await clock.advance(900)
      expect(await store.claim('t', 'two', 1000)).toBeUndefined()
      await clock.advance(200)
      const taken = await store.claim('t', 'two', 1000)
      expect(taken!.fence).toBeGreaterThan(t!.fence)
      expect(await store.renew('one', 1000)).toEqual(new Set([u!.fence]))
      expect(await store.renew('nobody', 1000)).toEqual(new Set())
      await store.release('t', taken!.fence)
      expect(await store.claim('t', 'one', 1000)).toBeDefined()
    })

    test('gives a lease by force to whoever must end what its holder does not', async () => {
      const { store } = await start()
      await create(store, 't')
      const stuck = await store.claim('t', 'a', 10_000)
      expect(await store.claim('t', 'b', 10_000)).toBeUndefined()
      const taken = await store.claim('t', 'b', 10_000, true)
      expect(taken!.fence).toBeGreaterThan(stuck!.fence)
      await expect(store.append('t', [entry('t')], stuck!)).rejects.toMatchObject({
        code: 'journal_conflict',
      })
      await store.append('t', [entry('t')], taken!)
    })

    test('gives every claim a greater fence, also to the same holder and after an erasure', async () => {
      const { store } = await start()
      await create(store, 't')
      const fences: number[] = []
      for (let n = 0; n < 3; n++) fences.push((await store.claim('t', 'one', 1000))!.fence)
      await store.erase('t', { fence: fences.at(-1)! })
      await create(store, 't')
      fences.push((await store.claim('t', 'two', 1000))!.fence)
      expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
    })

    test('shows a new driver all that an earlier one was allowed to write', async () => {
      const clock = fakeClock()
      const { store } = await start(clock)
      await create(store, 't')
      const one = await store.claim('t', 'one', 1000)
      await clock.advance(2000)
      const late = store.append('t', [entry('t')], { fence: one!.fence })
      await store.claim('t', 'two', 1000)
      const seen = await store.read('t')
      const written = await late.catch(() => [])
      expect(seen).toHaveLength(1 + written.length)
    })

    test.each([
      '{"b":1,"a":2,"b":3}',
      '{"n":1e3,"m":-0.0,"x":1E+2}',
      '"\\u00e9é\\ud83d\\udca5💥"',
      '{ "spaced" :\t[1 , 2] }',
      '{\n  "pretty": true\r\n}',
      '{"marks":{},"body":{"body":1},"seq":9}',
      '""',
      'null',
      `"${'long '.repeat(100_000)}"`,
      '"\u2028\u0000"',
      '"\ud800"',
    ])('keeps the bytes of a body as they are: %.30j', async (body) => {
      const { store, reopen } = await start()
      await create(store, 't')
      const marks = { facts: { z: '1', body: '"body":' } }
      const [placed] = await store.append('t', [entry('t', { body, marks })], {})
      expect(placed!.body).toBe(body)
      expect((await store.read('t'))[1]!.body).toBe(body)
      if (reopen) expect((await (await reopen()).read('t'))[1]!.body).toBe(body)
    })

    test('lists threads, the newest first, in pages that new rows do not shift', async () => {
      const { store } = await start()
      const at = [5, 3, 9, 3, 7, 1]
      for (const [n, updatedAt] of at.entries()) await create(store, `t${n}`, { updatedAt })
      const query = { tenant: 'acme', owner: 'ann', limit: 2 }
      const first = await store.threads(query)
      expect(first.rows.map((row) => row.threadId)).toEqual(['t2', 't4'])
      await create(store, 't9', { updatedAt: 99 })
      const second = await store.threads({ ...query, cursor: first.next! })
      expect(second.rows.map((row) => row.threadId)).toEqual(['t0', 't3'])
      await store.append('t0', [marking('t0', { thread: { updatedAt: 100 } })], {})
      const third = await store.threads({ ...query, cursor: second.next! })
      expect(third.rows.map((row) => row.threadId)).toEqual(['t1', 't5'])
      expect(third.next).toBeUndefined()
      const all = await store.threads({ ...query, limit: 100 })
      expect(all.rows.map((row) => row.threadId)).toEqual([
        't0',
        't9',
        't2',
        't4',
        't3',
        't1',
        't5',
      ])
      expect(all.next).toBeUndefined()
    })

    test('filters threads by agent, by being archived and by being busy', async () => {
      const { store } = await start()
      await create(store, 'a', { agent: 'x', archived: true })
      await create(store, 'b', { agent: 'y' })
      const listed = async (filter: object) => {
        const page = await store.threads({ tenant: 'acme', owner: 'ann', limit: 1, ...filter })
        expect(page.next).toBeUndefined()
        return page.rows.map((row) => row.threadId)
      }
      expect(await listed({ archived: true })).toEqual(['a'])
      expect(await listed({ archived: false })).toEqual(['b'])
      expect(await listed({ agent: 'y' })).toEqual(['b'])
      expect(await listed({ agent: 'y', archived: true })).toEqual([])
      expect(await listed({ active: true })).toEqual([])
      await create(store, 'c', { agent: 'y', status: 'waiting' })
      expect(await listed({ active: true })).toEqual(['c'])
      expect(await listed({ active: true, agent: 'x' })).toEqual([])
    })

    test('lists asks by deadline, and settled ones by their state', async () => {
      const { store } = await start()
      await create(store, 't')
      for (const [n, deadline] of [30, 10, 20].entries())
        await store.append('t', [marking('t', { ask: askOf(`a${n}`, 't', { deadline }) })], {})
      await create(store, 'u', { owner: 'bob' })
      await store.append(
        'u',
        [marking('u', { ask: askOf('a0', 'u', { owner: 'bob', deadline: 5 }) })],
        {},
      )
      const settled = { askId: 'a2', state: 'approved', settledAt: 7 } as const
      await store.append('t', [marking('t', { ask: settled })], {})
      const listed = async (query: object) =>
        (await store.asks({ tenant: 'acme', limit: 10, ...query })).rows.map(
          (ask) => `${ask.threadId}.${ask.askId}`,
        )
      expect(await listed({ state: 'pending' })).toEqual(['u.a0', 't.a1', 't.a0'])
      expect(await listed({ state: 'approved' })).toEqual(['t.a2'])
      expect(await listed({ owner: 'ann' })).toEqual(['t.a1', 't.a2', 't.a0'])
      expect(await listed({ tenant: 'other' })).toEqual([])
      const page = await store.asks({ tenant: 'acme', limit: 3 })
      expect(page.rows).toHaveLength(3)
      const rest = await store.asks({ tenant: 'acme', limit: 3, cursor: page.next! })
      expect(rest.rows).toEqual([askOf('a0', 't', { deadline: 30 })])
    })

    describe('the inbox of a person', () => {
      const carl = { user: 'carl', roles: ['user', 'approver'] }
      const ann = { user: 'ann', roles: ['user'] }
      const raise = (store: Store, threadId: string, askId: string, more: Partial<AskRow>) =>
        store.append(threadId, [marking(threadId, { ask: askOf(askId, threadId, more) })], {})

      /** Of ann: one for both, one for ann alone, one for approvers, one of her page. Of bob: his alone. */
      async function filled() {
        const { store } = await start()
        await create(store, 't', { clientId: 'mine', agent: 'clerk' })
        await create(store, 'u', { owner: 'bob' })
        const mine = { clientId: 'mine', agent: 'clerk' }
        await raise(store, 't', 'both', { ...mine, audience: ['owner', 'approver'], deadline: 40 })
        await raise(store, 't', 'own', { ...mine, audience: ['owner'], deadline: 30, tool: null })
        await raise(store, 't', 'role', { ...mine, audience: ['approver'], deadline: 20 })
        const page = { audience: ['owner'], deadline: 10 }
        await raise(store, 't', 'page', { ...mine, ...page, kind: 'client_tool' })
        await raise(store, 'u', 'bobs', { owner: 'bob', audience: ['owner'], deadline: 5 })
        const listed = async (decider: Person, query: object = {}) => {
          const { rows } = await store.asks({ tenant: 'acme', decider, limit: 10, ...query })
          return rows.map(({ askId }) => askId)
        }
        return { store, listed }
      }

      test('has what they may decide, the most urgent first', async () => {
        const { listed } = await filled()
        expect(await listed(ann, { state: 'pending' })).toEqual(['own', 'both'])
        expect(await listed(carl, { state: 'pending' })).toEqual(['role', 'both'])
        expect(await listed({ user: 'bob', roles: [] }, {})).toEqual(['bobs'])
        expect(await listed({ ...carl, user: 'ann' })).toEqual(['role', 'own', 'both'])
      })

      test('has nothing of other tenants, and nobody is an owner by role', async () => {
        const { listed } = await filled()
        expect(await listed(carl, { tenant: 'other' })).toEqual([])
        expect(await listed({ user: 'eve', roles: ['owner', 'owner:ann', 'ann'] })).toEqual([])
        expect(await listed({ user: 'approver', roles: [] })).toEqual([])
      })

      test('can be narrowed down, and one looked up', async () => {
        const { listed } = await filled()
        expect(await listed(ann, { tool: 'code' })).toEqual(['both'])
        expect(await listed(ann, { kind: 'budget' })).toEqual([])
        expect(await listed(ann, { clientId: 'mine', owner: 'ann' })).toEqual(['own', 'both'])
        expect(await listed(carl, { agent: 'clerk' })).toEqual(['role', 'both'])
        expect(await listed(carl, { agent: 'default' })).toEqual([])
        expect(await listed(carl, { askId: 'role' })).toEqual(['role'])
        for (const askId of ['own', 'page', 'bobs', 'none'])
          expect(await listed(carl, { askId })).toEqual([])
        expect(await listed(carl, { askId: 'role', tenant: 'other' })).toEqual([])
      })

      test('keeps what was settled for whoever might have, and whoever did', async () => {
        const { store, listed } = await filled()
        const settled = { state: 'approved', settledAt: 7, decidedBy: 'dora' } as const
        await store.append('t', [marking('t', { ask: { askId: 'both', ...settled } })], {})
        expect(await listed(carl, { state: 'pending' })).toEqual(['role'])
        expect(await listed(carl, { state: 'settled' })).toEqual(['both'])
        expect(await listed(carl, { state: 'approved' })).toEqual(['both'])
        expect(await listed(carl)).toEqual(['role', 'both'])
        const dora = { user: 'dora', roles: [] }
        expect(await listed(dora)).toEqual(['both'])
        expect(await listed(dora, { state: 'pending' })).toEqual([])
        const rows = await store.asks({ tenant: 'acme', decider: dora, limit: 1 })
        expect(rows.rows[0]).toMatchObject({ ...settled, clientId: 'mine', agent: 'clerk' })
        await store.erase('t', {})
        expect(await listed(dora)).toEqual([])
        expect(await listed(carl, { askId: 'role' })).toEqual([])
      })

      test('has what was settled in pages, the latest first, whatever its deadline was', async () => {
        const { store } = await filled()
        const settle = async (askId: string, settledAt: number, deadline: number) => {
          await raise(store, 't', askId, { audience: ['owner', 'approver'], deadline })
          const ask = { askId, state: 'rejected', settledAt, decidedBy: 'ann' } as const
          await store.append('t', [marking('t', { ask })], {})
        }
        await settle('second', 20, 900)
        await settle('last', 30, 100)
        await settle('first', 10, 500)
        const query = { tenant: 'acme', decider: { ...carl, user: 'ann' }, limit: 1 }
        const seen: string[] = []
        let cursor: string | undefined
        do {
          const page = await store.asks({ ...query, state: 'settled', ...(cursor && { cursor }) })
          seen.push(...page.rows.map(({ askId }) => askId))
          cursor = page.next
        } while (cursor !== undefined)
        expect(seen).toEqual(['last', 'second', 'first'])
        const soonest = await store.asks({ ...query, state: 'pending' })
        const mixed = store.asks({ ...query, state: 'settled', cursor: soonest.next! })
        await expect(mixed).rejects.toMatchObject({ code: 'invalid_cursor' })
      })

      test('comes in pages, each ask once, however many of their roles it is for', async () => {
        const { store } = await filled()
        for (let n = 0; n < 25; n++)
          await raise(store, 't', `n${String(n).padStart(2, '0')}`, {
            audience: ['owner', 'approver', 'chief'].slice(n % 3),
            deadline: 100 + Math.floor(n / 4),
          })
        const decider = { user: 'ann', roles: ['approver', 'chief'] }
        const query = { tenant: 'acme', decider, state: 'pending', limit: 4 } as const
        const seen: string[] = []
        let cursor: string | undefined
        do {
          const page = await store.asks({ ...query, ...(cursor && { cursor }) })
          expect(page.rows.length).toBeLessThanOrEqual(4)
          seen.push(...page.rows.map(({ askId }) => askId))
          cursor = page.next
        } while (cursor !== undefined)
        const more = Array.from({ length: 25 }, (_, n) => `n${String(n).padStart(2, '0')}`)
        expect(seen).toEqual(['role', 'own', 'both', ...more])
      })

      test('tells what was raised and settled since, and nothing of others', async () => {
        const { store } = await filled()
        const look = (after?: string, decider: Person = carl, limit = 10) =>
          store.askChanges({ tenant: 'acme', decider, limit, ...(after && { after }) })
        const { rows: none, next: start } = await look()
        expect(none).toEqual([])
        expect((await look(start)).rows).toEqual([])
        await raise(store, 't', 'new', { audience: ['approver'] })
        await raise(store, 'u', 'his', { owner: 'bob', audience: ['owner'] })
        await raise(store, 't', 'page2', { kind: 'client_tool' })
        const settled = { state: 'approved', settledAt: 7, decidedBy: 'dora' } as const
        await store.append('t', [marking('t', { ask: { askId: 'both', ...settled } })], {})
        const told = async (after: string, decider?: Person) =>
          (await look(after, decider)).rows?.map(({ askId, state }) => `${askId} ${state}`).sort()
        expect(await told(start)).toEqual(['both approved', 'new pending'])
        expect(await told(start, ann)).toEqual(['both approved'])
        expect(await told(start, { user: 'eve', roles: [] })).toEqual([])
        const later = (await look(start)).next
        expect(await told(later)).toEqual([])
        await raise(store, 't', 'last', { audience: ['approver'] })
        expect(await told(later)).toEqual(['last pending'])
        expect((await look(start, carl, 1)).rows).toBeUndefined() // more than that
        for (const place of ['', 'odd', 'life.1', '99999999999999999999', '9999999999999999999'])
          expect((await look(place || 'x')).rows).toBeUndefined()
      })

      test('knows an ask whose marks are of an earlier version', async () => {
        const { store, listed } = await filled()
        const { agent, clientId, decidedBy, ...older } = askOf('old', 't', { audience: [] })
        await store.append('t', [marking('t', { ask: older })], {})
        expect(await listed(ann, { askId: 'old' })).toEqual(['old'])
        expect(await listed(carl, { askId: 'old', agent: 'clerk', clientId: 'mine' })).toEqual([
          'old',
        ])
      })
    })

    test.each(['', 'x', 'bm9wZQ', Buffer.from('["newest"]').toString('base64url'), '💥'])(
      'refuses a cursor that is not its own: %j',
      async (cursor) => {
        const { store } = await start()
        await create(store, 't')
        const refused = { code: 'invalid_cursor' }
        const who = { tenant: 'acme', owner: 'ann', limit: 1, cursor }
        await expect(store.threads(who)).rejects.toMatchObject(refused)
        await expect(store.asks(who)).rejects.toMatchObject(refused)
      },
    )

    test('keeps the names of tenants and owners apart', async () => {
      const { store } = await start()
      await create(store, 't1', { clientId: 'mine' })
      await create(store, 't2', { clientId: 'mine', owner: 'bob' })
      await create(store, 't3', { clientId: 'mine', tenant: 'other' })
      const locate = (tenant: string, owner: string) =>
        store.locate({ tenant, owner, clientId: 'mine' })
      expect(await locate('acme', 'ann')).toBe('t1')
      expect(await locate('acme', 'bob')).toBe('t2')
      expect(await locate('other', 'ann')).toBe('t3')
      expect(await locate('other', 'bob')).toBeUndefined()
      const exists = { code: 'thread_exists' }
      await expect(create(store, 't4', { clientId: 'mine' })).rejects.toMatchObject(exists)
      await expect(create(store, 't1', { clientId: 'mine' })).rejects.toMatchObject(exists)
      expect(await store.read('t4')).toEqual([])
    })

    test('lets one of two who create under the same name win', async () => {
      const { store } = await start()
      const results = await Promise.allSettled([
        create(store, 't1', { clientId: 'same' }),
        create(store, 't2', { clientId: 'same' }),
      ])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
      expect(results[1]).toMatchObject({ reason: { code: 'thread_exists' } })
    })

    test('finds legs without a lease and timers that are due, and says when to look again', async () => {
      const clock = fakeClock()
      const now = clock.now()
      const { store } = await start(clock)
      await create(store, 'leg', { leg: 'l1' })
      await create(store, 'idle')
      await create(store, 'timer', {}, { timers: { late: now - 1, soon: now + 500 } })
      expect(new Set((await store.work(10)).threadIds)).toEqual(new Set(['leg', 'timer']))
      expect((await store.work(10)).nextAt).toBe(now + 500)
      expect((await store.work(1)).threadIds).toHaveLength(1)
      await store.claim('leg', 'one', 300)
      await store.append('timer', [marking('timer', { timers: { late: null } })], {})
      expect(await store.work(10)).toEqual({ threadIds: [], nextAt: now + 300 })
      await clock.advance(300)
      expect(await store.work(10)).toEqual({ threadIds: ['leg'], nextAt: now + 500 })
      await clock.advance(200)
      expect(new Set((await store.work(10)).threadIds)).toEqual(new Set(['leg', 'timer']))
      await store.append('leg', [marking('leg', { thread: { leg: null } })], {})
      expect((await store.work(10)).threadIds).toEqual(['timer'])
    })

    test('gives timers that are due and queued legs a fair share of the limit', async () => {
      const clock = fakeClock()
      const { store } = await start(clock)
      for (let n = 0; n < 8; n++) await create(store, `leg${n}`, { leg: `l${n}` })
      const due = { timers: { late: clock.now() - 1 } }
      for (let n = 0; n < 2; n++) await create(store, `timer${n}`, {}, due)
      const kinds = async (limit: number) =>
        (await store.work(limit)).threadIds.map((id) => id.replace(/\d/, '')).sort()
      expect(await kinds(4)).toEqual(['leg', 'leg', 'timer', 'timer'])
      expect(await kinds(6)).toEqual(['leg', 'leg', 'leg', 'leg', 'timer', 'timer'])
      for (let n = 2; n < 8; n++) await create(store, `timer${n}`, {}, due)
      expect(await kinds(4)).toEqual(['leg', 'leg', 'timer', 'timer'])
      expect(await kinds(100)).toHaveLength(16)
    })

    test('says that it takes writes, and writes nothing to find out', async () => {
      const { store } = await start()
      await create(store, 't')
      for (let n = 0; n < 3; n++) await store.probe()
      expect(await store.read('t')).toHaveLength(1)
    })

    test('erases a thread with all that came of it, and frees its name', async () => {
      const { store } = await start()
      const marks = { facts: { a: '1' }, timers: { k: 1 }, ask: askOf('a1', 't') }
      await create(store, 't', { clientId: 'mine', leg: 'l' }, marks)
      const refused = store.erase('t', { expect: [{ fact: 'a', is: null }] })
      await expect(refused).rejects.toMatchObject({ code: 'journal_conflict' })
      await store.erase('t', { expect: [{ fact: 'a', is: '1' }] })
      expect(await store.read('t')).toEqual([])
      expect(await store.thread('t')).toBeUndefined()
      expect(await store.locate({ tenant: 'acme', owner: 'ann', clientId: 'mine' })).toBeUndefined()
      expect(await store.threads({ tenant: 'acme', owner: 'ann', limit: 9 })).toEqual({ rows: [] })
      expect(await store.asks({ tenant: 'acme', limit: 9 })).toEqual({ rows: [] })
      expect(await store.work(9)).toEqual({ threadIds: [] })
      const gone = { code: 'thread_not_found' }
      await expect(store.append('t', [entry('t')], {})).rejects.toMatchObject(gone)
      await create(store, 't2', { clientId: 'mine' })
      const [again] = await create(store, 't')
      expect(again!.seq).toBe(1)
      await store.append('t', [entry('t')], { expect: [{ fact: 'a', is: null }] })
    })

    test('a title that was changed or erased is in no list of threads and asks', async () => {
      const { store, reopen } = await start()
      const marks = { ask: askOf('a1', 't', { title: 'secret ask' }) }
      await create(store, 't', { title: 'secret title' }, marks)
      await create(store, 'u', { title: 'secret before' })
      await store.append('u', [marking('u', { thread: { title: 'after' } })], {})
      await store.erase('t', {})
      const check = async (one: Store) => {
        const threads = await one.threads({ tenant: 'acme', owner: 'ann', limit: 9 })
        const asks = await one.asks({ tenant: 'acme', limit: 9 })
        expect(threads.rows.map(({ title }) => title)).toEqual(['after'])
        expect(JSON.stringify([threads, asks, await one.thread('u')])).not.toContain('secret')
      }
      await check(store)
      if (reopen) await check(await reopen())
    })

    test('keeps what is left of an erased thread, and nothing of one that was not', async () => {
      const { store, reopen } = await start()
      const [one, two] = [
        { id: 'b.1', text: '{"rows":["é\n\u0000"],"entries":[]}' },
        { id: 'a.2', text: 'x' },
      ]
      await create(store, 't')
      const refused = store.erase('t', { expect: [{ fact: 'a', is: '1' }] }, one)
      await expect(refused).rejects.toMatchObject({ code: 'journal_conflict' })
      expect(await residuesOf(store)).toEqual([])
      await store.erase('t', {}, one)
      await store.keepResidue(two)
      await store.keepResidue(two)
      await create(store, 't')
      await store.erase('t', {})
      expect(await residuesOf(store)).toEqual([two, one])
      if (reopen) expect(await residuesOf(await reopen())).toEqual([two, one])
    })

    test('shows entries with their marks, as they were given', async () => {
      const { store } = await start()
      const marks = { facts: { z: '1', a: 'é' }, timers: { k: 1 } }
      const given = [creation('t'), entry('t', { marks, link: 'l' }), entry('t')]
      const placed = await store.append('t', given, {})
      const kept = placed.map((entry, n) => {
        const { marks } = given[n]!
        return { entry, ...(marks && { marks }) }
      })
      const found = await store.kept('t')
      expect(found).toEqual(kept)
      expect(JSON.stringify(found[1]!.marks)).toBe(JSON.stringify(marks))
      expect(await store.kept('t', { after: 1, limit: 1 })).toEqual([kept[1]])
      expect(await store.kept('nobody')).toEqual([])
    })

    test('takes any string as an id, and mixes none of them up', async () => {
      const { store, reopen } = await start()
      for (const id of hostile) {
        await create(store, id, { tenant: id, owner: id, agent: id }, { facts: { [id]: id } })
        await store.append(id, [entry(id)], { expect: [{ fact: id, is: id }] })
      }
      const check = async (opened: Store) => {
        for (const id of hostile) {
          expect((await opened.read(id)).map(({ threadId }) => threadId)).toEqual([id, id])
          expect(await opened.locate({ tenant: id, owner: id, clientId: id })).toBe(id)
          const page = await opened.threads({ tenant: id, owner: id, limit: 9 })
          expect(page.rows.map((row) => row.threadId)).toEqual([id])
        }
      }
      await check(store)
      if (reopen) await check(await reopen())
    })

    test('cannot be changed through what it was given or what it gave', async () => {
      const { store } = await start()
      const given = creation('t', {}, { facts: { a: '1' }, ask: askOf('a1', 't') })
      const entries = [given]
      const guard = { expect: [{ fact: 'a', is: null as string | null }] }
      const appended = store.append('t', entries, guard)
      given.body = '"changed"'
      given.marks!.facts!.a = 'changed'
      given.marks!.thread!.title = 'changed'
      given.marks!.ask!.audience!.push('changed')
      given.actor.id = 'changed'
      guard.expect[0]!.is = 'changed'
      entries.length = 0
      const spoil = (value: Entry | ThreadRow | AskRow | undefined) => {
        const inner = value as { actor?: { id: string }; audience?: string[]; title?: string }
        if (inner.actor) inner.actor.id = 'changed'
        inner.audience?.push('changed')
        inner.title = 'changed'
      }
      spoil((await appended)[0])
      spoil((await store.read('t'))[0])
      spoil(await store.thread('t'))
      spoil((await store.threads({ tenant: 'acme', owner: 'ann', limit: 1 })).rows[0])
      spoil((await store.asks({ tenant: 'acme', limit: 1 })).rows[0])
      expect(await store.read('t')).toMatchObject([{ actor: { id: 'ann' }, body: '{"name":"x"}' }])
      expect(await store.thread('t')).toEqual(rowOf('t'))
      expect((await store.asks({ tenant: 'acme', limit: 1 })).rows).toEqual([askOf('a1', 't')])
      await store.append('t', [entry('t')], { expect: [{ fact: 'a', is: '1' }] })
    })

    test('behaves like a list and a map, whatever is done in whatever order', async () => {
      const thread = fc.constantFrom('p', 'q', 'r')
      const fact = fc.constantFrom('x', 'y')
      const value = fc.constantFrom('1', '2')
      const operation = fc.oneof(
        fc.record({ do: fc.constant('create' as const), thread }),
        fc.record({ do: fc.constant('set' as const), thread, fact, value, was: fc.option(value) }),
        fc.record({ do: fc.constant('erase' as const), thread }),
        fc.record({ do: fc.constant('reopen' as const) }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { maxLength: 25 }), async (operations) => {
          const each = await open()
          let { store } = each
          const model = new Map<string, { seqs: number; facts: Map<string, string> }>()
          try {
            for (const step of operations) {
              if (step.do === 'reopen') {
                if (each.reopen) store = await each.reopen()
                continue
              }
              const known = model.get(step.thread)
              if (step.do === 'create') {
                const done = await create(store, step.thread).then(
                  () => true,
                  () => false,
                )
                expect(done).toBe(!known)
                if (!known) model.set(step.thread, { seqs: 1, facts: new Map() })
              } else if (step.do === 'erase') {
                const done = await store.erase(step.thread, {}).then(
                  () => true,
                  () => false,
                )
                expect(done).toBe(known !== undefined)
                model.delete(step.thread)
              } else {
                const marks = { facts: { [step.fact]: step.value } }
                const guard = { expect: [{ fact: step.fact, is: step.was }] }
                const added = store.append(step.thread, [marking(step.thread, marks)], guard)
                const done = await added.then(
                  () => true,
                  () => false,
                )
                const met = known && (known.facts.get(step.fact) ?? null) === step.was
                expect(done).toBe(met === true)
                if (!met) continue
                known.seqs++
                known.facts.set(step.fact, step.value)
              }
            }
            for (const id of ['p', 'q', 'r'])
              expect(await store.read(id)).toHaveLength(model.get(id)?.seqs ?? 0)
            const page = await store.threads({ tenant: 'acme', owner: 'ann', limit: 9 })
            expect(page.rows.map((row) => row.threadId).sort()).toEqual([...model.keys()].sort())
          } finally {
            await each.dispose()
          }
        }),
        { numRuns: 20 },
      )
    }, 120_000)

    test('has everything after it was closed and opened again', async ({ skip }) => {
      const clock = fakeClock()
      const { store, reopen } = await start(clock)
      if (!reopen) return skip('this store does not outlive its process')
      const marks = { facts: { a: '1' }, timers: { k: 1 }, ask: askOf('a1', 't') }
      await create(store, 't', { leg: 'l1' }, marks)
      await store.append('t', [entry('t', { runId: 'r' })], {})
      await create(store, 'gone', { clientId: 'free' })
      await store.erase('gone', {})
      const { fence } = (await store.claim('t', 'one', 1000))!
      const before = {
        entries: await store.read('t'),
        row: await store.thread('t'),
        threads: await store.threads({ tenant: 'acme', owner: 'ann', limit: 9 }),
        asks: await store.asks({ tenant: 'acme', limit: 9 }),
      }
      await clock.advance(2000)
      const again = await reopen()
      const after = {
        entries: await again.read('t'),
        row: await again.thread('t'),
        threads: await again.threads({ tenant: 'acme', owner: 'ann', limit: 9 }),
        asks: await again.asks({ tenant: 'acme', limit: 9 }),
      }
      expect(after).toEqual(before)
      expect((await again.work(9)).threadIds).toEqual(['t'])
      expect(await again.locate({ tenant: 'acme', owner: 'ann', clientId: 'free' })).toBeUndefined()
      await again.append('t', [entry('t')], { expect: [{ fact: 'a', is: '1' }] })
      expect((await again.claim('t', 'two', 1000))!.fence).toBeGreaterThan(fence)
      expect((await again.read('t')).map(({ seq }) => seq)).toEqual([1, 2, 3])
    })
  })
}
