import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { saying } from '../../test/contracts/find.contract.ts'
import { askOf, creation, entry, rowOf } from '../../test/contracts/store.contract.ts'
import { workshop } from '../../test/support/file-workshop.ts'
import { type Postgres, startPostgres } from '../../test/support/postgres.ts'
import { readConfig } from '../config.ts'
import type { NewEntry, Store } from '../core/store.ts'
import { sha256 } from '../lib/canonical.ts'
import { systemClock } from '../lib/clock.ts'
import { fileStore } from '../stores/file/store.ts'
import { postgresStore } from '../stores/postgres/store.ts'
import type { Command } from './command.ts'
import { exportThreads } from './export.ts'
import { importThreads } from './import.ts'
import { migrateDatabase } from './migrate.ts'
import { prune } from './prune.ts'

let server: Postgres
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())
const { directory } = workshop()
let schemas = 0

/** A database of its own, and commands that say into `said`. */
function place(env: Record<string, string> = {}) {
  const schema = `c${++schemas}`
  const said: string[] = []
  const base = { DATABASE_URL: server.url, HANDRAIL_DATABASE_SCHEMA: schema }
  const config = readConfig({ ...base, ...env })
  const run = async (command: (given: Command) => Promise<number>, ...args: string[]) => {
    said.length = 0
    const code = await command({ config, args, say: (line) => said.push(line), progress() {} })
    return { code, said: [...said] }
  }
  return { run, open: () => postgresStore({ url: server.url, schema }) }
}

const bodies = [
  '{}',
  '{"a":"é💥"}',
  '"\u0000"',
  '"\ud800"',
  '{\n"pretty": 1}',
  `"${'x'.repeat(70_000)}"`,
]

function threadOf(id: string, n: number): NewEntry[] {
  const sealed = (one: NewEntry, body: string) => ({ ...one, body, digest: sha256(body) })
  const row = { clientId: `${id}!`, owner: `o${n % 3}`, updatedAt: n, archived: n % 2 === 0 }
  const marks = {
    facts: { active: null, [`f${n}`]: 'v', ['__proto__']: 'p', 7: 'seven' },
    timers: { k: n },
  }
  return [
    sealed(creation(id, row, marks), '{"x":1}'),
    ...Array.from({ length: n % 5 }, (_, i) =>
      sealed(
        entry(id, {
          ...{ runId: `r${i}`, fence: (1 << 20) + n, tx: `tx${i}` },
          ...(i % 2 === 0 && { marks: { ask: askOf(`a${i}`, id, { deadline: n }) } }),
        }),
        bodies[(n + i) % bodies.length]!,
      ),
    ),
  ]
}

/** A directory with many threads, and what its journals are to the byte. */
async function filled(count: number) {
  const path = await directory()
  const fs = { sync: async () => {} }
  const store = await fileStore({ directory: path, clock: systemClock, fs })
  for (let from = 0; from < count; from += 500)
    await Promise.all(
      Array.from({ length: Math.min(500, count - from) }, async (_, i) => {
        const id = i === 7 ? `odd/${from}\u0000💥` : `t${from + i}`
        for (const one of threadOf(id, from + i)) await store.append(id, [one], {})
      }),
    )
  await store.close()
  return path
}

async function journalsOf(path: string): Promise<Map<string, string>> {
  const folders = await readdir(join(path, 'chats'))
  const read = async (name: string) =>
    [name, sha256(await readFile(join(path, 'chats', name, 'journal.ndjson'), 'latin1'))] as const
  return new Map((await Promise.all(folders.map(read))).sort())
}

/** All that lists say. */
async function listsOf(store: Store) {
  const rows = []
  for (const owner of ['o0', 'o1', 'o2'])
    rows.push((await store.threads({ tenant: 'acme', owner, limit: 100_000 })).rows)
  const asks = (await store.asks({ tenant: 'acme', limit: 100_000 })).rows
  const { threadIds } = await store.work(100_000)
  return { rows, asks, threadIds: threadIds.sort() }
}

const count = Number(process.env.HANDRAIL_TEST_THREADS ?? 300)

