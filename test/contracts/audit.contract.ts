import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { auditKeys, refOf } from '../../src/core/audit.ts'
import {
  eraseThread,
  refOfResidue,
  residueOf,
  verifyResidue,
} from '../../src/core/audit-residue.ts'
import { type Heads, type Verdict, Verifier, verifyThread } from '../../src/core/audit-verify.ts'
import { draft } from '../../src/core/entries.ts'
import type { Kept, Reader, Residue, Residues, Store } from '../../src/core/store.ts'
import { command, create, keys, person, seat, story, transitions } from '../support/chained.ts'
import { anyTampering } from '../support/tampering.ts'

export interface OpenedAudit {
  store: Store & Residues
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

    test('says erased, not broken, of a thread that was, and leaves nothing of anybody', async () => {
      const { store, reader } = await begin()
      const threadId = 'thread_of_ann'
      const { state } = await story(store, threadId, 2)
      const kept = await store.kept(threadId)
      await eraseThread(store, keys, threadId, {}, 1_700_000_000_000)
      const reading = await reader()
      const residues: Residue[] = []
      for await (const residue of reading.residues()) residues.push(residue)
      await reading.close()
      expect(residues).toHaveLength(1)
      const [residue] = residues as [Residue]
      expect(refOfResidue(residue)).toBe(refOf(threadId))

      const heads = new Map(kept.map(({ entry }) => [entry.seq, new Set([entry.link!])]))
      expect(verifyResidue(keys, residue, heads)).toEqual({
        ...{ verdict: 'erased', seq: 14, since: 1, problems: [] },
        head: state.chain?.link,
      })
      const later = new Map([[15, new Set(['x'])]])
      expect(verifyResidue(keys, residue, later)).toMatchObject({
        problems: [{ seq: 15, to: 15, fault: 'truncated' }],
      })
      const other = new Map([[3, new Set(['x'])]])
      expect(verifyResidue(keys, residue, other).problems).toEqual([
        { seq: 3, to: 3, fault: 'head' },
      ])

      const personal = kept.flatMap(({ entry }) => {
        const { id, tx, digest, runId = threadId, actor } = entry
        return [id, tx, digest, runId, `"${actor.id}"`]
      })
      const said = ['Hello', 'Ärger', 'Send', 'ask0', 'effect0', 'assistant', 'governor"']
      for (const text of [...personal, ...said])
        expect(residue.id + residue.text).not.toContain(text)
    })

    test('says broken of a residue that somebody made or changed', async () => {
      const { store } = await begin()
      await story(store, 'a', 1)
      await story(store, 'b', 1)
      const entriesOf = async function* (threadId: string) {
        yield* await store.kept(threadId)
      }
      const { residue } = (await residueOf(keys, 'a', entriesOf('a'), 1))!
      expect(verifyResidue(keys, residue)).toMatchObject({ verdict: 'erased' })
      const stranger = auditKeys(['a secret that somebody else made up'])!
      const fake = (await residueOf(stranger, 'a', entriesOf('a'), 1))!.residue
      expect(verifyResidue(keys, fake)).toMatchObject({ verdict: 'broken' })
      const renamed = { ...residue, id: residue.id.replace(refOf('a'), refOf('b')) }
      expect(verifyResidue(keys, renamed)).toMatchObject({ verdict: 'broken' })
      await fc.assert(
        fc.asyncProperty(fc.nat(residue.text.length - 1), async (at) => {
          const char = residue.text[at] === 'x' ? 'y' : 'x'
          const text = residue.text.slice(0, at) + char + residue.text.slice(at + 1)
          expect(verifyResidue(keys, { ...residue, text }).verdict).toBe('broken')
        }),
      )
      // What was wrong before stays wrong.
      const kept = await store.kept('a')
      kept[3]!.entry.actor = { ...person, id: 'bob' }
      const tampered = async function* () {
        yield* kept
      }
      const { residue: late } = (await residueOf(keys, 'a', tampered(), 1))!
      expect(verifyResidue(keys, late)).toMatchObject({
        ...{ verdict: 'broken', problems: [{ seq: 4, to: 4, fault: 'entry' }] },
      })
    })

    test('erases with all that came in between', async () => {
      const { store } = await begin()
      const thread = await story(store, 'a', 1)
      const late = Object.assign(Object.create(store), {
        async erase(...args: Parameters<Store['erase']>) {
          if (thread.state.seq < 12) await thread.commit(transitions(7)[2]!, command)
          return await store.erase(...args)
        },
      }) as Store
      await eraseThread(late, keys, 'a', {}, 1)
      const found: Residue[] = []
      for await (const residue of opened.store.residues()) found.push(residue)
      expect(found.map((one) => verifyResidue(keys, one))).toMatchObject([
        { verdict: 'erased', seq: 14 },
      ])
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
    }, 120_000)
  })
}
