import { existsSync } from 'node:fs'
import { readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keys, story } from '../../test/support/chained.ts'
import { workshop } from '../../test/support/file-workshop.ts'
import { type Postgres, startPostgres } from '../../test/support/postgres.ts'
import { readConfig } from '../config.ts'
import { refOf } from '../core/audit.ts'
import type { Archive, Store } from '../core/store.ts'
import { systemClock } from '../lib/clock.ts'
import { fileStore } from '../stores/file/store.ts'
import { postgresStore } from '../stores/postgres/store.ts'
import { audit } from './audit.ts'
import type { Command } from './command.ts'
import { eraseOwner } from './erase.ts'
import { exportThreads } from './export.ts'
import { importThreads } from './import.ts'
import { prune } from './prune.ts'

let server: Postgres
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())
const { directory } = workshop()
let schemas = 0
const secret = { HANDRAIL_AUDIT_KEY: keys[0].secret }

function commands(env: Record<string, string>, progress = (_line: string) => {}) {
  const config = readConfig({ ...secret, ...env })
  return async (command: (given: Command) => Promise<number>, ...args: string[]) => {
    const said: string[] = []
    const code = await command({ config, args, say: (line) => said.push(line), progress })
    return { code, said }
  }
}

interface Place {
  run: ReturnType<typeof commands>
  open(): Promise<Store & Archive>
  /** Changes the actor of an entry, sums and all. */
  tamper(threadId: string, seq: number): Promise<void>
}

async function onFiles(): Promise<Place> {
  const path = await directory()
  const open = () => fileStore({ directory: path, clock: systemClock })
  return {
    run: commands({ HANDRAIL_DATA: path }),
    open,
    async tamper(threadId, seq) {
      const file = join(path, 'chats', threadId, 'journal.ndjson')
      const lines = (await readFile(file, 'utf8')).split('\n')
      lines[seq - 1] = lines[seq - 1]!.replace('"id":"ann"', '"id":"bob"')
      await writeFile(file, lines.join('\n'))
    },
  }
}

async function onPostgres(): Promise<Place> {
  const schema = `a${++schemas}`
  return {
    run: commands({ DATABASE_URL: server.url, HANDRAIL_DATABASE_SCHEMA: schema }),
    open: () => postgresStore({ url: server.url, schema }),
    async tamper(threadId, seq) {
      const client = new pg.Client(server.url)
      await client.connect()
      await client.query(
        `UPDATE ${schema}.entries SET envelope = replace(envelope::text, '"ann"', '"bob"')::json
          WHERE thread_id = $1 AND seq = $2`,
        [threadId, seq],
      )
      await client.end()
    },
  }
}