test(`${count} threads go to Postgres and back, equal to the byte`, async () => {
  const source = await filled(count)
  const { run, open } = place()
  const since = performance.now()
  const there = await run(importThreads, source)
  const half = performance.now()
  expect(there).toMatchObject({ code: 0 })
  expect(there.said[0]).toMatch(
    new RegExp(`^${count.toLocaleString('en')} threads from .*, verified\\.$`),
  )
  const target = await directory()
  const back = await run(exportThreads, target)
  const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1)
  if (count > 1000)
    console.log(`import ${seconds(since, half)} s, export ${seconds(half, performance.now())} s`)
  expect(back.said[1]).toBe(there.said[1]) // the digest
  expect(await journalsOf(target)).toEqual(await journalsOf(source))
  const postgres = await open()
  const [one, two, three] = [
    await fileStore({ directory: source, clock: systemClock }),
    postgres,
    await fileStore({ directory: target, clock: systemClock }),
  ]
  try {
    const lists = await listsOf(one)
    expect(lists.threadIds).toHaveLength(count)
    expect(await listsOf(two)).toEqual(lists)
    expect(await listsOf(three)).toEqual(lists)
    // Facts came along, and fences go on above those that were.
    for (const store of [two, three]) {
      const { fence } = (await store.claim('t4', 'me', 1000))!
      expect(fence).toBeGreaterThan((1 << 20) + count - 1)
      const facts = [
        { fact: 'f4', is: 'v' },
        { fact: '7', is: 'seven' },
      ]
      await store.append('t4', [entry('t4')], { fence, expect: facts })
    }
  } finally {
    for (const store of [one, two, three]) await store.close()
  }
}, 600_000)

test.each(['postgres', 'files'])(
  'on %s no fence of a restored thread is given again',
  async (kind) => {
    const store =
      kind === 'postgres'
        ? await place().open()
        : await fileStore({ directory: await directory(), clock: systemClock })
    for (const [n, fence] of [1, 2, 2, 1 << 20, (1 << 20) + 1, (1 << 22) - 1, 5].entries()) {
      await store.restore(`t${n}`, [{ ...creation(`t${n}`), fence }])
      expect((await store.claim(`t${n}`, 'me', 1000))!.fence).toBeGreaterThan(fence)
    }
    await store.close()
  },
)

describe('import', () => {
  test('goes on where it was stopped, and does nothing the second time', async () => {
    const source = await filled(40)
    const { run, open } = place()
    const store = await open()
    const files = await fileStore({ directory: source, clock: systemClock })
    for (let n = 0; n < 10; n++)
      if (n !== 7) await store.restore(`t${n}`, await files.dump(`t${n}`))
    await files.close()
    await store.close()
    const first = await run(importThreads, source)
    expect(first.said[0]).toMatch(/^31 threads .*, 9 threads the same already/)
    const second = await run(importThreads, source)
    expect(second.said[0]).toMatch(/^0 threads .*, 40 threads the same already/)
    expect(second.said[1]).toBe(first.said[1])
  })

  test('leaves a different thread as it is, and another under the same name, and says so', async () => {
    const source = await filled(6)
    const { run, open } = place()
    const store = await open()
    const [other] = threadOf('t1', 1)
    await store.append('t1', [other!, entry('t1')], {})
    await store.append(
      'new',
      [
        {
          ...threadOf('new', 2)[0]!,
          marks: { thread: rowOf('new', { clientId: 't2!', owner: 'o2' }) },
        },
      ],
      {},
    )
    const before = await store.read('t1')
    const { code, said } = await run(importThreads, source)
    expect(code).toBe(1)
    expect(said.slice(2).sort()).toEqual([
      'left out: t1: the other side has a different thread of this id.',
      'left out: t2: the other side has another thread under its name.',
    ])
    expect(await store.read('t1')).toEqual(before)
    expect(await store.thread('t3')).toBeDefined()
    await store.close()
  })

  test('leaves out what was changed on disk, and what cannot be read', async () => {
    const source = await filled(1)
    const store = await fileStore({ directory: source, clock: systemClock })
    await store.append('bad', [{ ...threadOf('bad', 1)[0]!, digest: 'other' }], {})
    await store.close()
    const { run } = place()
    const { code, said } = await run(importThreads, source)
    expect(code).toBe(1)
    expect(said[2]).toBe('left out: bad: entry 1 is not what its digest says.')
  })

  test('wants a directory that a server wrote, and one store on each side', async () => {
    const { run } = place()
    const empty = await directory()
    await expect(run(importThreads, empty)).rejects.toThrow(/has no chats/)
    await expect(run(importThreads)).rejects.toThrow('Name one directory.')
    const config = readConfig({ HANDRAIL_DATA: empty })
    const command = { config, args: [empty], say() {}, progress() {} }
    await expect(exportThreads(command)).rejects.toThrow(/is the store itself/)
  })

  test('goes between two directories too', async () => {
    const source = await filled(12)
    const target = await directory()
    const { run } = place({ DATABASE_URL: '', HANDRAIL_DATA: target })
    expect((await run(importThreads, source)).said[0]).toMatch(/^12 threads/)
    expect(await journalsOf(target)).toEqual(await journalsOf(source))
  })
})

