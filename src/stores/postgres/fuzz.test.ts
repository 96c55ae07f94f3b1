import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askOf, creation, entry } from '../../../test/contracts/store.contract.ts'
import { fakeClock } from '../../../test/support/clock.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import type { Marks, Store } from '../../core/store.ts'
import { memoryStore } from '../memory/store.ts'
import { keyOf, pack, unpack } from './text.ts'

const { open } = postgresWorkshop()

/** Lists of both stores after the same random story must be the same, page by page. */
test('answers like the memory store, whatever the names and times are', async () => {
  const name = fc.oneof(
    fc.constantFrom('a', 'b', '', 'é', '💥', '\0', '\u0001', 'x'.repeat(900)),
    fc.string({ unit: 'binary', maxLength: 4 }),
  )
  const at = fc.integer({ min: 0, max: 5 })
  const step = fc.record({
    thread: fc.constantFrom('t1', 't2', 't\u00003', 't💥', 'y'.repeat(1000)),
    tenant: fc.constantFrom('p', 'q'),
    owner: fc.constantFrom('\0', 'o'),
    title: fc.option(name),
    agent: name,
    updatedAt: at,
    archived: fc.boolean(),
    fact: name,
    value: fc.option(name),
    was: fc.option(name),
    askId: fc.constantFrom('1', '2', '\u0000', 'z'.repeat(800)),
    raised: fc.boolean(),
    state: fc.constantFrom('pending' as const, 'approved' as const),
    deadline: at,
    timer: fc.option(at),
    audience: fc.array(name, { maxLength: 2 }),
    leg: fc.option(name),
    body: fc.string({ unit: 'binary' }),
    erase: fc.boolean(),
  })
  const clock = fakeClock(3)
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
      const memory = memoryStore({ clock })
      const postgres = await open({ clock, schema: `fuzz_${++schemas}`, connections: 2 })
      const both = async <T>(use: (store: Store) => Promise<T>) => {
        const [one, two] = await Promise.allSettled([use(memory), use(postgres)])
        if (one.status === 'rejected')
          expect(two).toMatchObject({ reason: { code: one.reason.code, data: one.reason.data } })
        else expect(two).toEqual(one)
      }
      for (const s of steps) {
        const { tenant, owner, title, agent, updatedAt, archived, leg } = s
        await both((store) =>
          store.append(
            s.thread,
            [creation(s.thread, { tenant, owner, title, agent, updatedAt, archived, leg })].map(
              (one) => ({ ...one, id: 'e' }),
            ),
            {},
          ),
        )
        const whole = askOf(s.askId, s.thread, {
          tenant,
          owner,
          state: s.state,
          deadline: s.deadline,
          audience: s.audience,
        })
        const { askId, state, deadline } = s
        const ask = s.raised ? whole : { askId, state, deadline, decidedBy: owner }
        const marks: Marks = {
          facts: { [s.fact]: s.value },
          thread: { updatedAt, leg },
          ask,
          timers: { k: s.timer },
        }
        await both((store) =>
          store.append(s.thread, [entry(s.thread, { id: 'f', marks, body: s.body })], {
            expect: [{ fact: s.fact, is: s.was }],
          }),
        )
        await both((store) =>
          store.append(s.thread, [entry(s.thread, { id: 'g', marks })], {
            expect: [{ fact: s.fact, not: s.was ?? '' }],
          }),
        )
        if (s.erase && s.archived)
          await both((store) => store.erase(s.thread, { expect: [{ fact: s.fact, is: s.value }] }))
        await both((store) => store.read(s.thread))
        await both((store) => store.thread(s.thread))
        await both((store) => store.locate({ tenant, owner, clientId: s.thread }))
        await both(async (store) => {
          const { rows, next } = await store.threads({ tenant, owner, limit: 2 })
          return { rows, isMore: next !== undefined } // each store has cursors of its own
        })
        await both((store) => store.threads({ tenant, owner, limit: 9, archived, agent }))
        await both((store) => store.asks({ tenant, limit: 9 }))
        await both((store) => store.asks({ tenant, owner, state: s.state, limit: 9 }))
        const decider = { user: owner, roles: s.audience }
        await both((store) => store.asks({ tenant, decider, limit: 9 }))
        await both((store) => store.asks({ tenant, decider, state: s.state, limit: 9 }))
        await both((store) => store.asks({ tenant, decider, askId: s.askId, limit: 9 }))
        await both(async (store) => {
          const { threadIds, nextAt } = await store.work(9)
          return { threadIds: threadIds.sort(), nextAt }
        })
      }
      for (const tenant of ['p', 'q'])
        for (const limit of [1, 2]) {
          await both((store) => pages((cursor) => store.asks({ tenant, limit, ...cursor })))
          await both((store) =>
            pages((cursor) => store.threads({ tenant, owner: 'o', limit, ...cursor })),
          )
        }
    }),
    { numRuns: 15, endOnFailure: true },
  )
}, 60_000)

let schemas = 0

async function pages<Row>(
  page: (cursor: { cursor?: string }) => Promise<{ rows: Row[]; next?: string }>,
) {
  const all: Row[] = []
  for (let next: string | undefined, first = true; first || next !== undefined; first = false) {
    const found = await page(next === undefined ? {} : { cursor: next })
    all.push(...found.rows)
    next = found.next
  }
  return all
}

test('any string becomes a text without NUL or halves of characters, and comes back', () => {
  const any = fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((n) => String.fromCharCode(n)),
  })
  fc.assert(
    fc.property(any, any, (one, two) => {
      expect(unpack(pack(one))).toBe(one)
      expect(pack(one)).not.toContain('\0')
      expect(pack(one).isWellFormed()).toBe(true)
      expect(keyOf(one) === keyOf(two)).toBe(one === two)
      const long = one + 'x'.repeat(500)
      expect(Buffer.byteLength(keyOf(long))).toBeLessThanOrEqual(400)
      expect(keyOf(long)).not.toBe(keyOf(`${long}y`))
    }),
    { numRuns: 2_000 },
  )
})