describe.each([
  { name: 'files', begin: onFiles },
  { name: 'Postgres', begin: onPostgres },
])('audit on $name', ({ begin }) => {
  test('verifies beside an open store, and tells what was changed and where', async () => {
    const { run, open, tamper } = await begin()
    const store = await open()
    await story(store, 'one', 2)
    await story(store, 'two', 1)
    expect(await run(audit, 'verify')).toEqual({
      ...{ code: 0, said: ['2 ok, 0 unchained, 0 erased, 0 broken; 22 entries.'] },
    })
    await store.close()
    await tamper('one', 5)
    const { code, said } = await run(audit, 'verify')
    expect(code).toBe(1)
    expect(said[0]).toMatch(
      /^one: broken at 5: (the envelope or the marks were changed|cannot be read)$/,
    )
    expect(said.at(-1)).toBe('1 ok, 0 unchained, 0 erased, 1 broken; 22 entries.')
    const json = await run(audit, 'verify', '--json', '--thread', 'one')
    expect(JSON.parse(json.said[0]!)).toMatchObject({
      ...{ thread: 'one', verdict: 'broken', seq: 14, since: 1, problems: [{ seq: 5, to: 5 }] },
    })
    expect(await run(audit, 'verify', '--thread', 'two')).toMatchObject({
      ...{ code: 0, said: ['two: ok, 8 entries', expect.anything()] },
    })
  })

  test('says erased of what was erased, and broken of what only disappeared', async () => {
    const { run, open } = await begin()
    let store = await open()
    await story(store, 'one', 2)
    await story(store, 'two', 1)
    await store.close()
    const heads = join(await directory(), 'heads.ndjson')
    const exported = await run(audit, 'head')
    expect(exported).toMatchObject({ code: 0 })
    expect(exported.said).toHaveLength(2)
    await writeFile(heads, exported.said.join('\n'))
    expect(await run(audit, 'verify', '--heads', heads)).toMatchObject({ code: 0 })

    expect(await run(eraseOwner, '--owner', 'ann', '--tenant', 't')).toEqual({
      ...{ code: 0, said: ['2 threads of ann erased.'] },
    })
    expect(await run(audit, 'verify', '--heads', heads)).toEqual({
      ...{ code: 0, said: ['0 ok, 0 unchained, 2 erased, 0 broken; 22 entries.'] },
    })
    const erased = await run(audit, 'verify', '--thread', 'one')
    expect(erased).toMatchObject({ code: 0 })
    expect(erased.said[0]).toMatch(/: erased, 14 entries/)
    for (const action of ['verify', 'head', 'export'])
      await expect(run(audit, action, '--thread', 'nosuch')).rejects.toThrow(
        /^There is no thread nosuch\.$/,
      )
    // The id lives again; the heads of its first life are in the residue.
    store = await open()
    await story(store, 'one', 1)
    await story(store, 'three', 1)
    await store.close()
    expect(await run(audit, 'verify', '--heads', heads)).toMatchObject({ code: 0 })
    await writeFile(heads, [...exported.said, ...(await run(audit, 'head')).said].join('\n'))
    store = await open()
    await store.erase('three', {}) // without a residue, as somebody with the rows could
    await store.close()
    const { code, said } = await run(audit, 'verify', '--heads', heads)
    expect(code).toBe(1)
    expect(said[0]).toBe(
      `${refOf('three')}: broken at 1 to 8: missing, though a head of it was recorded`,
    )
    await writeFile(heads, exported.said[0]!.replace('"seq":14', '"seq":13'))
    const forged = await run(audit, 'verify', '--heads', heads)
    expect(forged).toMatchObject({ code: 1 })
    expect(forged.said.at(-1)).toMatch(/1 lines are not heads of ours/)
  })

  test('exports decisions that prove themselves', async () => {
    const { run, open } = await begin()
    const store = await open()
    await story(store, 'one', 2)
    await store.close()
    const { said } = await run(audit, 'export', '--thread', 'one')
    const decisions = said.flatMap((line) => JSON.parse(line).decision ?? [])
    expect(decisions.map(({ kind }: { kind: string }) => kind)).toEqual([
      'governor.set',
      ...Array(2).fill(['ask.raised', 'ask.answered', 'effect.intended', 'effect.done']).flat(),
    ])
    expect(decisions[2]).toMatchObject({
      ...{ title: 'Send 0?', who: 'ann', wire: 'chats', state: 'approved', seq: 5 },
    })
    expect(said.join('\n')).not.toContain('Hello') // what was said is no decision
    const file = join(await directory(), 'decisions.ndjson')
    await writeFile(file, said.join('\n'))
    expect(await run(audit, 'verify', file)).toMatchObject({
      ...{ code: 0, said: [expect.stringMatching(/^one: ok, 9 decisions up to /)] },
    })
    const changes = [
      said.with(5, said[5]!.replace('"who":"ann"', '"who":"bob"')),
      said.with(5, said[5]!.replaceAll('approved', 'rejected')),
      said.with(3, said[3]!.replace('message.added', 'state.patched')),
      said.toSpliced(4, 1),
      said.slice(0, -1),
      said.slice(0, 9),
    ]
    for (const lines of changes) {
      await writeFile(file, lines.join('\n'))
      expect(lines).not.toEqual(said)
      expect(await run(audit, 'verify', file)).toMatchObject({ code: 1 })
    }
  })

  test('threads and residues go to another store and back, to the byte', async () => {
    const { run, open } = await begin()
    const other = await begin()
    const store = await open()
    await story(store, 'one', 2)
    await story(store, 'two', 1)
    const before = await store.dump('one')
    await store.close()
    const old = ['--older-than', '0m', '--erase']
    const copy = await directory()
    const heads = join(await directory(), 'heads.ndjson')
    await writeFile(heads, (await run(audit, 'head')).said.join('\n'))
    const second = await open()
    await second.append('two', [], {}) // still there
    await second.close()
    await run(exportThreads, copy)
    expect(await other.run(importThreads, copy)).toMatchObject({ code: 0 })
    expect(await other.run(audit, 'verify', '--heads', heads)).toMatchObject({ code: 0 })
    const opened = await other.open()
    expect(JSON.stringify(await opened.dump('one'))).toBe(JSON.stringify(before))
    await opened.close()

    expect(await other.run(prune, ...old)).toMatchObject({ said: [/^2 threads erased/] })
    const empty = await directory()
    const gone = await other.run(exportThreads, empty)
    expect(gone.said).toContain('What is left of 2 erased threads went with them.')
    const third = await begin()
    await third.run(importThreads, empty)
    expect(await third.run(audit, 'verify', '--heads', heads)).toEqual({
      ...{ code: 0, said: ['0 ok, 0 unchained, 2 erased, 0 broken; 22 entries.'] },
    })
  })
})