describe.each(['postgres', 'files'])('prune on %s', (kind) => {
  async function store() {
    const path = await directory()
    const env: Record<string, string> =
      kind === 'postgres' ? {} : { DATABASE_URL: '', HANDRAIL_DATA: path }
    const here = place(env)
    const open = async (): Promise<Store> =>
      kind === 'postgres' ? here.open() : fileStore({ directory: path, clock: systemClock })
    return { ...here, open }
  }

  test('names what nobody touched for long, and erases it only when told to', async () => {
    const { run, open } = await store()
    const day = 86_400_000
    const make = async (id: string, days: number, more: object = {}, facts: object = {}) => {
      const row = { updatedAt: Date.now() - days * day, title: `of ${id}`, ...more }
      await opened.append(id, [creation(id, row, { facts: { ...facts } })], {})
    }
    const opened = await open()
    await make('old', 100)
    await make('archived', 100, { archived: true })
    await make('young', 10)
    await make('waiting', 100, { status: 'waiting' })
    await make('running', 100, {}, { active: 'r' })
    await opened.close()
    const dry = await run(prune, '--older-than', '90d')
    expect(
      dry.said
        .slice(0, -1)
        .map((line) => line.split(' ')[0])
        .sort(),
    ).toEqual(['archived', 'old', 'running'])
    expect(dry.said.at(-1)).toMatch(/^3 threads untouched since .* Add --erase/)
    const some = await run(prune, '--older-than', '2160h', '--archived', '--erase')
    expect(some.said.at(-1)).toMatch(/^1 thread erased/)
    const rest = await run(prune, '--older-than', '12w', '--erase')
    expect(rest.said.at(-1)).toMatch(/^1 thread erased/) // the one whose run goes on stays
    const again = await open()
    const { rows } = await again.threads({ tenant: 'acme', owner: 'ann', limit: 9 })
    expect(rows.map(({ threadId }) => threadId).sort()).toEqual(['running', 'waiting', 'young'])
    await again.close()
  })

  test('wants an age it can read', async () => {
    const { run } = await store()
    for (const args of [[], ['--older-than', 'soon'], ['--older-than', '90'], ['--sooner']])
      await expect(run(prune, ...args)).rejects.toThrow(/older-than|--sooner/)
  })
})

test('migrate says what it did', async () => {
  const { run, open } = place()
  const first = await run(migrateDatabase)
  const names = [
    '001-journal',
    '002-inbox',
    '003-residues',
    '004-said',
    '005-settled',
    '006-edited',
  ]
  const applied = names.map((name) => `applied ${name}`)
  expect(first.said).toEqual([...applied, expect.stringMatching(/is at version 6\.$/)])
  expect((await run(migrateDatabase)).said).toHaveLength(1)
  const store = await open()
  await store.append('t', [creation('t'), saying('t', 'some words')], {})
  await store.close()
  expect((await run(migrateDatabase)).said[0]).toBe('What was said so far can be searched.')
  expect((await run(migrateDatabase)).said).toHaveLength(1)
  const { run: without } = place({ DATABASE_URL: '' })
  await expect(without(migrateDatabase)).rejects.toThrow(/DATABASE_URL is not set/)
})

test('the program knows its commands and says so', async () => {
  const main = join(import.meta.dirname, '../main.ts')
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', main, ...args]).catch(
      (error: { stdout: string; stderr: string }) => error,
    )
  const help = await run('--help')
  expect(help.stdout).toMatch(/handrail import <directory>/)
  const unknown = await run('toString')
  expect(unknown.stderr).toMatch(/^Handrail cannot go on: There is no command toString/)
  expect(help.stdout).toMatch(/PORT .*HANDRAIL_CONFIG/)
  expect((await run('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  const options = await run('serve', '--port', '3')
  expect(options.stderr).toMatch(
    /^Handrail cannot go on: serve does not know --port.*PORT=8000.*\n$/,
  )
})
