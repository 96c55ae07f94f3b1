import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { FindQuery, Store } from '../../src/core/store.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { fakeClock } from '../support/clock.ts'
import { create, entry, type OpenedStore } from './store.contract.ts'

interface Saying {
  at?: number
  role?: string
  for?: string
  path?: string
}

export function saying(threadId: string, text: string, more: Saying = {}) {
  const { at = 1_000, role = 'user', for: whom = 'both', path } = more
  const message = { id: 'm', role, parts: [{ type: 'text', text }] }
  const body = JSON.stringify({ message, for: whom, ...(path && { path }) })
  return entry(threadId, { kind: 'message.added', at, body, marks: { thread: { updatedAt: at } } })
}

export const say = (store: Store, threadId: string, text: string, more?: Saying) =>
  store.append(threadId, [saying(threadId, text, more)], {})

const ann = { tenant: 'acme', owner: 'ann', limit: 50 }

/** What every store promises of finding what was said. */
export function findContract(name: string, open: (clock?: Clock) => Promise<OpenedStore>) {
  describe(`finding, in the ${name} store`, () => {
    const opened: OpenedStore[] = []
    afterEach(async () => {
      for (const each of opened.splice(0)) await each.dispose()
    })
    async function start() {
      const each = await open()
      opened.push(each)
      return each
    }
    const find = async (store: Store, words: string[], more: Partial<FindQuery> = {}) => {
      const { rows, cut } = await store.find({ ...ann, words, ...more })
      expect(cut).toBeUndefined()
      return rows.map(({ excerpt }) => excerpt)
    }

    test('gives what has all the words, whole, the newest first', async () => {
      const { store } = await start()
      await create(store, 't', { clientId: 'mine' })
      await say(store, 't', 'The harbour is quiet', { at: 5 })
      await say(store, 't', 'Quiet nights, quiet days', { at: 7, role: 'assistant' })
      await say(store, 't', 'Quietly in the harbour', { at: 9 })
      const { rows, ...rest } = await store.find({ ...ann, words: ['quiet'] })
      expect(rows).toEqual([
        { at: 7, seq: 3, role: 'assistant', excerpt: 'Quiet nights, quiet days', ...names },
        { at: 5, seq: 2, role: 'user', excerpt: 'The harbour is quiet', ...names },
      ])
      expect(rest).toEqual({})
      expect(await find(store, ['harbour', 'quiet'])).toEqual(['The harbour is quiet'])
      expect(await find(store, ['harbour', 'noise'])).toEqual([])
    })
    const names = { threadId: 't', clientId: 'mine' }

    test('does not mind case and accents, and keeps the parts of a word together', async () => {
      const { store } = await start()
      await create(store, 't')
      await say(store, 't', 'Café ÉLAN of ACC-001', { at: 1 })
      await say(store, 't', 'ACC 1, 001', { at: 2 })
      await say(store, 't', '東京タワーへ行く', { at: 3 })
      const first = 'Café ÉLAN of ACC-001'
      expect(await find(store, ['cafe', 'Élan'])).toEqual([first])
      expect(await find(store, ['acc-001'])).toEqual([first])
      expect(await find(store, ['acc', '001'])).toEqual(['ACC 1, 001', first])
      expect(await find(store, ['Elan of'])).toEqual([first])
      expect(await find(store, ['of Elan'])).toEqual([])
      expect(await find(store, ['タワー'])).toEqual(['東京タワーへ行く'])
    })

    test('takes any words as words', async () => {
      const { store } = await start()
      await create(store, 't')
      await say(store, 't', 'The harbour is quiet')
      for (const words of [
        ...[[], [''], ['-'], ['%'], ['\0'], ['\ud800'], ['qui:*'], ["'; DROP TABLE said; --"]],
        ...[['quiet | harbour'], ['quiet & !harbour'], ['quiet'.repeat(100_000)]],
        Array(1_000).fill('absent'),
      ])
        expect(await find(store, words)).toEqual([])
    })

    test('is of what was said to the owner: not of tools, models, sub-agents and other entries', async () => {
      const { store } = await start()
      await create(store, 't')
      await say(store, 't', 'word', { role: 'tool' })
      await say(store, 't', 'word', { for: 'model' })
      await say(store, 't', 'word', { path: 'scout' })
      await say(store, 't', 'word for clients', { for: 'client' })
      await store.append('t', [entry('t', { body: '{"name":"word"}' })], {})
      for (const body of ['{}', '[]', '1', 'null', '{"message":{"parts":[null]}}', 'word', ''])
        await store.append('t', [entry('t', { kind: 'message.added', body })], {})
      await store.append('t', [{ ...saying('t', 'word'), keyId: 'k' }], {})
      expect(await find(store, ['word'])).toEqual(['word for clients'])
    })

    test('finds nothing of other owners and tenants', async () => {
      const { store } = await start()
      await create(store, 'a', { clientId: 'c' })
      await create(store, 'b', { clientId: 'c', owner: 'bob' })
      await create(store, 'o', { clientId: 'c', tenant: 'other' })
      for (const id of ['a', 'b', 'o']) await say(store, id, `secret of ${id}`)
      expect(await find(store, ['secret'])).toEqual(['secret of a'])
      expect(await find(store, ['secret'], { owner: 'bob' })).toEqual(['secret of b'])
      expect(await find(store, ['secret'], { tenant: 'other' })).toEqual(['secret of o'])
      expect(await find(store, ['secret'], { tenant: 'acmea', owner: 'nn' })).toEqual([])
      // Whoever it is given to has it from then on.
      await store.append('a', [entry('a', { marks: { thread: { owner: 'eve' } } })], {})
      expect(await find(store, ['secret'])).toEqual([])
      expect(await find(store, ['secret'], { owner: 'eve' })).toEqual(['secret of a'])
    })

    test('finds what is archived, nothing of what is erased, and not the thread that is left out', async () => {
      const { store } = await start()
      for (const id of ['kept', 'gone', 'here']) {
        await create(store, id)
        await say(store, id, `word of ${id}`)
      }
      await store.append('kept', [entry('kept', { marks: { thread: { archived: true } } })], {})
      await find(store, ['word'])
      await store.erase('gone', {})
      expect(await find(store, ['word'], { except: 'here' })).toEqual(['word of kept'])
      await create(store, 'gone')
      expect(await find(store, ['word'], { except: 'here' })).toEqual(['word of kept'])
      await say(store, 'gone', 'word of another')
      expect((await find(store, ['word'])).sort()).toEqual([
        ...['word of another', 'word of here', 'word of kept'],
      ])
      expect(await find(store, ['gone'])).toEqual([])
    })

    test('comes in pages that new hits do not shift, ties in one order', async () => {
      const { store } = await start()
      for (const id of ['p', 'q', 'r']) {
        await create(store, id)
        for (let n = 0; n < 4; n++) await say(store, id, `word ${id}${n}`, { at: 10 + (n >> 1) })
      }
      const seen: string[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await store.find({
          ...ann,
          words: ['word'],
          limit: 5,
          ...(cursor && { cursor }),
        })
        seen.push(...page.rows.map(({ excerpt }) => excerpt.slice(5)))
        expect(page.rows.length).toBeLessThanOrEqual(5)
        cursor = page.next
        if (cursor === undefined) break
        await say(store, 'p', 'word new', { at: 99 })
      }
      expect(seen.join(' ')).toBe('r3 r2 q3 q2 p3 p2 r1 r0 q1 q0 p1 p0')
      for (const cursor of ['x', '', Buffer.from('["said",1,2,3]').toString('base64url')])
        await expect(store.find({ ...ann, words: ['word'], cursor })).rejects.toMatchObject({
          code: 'invalid_cursor',
        })
    })

    test('gives of a long text what is around the words', async () => {
      const { store } = await start()
      await create(store, 't')
      await say(store, 't', `${'before '.repeat(200)}needle ${'after '.repeat(200)}`)
      const [excerpt = ''] = await find(store, ['needle'])
      expect(excerpt).toMatch(/^….*needle.*…$/)
      expect(excerpt.length).toBeLessThan(310)
    })

    test('finds what was said before it was closed and opened again', async ({ skip }) => {
      const { store, reopen } = await start()
      if (!reopen) return skip('this store does not outlive its process')
      await create(store, 't')
      await say(store, 't', 'first words')
      expect(await find(store, ['words'])).toHaveLength(1)
      await say(store, 't', 'last words')
      const again = await reopen()
      expect(await find(again, ['words'])).toEqual(['last words', 'first words'])
      await say(again, 't', 'words after that')
      expect(await find(again, ['words'])).toHaveLength(3)
    })

    test('finds what the memory store finds, whatever was said', async () => {
      const word = fc.constantFrom(
        'a',
        'B',
        'é',
        'e',
        'ß',
        '漢',
        '字',
        '1',
        '-',
        ' ',
        ' ',
        '\u0301',
      )
      const text = fc.string({ unit: word, maxLength: 12 })
      const thread = fc.constantFrom('p', 'q')
      const at = fc.integer({ min: 0, max: 3 })
      const story = fc.array(fc.record({ thread, text, at, erase: fc.boolean() }), {
        maxLength: 12,
      })
      await fc.assert(
        fc.asyncProperty(story, fc.array(text, { maxLength: 3 }), async (steps, words) => {
          const each = await open()
          const memory = memoryStore({ clock: fakeClock() })
          try {
            for (const store of [memory, each.store])
              for (const { thread, text, at, erase } of steps) {
                if (erase) await store.erase(thread, {}).catch(() => {})
                await create(store, thread).catch(() => {})
                await say(store, thread, text, { at })
              }
            const [one, two] = [memory, each.store].map((store) => store.find({ ...ann, words }))
            expect(await two).toEqual(await one)
          } finally {
            await each.dispose()
          }
        }),
        { numRuns: 25 },
      )
    }, 120_000)
  })
}
