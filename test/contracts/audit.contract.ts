import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { auditKeys } from '../../src/core/audit.ts'
import { type Heads, type Verdict, Verifier, verifyThread } from '../../src/core/audit-verify.ts'
import { draft } from '../../src/core/entries.ts'
import type { Kept, Reader, Store } from '../../src/core/store.ts'
import { command, create, keys, seat, story, transitions } from '../support/chained.ts'
import { anyTampering } from '../support/tampering.ts'

export interface OpenedAudit {
  store: Store
  /** What an audit sees from outside, beside the store that is open. */
  reader(): Promise<Reader>
  /** Puts something else in the place of a thread, as somebody with the files or the rows could. */
  put(threadId: string, kept: readonly Kept[]): Promise<void>
  dispose(): Promise<void>
}

/** I12, on every store. */
export function auditContract(name: string, open: () => Promise<OpenedAudit>, runs = 100) {
  describe(`${name} audit`, () => {
    let opened: OpenedAudit
    afterEach(() => opened.dispose())
    const begin = async () => {
      opened = await open()
      return opened
    }

    async function verdictOf(threadId: string, heads?: Heads, given = keys): Promise<Verdict> {
      const reader = await opened.reader()
      try {
        return await verifyThread(reader.entries(threadId), new Verifier(given, threadId, heads))
      } finally {
        await reader.close()
      }
    }

    test('links every entry, and tells the head', async () => {
      const { store } = await begin()
      const { state } = await story(store, 'a', 2)
      const verdict = await verdictOf('a')
      expect(verdict).toEqual({
        ...{ verdict: 'ok', seq: 14, since: 1, problems: [] },
        head: state.chain?.link,
      })
      expect((await store.read('a')).every(({ link }) => link !== undefined)).toBe(true)
    })

    test('has no fork when servers write at once and hear nothing of each other', async () => {
      const { store } = await begin()
      await create(seat(store, 'a', keys))
      const driver = seat(store, 'a', keys)
      const others = [seat(store, 'a', keys), seat(store, 'a', keys)]
      const { fence } = (await store.claim('a', 'driver', 60_000))!
      const drive = async () => {
        for (let n = 0; n < 8; n++)
          for (const drafts of transitions(n))
            await driver.commit(drafts, { ...command, guard: { fence } })
      }
      const say = (server: number, n: number) =>
        others[server]!.commit([draft('thread.renamed', { title: `${server}-${n}` })], command)
      const chatter = others.map(async (_, server) => {
        // Several at a time on one server too.
        for (let n = 0; n < 4; n++) await Promise.all([0, 1, 2].map((k) => say(server, n * 3 + k)))
      })
      await Promise.all([drive(), ...chatter])
      expect(await verdictOf('a')).toMatchObject({ verdict: 'ok', seq: 2 + 48 + 24, problems: [] })
    })

    test('leaves a guard of the caller to the caller', async () => {
      const { store } = await begin()
      await story(store, 'a', 1)
      const [one, two] = [seat(store, 'a', keys), seat(store, 'a', keys)]
      await Promise.all([one.sync(), two.sync()])
      const guard = { expect: [{ fact: 'message:x', is: null }] }
      const say = draft('message.added', {
        message: { id: 'x', role: 'user', parts: [{ type: 'text', text: 'x' }] },
        for: 'both',
      })
      await one.commit([say], { ...command, guard })
      await expect(two.commit([say], { ...command, guard })).rejects.toMatchObject({
        ...{ code: 'journal_conflict', data: { fact: 'message:x' } },
      })
      expect(await verdictOf('a')).toMatchObject({ verdict: 'ok', seq: 9 })
    })

    test('covers a thread from before there was a key, and says from where it is linked', async () => {
      const { store, put } = await begin()
      const old = seat(store, 'a')
      await create(old)
      await old.commit(transitions(0)[0]!, command)
      expect(await verdictOf('a')).toMatchObject({ verdict: 'unchained', seq: 4, since: null })
      const thread = seat(store, 'a', keys)
      await thread.sync()
      await thread.commit(transitions(0)[1]!, command)
      await thread.commit(transitions(0)[2]!, command)
      expect(await verdictOf('a')).toMatchObject({ verdict: 'ok', seq: 8, since: 5 })

      const kept = await store.kept('a')
      kept[1]!.entry.actor.id = 'bob'
      await put('a', kept)
      expect(await verdictOf('a')).toMatchObject({
        ...{ verdict: 'broken', problems: [{ seq: 1, to: 4, fault: 'before' }] },
      })
    })

    test('tells entries that a server without the key wrote in between', async () => {
      const { store } = await begin()
      await story(store, 'a', 1)
      const keyless = seat(store, 'a')
      await keyless.sync()
      await keyless.commit(transitions(5)[0]!, command)
      const thread = seat(store, 'a', keys)
      await thread.sync()
      await thread.commit(transitions(6)[0]!, command)
      expect(await verdictOf('a')).toMatchObject({
        ...{ verdict: 'broken', seq: 12 },
        problems: [{ seq: 9, to: 10, fault: 'unlinked' }],
      })
    })

    test('goes on with a new key, and needs the old one to prove what it linked', async () => {
      const { store } = await begin()
      await story(store, 'a', 1)
      const both = auditKeys(['another secret, of more than that', keys[0].secret])!
      const thread = seat(store, 'a', both)
      await thread.sync()
      await thread.commit(transitions(5)[0]!, command)
      expect(await verdictOf('a', undefined, both)).toMatchObject({ verdict: 'ok', seq: 10 })
      expect(await verdictOf('a', undefined, [both[0]])).toMatchObject({
        problems: [{ seq: 1, to: 8, fault: 'key' }],
      })
    })

    test('finds a thread that was cut off, and one that began anew, by an exported head', async () => {
      const { store, put } = await begin()
      const { state } = await story(store, 'a', 2)
      const heads = new Map([[14, new Set([state.chain!.link])]])
      expect(await verdictOf('a', heads)).toMatchObject({ verdict: 'ok' })
      const thread = seat(store, 'b', keys)
      await create(thread)
      await thread.commit(transitions(3)[0]!, command)
      const kept = await store.kept('a')
      const whole = kept.slice(0, 11) // to the end of a transition
      await put('a', whole)
      expect(await verdictOf('a')).toMatchObject({ verdict: 'ok', seq: 11 })
      expect(await verdictOf('a', heads)).toMatchObject({
        problems: [{ seq: 12, to: 14, fault: 'truncated' }],
      })
      const other = new Map([[3, new Set([state.chain!.link])]])
      expect(await verdictOf('b', other)).toMatchObject({
        problems: [{ seq: 3, to: 3, fault: 'head' }],
      })
    })

    test('finds and locates whatever is done to a thread', async () => {
      const { store, put } = await begin()
      await story(store, 'a', 2)
      const thread = await store.kept('a')
      await put('a', thread)
      expect(await verdictOf('a')).toMatchObject({ verdict: 'ok' })
      await fc.assert(
        fc.asyncProperty(anyTampering, async (tampering) => {
          const done = tampering.on(thread)
          if (!done) return
          await put('a', done.kept)
          const { verdict, problems } = await verdictOf('a')
          expect(verdict, tampering.what).toBe('broken')
          const near = problems.some(({ seq, to }) => seq <= done.to && to >= done.from)
          expect(near, `${tampering.what}: ${JSON.stringify(problems)}`).toBe(true)
        }),
        { numRuns: runs },
      )
    })
  })
}
