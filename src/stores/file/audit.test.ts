import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { auditContract } from '../../../test/contracts/audit.contract.ts'
import { create, keys, seat, story, transitions } from '../../../test/support/chained.ts'
import { unsynced } from '../../../test/support/file-workshop.ts'
import { eraseThread, verifyResidue } from '../../core/audit-residue.ts'
import { Verifier, verifyThread } from '../../core/audit-verify.ts'
import type { Kept, Residue } from '../../core/store.ts'
import { systemClock } from '../../lib/clock.ts'
import { encodeEntry, prepare } from './entry-line.ts'
import { fileReader } from './reader.ts'
import { fileStore } from './store.ts'

async function open() {
  const directory = await mkdtemp(join(tmpdir(), 'handrail-'))
  const store = await fileStore({ directory, clock: systemClock, fs: unsynced, syncEvery: 600_000 })
  const journal = (threadId: string) => join(directory, 'chats', threadId, 'journal.ndjson')
  return {
    directory,
    journal,
    store,
    reader: () => fileReader(directory),
    async put(threadId: string, kept: readonly Kept[]) {
      await store.close() // moves all to the journals
      const lines = kept.map(({ entry: { seq, ...entry }, marks }) =>
        encodeEntry(prepare({ ...entry, ...(marks && { marks }) }), seq),
      )
      await writeFile(journal(threadId), Buffer.concat(lines.flatMap((line) => [line, newline])))
    },
    async dispose() {
      await store.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const newline = Buffer.from('\n')

auditContract('file', open, 150)

async function verdictOf(directory: string, threadId: string) {
  const reader = await fileReader(directory)
  return await verifyThread(reader.entries(threadId), new Verifier(keys, threadId))
}

test('finds any one byte that is another, whoever counted the sums', async () => {
  const { store, journal, directory, dispose } = await open()
  onTestFinished(dispose)
  await story(store, 'a', 2)
  await store.close()
  const bytes = await readFile(journal('a'))
  const at = fc.nat(bytes.length - 2) // the last one ends the last line, and is no part of it
  await fc.assert(
    fc.asyncProperty(at, fc.integer({ min: 1, max: 255 }), async (at, bits) => {
      const other = Buffer.from(bytes)
      other[at] = other[at]! ^ bits
      await writeFile(journal('a'), other)
      const { verdict, problems } = await verdictOf(directory, 'a')
      expect(verdict).toBe('broken')
      const line = bytes.subarray(0, at).filter((byte) => byte === 10).length + 1
      expect(problems.some(({ seq, to }) => seq <= line && line <= to)).toBe(true)
    }),
    { numRuns: 200 },
  )
})

test('finds a journal that lost its end broken, as the store does', async () => {
  const { store, journal, directory, dispose } = await open()
  onTestFinished(dispose)
  await story(store, 'a', 1)
  await store.close()
  const bytes = await readFile(journal('a'))
  const lines = bytes.toString().split('\n')
  const upTo = (line: number) => Buffer.byteLength(`${lines.slice(0, line).join('\n')}\n`)
  // In the last line, between two of a transition, and in one that is a transition by itself.
  for (const size of [bytes.length - 50, upTo(7), upTo(5) - 50]) {
    await writeFile(journal('a'), bytes.subarray(0, size))
    expect(await verdictOf(directory, 'a')).toMatchObject({ verdict: 'broken' })
  }
})

test('has the residue of a thread also when it is killed right after it was erased', async () => {
  const { store, directory, dispose } = await open()
  onTestFinished(dispose)
  await story(store, 'a', 1)
  await store.sync()
  await eraseThread(store, keys, 'a', {}, 1)
  const corpse = await mkdtemp(join(tmpdir(), 'handrail-'))
  onTestFinished(() => rm(corpse, { recursive: true, force: true }))
  const filter = (source: string) => !source.endsWith('.sock')
  await cp(directory, corpse, { recursive: true, filter })

  const verdicts = async (residues: AsyncIterable<Residue>) => {
    const found = []
    for await (const residue of residues) found.push(verifyResidue(keys, residue).verdict)
    return found
  }
  const reader = await fileReader(corpse)
  expect(await verdicts(reader.residues())).toEqual(['erased'])
  const entries = []
  for await (const kept of reader.entries('a')) entries.push(kept)
  expect(entries).toEqual([])
  const again = await fileStore({ directory: corpse, clock: systemClock, fs: unsynced })
  expect(await verdicts(again.residues())).toEqual(['erased'])
  await again.close()
  expect(await readdir(join(corpse, 'erased'))).toHaveLength(1)
  expect(await verdicts((await fileReader(corpse)).residues())).toEqual(['erased'])
})

test('reads beside a server that writes, from the log and from the journals', async () => {
  const { store, directory, dispose } = await open()
  onTestFinished(dispose)
  const thread = seat(store, 'a', keys)
  await create(thread)
  let done = false
  const writing = (async () => {
    for (let n = 0; n < 60; n++) {
      for (const drafts of transitions(n))
        await thread.commit(drafts, { guard: {}, actor: { type: 'user', id: 'ann' } })
      if (n % 7 === 0) await store.sync()
    }
    done = true
  })()
  let looks = 0
  for (let last = 0; !done; looks++) {
    const { verdict, seq, problems } = await verdictOf(directory, 'a')
    expect({ verdict, problems }).toEqual({ verdict: 'ok', problems: [] })
    expect(seq).toBeGreaterThanOrEqual(last)
    last = seq
  }
  await writing
  expect(looks).toBeGreaterThan(3)
  const reader = await fileReader(directory)
  const ids = []
  for await (const threadId of reader.threadIds()) ids.push(threadId)
  expect(ids).toEqual(['a'])
  expect(await verdictOf(directory, 'a')).toMatchObject({ verdict: 'ok', seq: 362 })
})