test.each([
  ['verify', audit, ['verify']],
  ['head', audit, ['head']],
  ['export of decisions', audit, ['export', '--thread', 't']],
  ['erase', eraseOwner, ['--owner', 'ann']],
  ['prune', prune, ['--older-than', '1d', '--erase']],
  ['export', exportThreads, ['copy']],
])('%s in a directory without chats says so, and makes nothing', async (_, command, args) => {
  const path = await directory()
  const data = join(path, 'data')
  const run = commands({ HANDRAIL_DATA: data, HANDRAIL_AUDIT_KEY: '' })
  const given = args.map((one) => (one === 'copy' ? join(path, 'copy') : one))
  await expect(run(command, ...given)).rejects.toThrow(
    `${data} has no chats: set HANDRAIL_DATA or DATABASE_URL.`,
  )
  expect(await readdir(path)).toEqual([])
})

test('an export that is refused leaves nothing behind', async () => {
  const data = await directory()
  const store = await fileStore({ directory: data, clock: systemClock })
  const copy = join(await directory(), 'copy')
  await expect(commands({ HANDRAIL_DATA: data })(exportThreads, copy)).rejects.toThrow(/in use/)
  await store.close()
  expect(existsSync(copy)).toBe(false)
})

test('says how many threads it has done, one by one', async () => {
  const path = await directory()
  const store = await fileStore({ directory: path, clock: systemClock })
  for (const id of ['one', 'two']) await story(store, id, 1)
  await store.close()
  const told: string[] = []
  const run = commands({ HANDRAIL_DATA: path }, (line) => void told.push(line))
  for (const word of ['verify', 'head']) await run(audit, word)
  await run(exportThreads, await directory())
  const both = ['1 thread', '2 threads']
  expect(told).toEqual([...both, ...both, ...both.map((count) => `${count} exported`)])
})

test('import leaves out what audit verify finds broken: a journal that lost its end', async () => {
  const path = await directory()
  const store = await fileStore({ directory: path, clock: systemClock })
  for (const id of ['cut', 'whole']) await story(store, id, 1)
  await store.close()
  const journal = join(path, 'chats', 'cut', 'journal.ndjson')
  await truncate(journal, (await readFile(journal)).length - 50)
  const run = commands({ HANDRAIL_DATA: path })
  expect((await run(audit, 'verify')).said.at(-1)).toMatch(/^1 ok, .* 1 broken/)
  const { run: elsewhere } = await onFiles()
  const { code, said } = await elsewhere(importThreads, path)
  expect(code).toBe(1)
  expect(said[0]).toMatch(/^1 thread /)
  expect(said).toContain('left out: cut: its journal is damaged.')
})

test('needs a key, and a word', async () => {
  const path = await directory()
  await (await fileStore({ directory: path, clock: systemClock })).close()
  const run = commands({ HANDRAIL_DATA: path, HANDRAIL_AUDIT_KEY: '' })
  await expect(run(audit, 'verify')).rejects.toThrow(/Set HANDRAIL_AUDIT_KEY/)
  await expect(run(audit)).rejects.toThrow(/verify, head or export/)
  await expect(run(audit, 'verify', '--what')).rejects.toThrow(/--what/)
  expect(() => readConfig({ HANDRAIL_AUDIT_KEY: 'short' })).toThrow(/32 characters/)
})
