import { join } from 'node:path'
import type { FindQuery, NewEntry, Store } from '../src/core/store.ts'
import { systemClock } from '../src/lib/clock.ts'
import { fileStore } from '../src/stores/file/store.ts'
import { sweepOnce } from '../src/stores/postgres/catch-up.ts'
import { defaultSchema, postgresStore } from '../src/stores/postgres/store.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { median, ms, quantile, quickest, table, withDirectory } from './support.ts'

const threads = 1_000
const messages = 100
const rounds = 50
const names = { tenant: 'acme', owner: 'ann' }

/** Words of an owner with 100,000 messages: in memory or in Postgres, after a start, and for the first time. */
export async function search(): Promise<void> {
  const rows: string[][] = []
  await withDirectory(async (directory) => {
    const fs = { sync: async () => {} } // how soon they are written is not the question
    const path = join(directory, 'data')
    const open = () => fileStore({ directory: path, clock: systemClock, fs, patience: 600_000 })
    let store = await open()
    await fill(store)
    await store.close()
    store = await open()
    const first = await time(() => store.find({ ...names, words: ['absent'], limit: 10 }))
    await store.close()
    store = await open()
    const cold = await time(() => store.find({ ...names, words: ['absent'], limit: 10 }))
    rows.push(...(await measure('files', store)))
    rows.push(['files', 'the first search ever', ms(first), ''])
    rows.push(['files', 'the first one after a start', ms(cold), ''])
    await store.close()
  }, quickest)
  const server = await startPostgres('fsync = off')
  try {
    const store = await postgresStore({ url: server.url })
    await fill(store)
    const first = await time(() => sweepOnce(server.url, defaultSchema))
    rows.push(...(await measure('Postgres', store)))
    rows.push(['Postgres', 'the first sweep', ms(first), ''])
    await store.close()
  } finally {
    await server.stop()
  }
  table(
    `15. Search: ${(threads * messages).toLocaleString('en')} messages of one owner in ${threads} threads, 10 hits`,
    [['', 'words', 'p50', 'p95'], ...rows],
    ['Files come from the page cache; Postgres and its client are on this machine.'],
  )
}

async function measure(label: string, store: Store): Promise<string[][]> {
  const rows: string[][] = []
  for (const [name, words] of [
    ['in one message', (n: number) => [`only${n * 1_999}`]],
    ['in one thread in fifty', () => ['ACC-007']],
    ['in every message', () => ['said']],
    ['two, together in one message', (n: number) => ['said', `only${n * 1_999}`]],
    ['nowhere', () => ['absent']],
    ['in one message, after another was said', (n: number) => [`only${n * 1_999}`], true],
  ] as [string, (n: number) => string[], boolean?][]) {
    const took: number[] = []
    for (let n = 0; n < rounds; n++) {
      if (name.endsWith('said')) await store.append('t7', [message('t7', 1_000_000 + n)], {})
      const query: FindQuery = { ...names, words: words(n), limit: 10 }
      const since = performance.now()
      const { rows: found, cut } = await store.find(query)
      took.push(performance.now() - since)
      if (cut || found.length > 0 === (name === 'nowhere')) throw new Error(`${name}: not so`)
    }
    rows.push([label, name, ms(median(took)), ms(quantile(took, 0.95))])
  }
  return rows
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now()
  await work()
  return performance.now() - since
}

async function fill(store: Store): Promise<void> {
  for (let from = 0; from < threads; from += 50)
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const id = `t${from + i}`
        const said = Array.from({ length: messages }, (_, n) =>
          message(id, (from + i) * messages + n),
        )
        await store.append(id, [created(id), ...said], {})
      }),
    )
}

const base = (threadId: string, id: string, at: number) => ({
  ...({ v: 1, id, threadId, tx: 'tx', at, fence: 0, digest: 'd'.repeat(64) } as const),
  actor: { type: 'user', id: 'ann' } as const,
})

function created(threadId: string): NewEntry {
  const row = { ...names, threadId, clientId: threadId, agent: 'default', title: null }
  const times = { createdAt: 0, updatedAt: 0, archived: false, status: 'idle', leg: null } as const
  const marks = { thread: { ...row, ...times } }
  return { ...base(threadId, `${threadId}-0`, 0), kind: 'thread.created', body: '{}', marks }
}

/** Sixty words, most of them from two thousand, as often as words are: few often, many seldom. */
function message(threadId: string, n: number): NewEntry {
  const words = Array.from({ length: 60 }, (_, i) => {
    const random = Math.abs(Math.sin(n * 61 + i) * 1e4) % 1
    return `word${Math.floor(random ** 3 * 2_000)}`
  })
  const about = n % 5_000 < messages && n % 10 === 0 ? 'ACC-007' : 'ACC-008'
  const text = `What was said of ${about}, only${n}: ${words.join(' ')}.`
  const said = { id: `m${n}`, role: 'user', parts: [{ type: 'text', text }] }
  const body = JSON.stringify({ message: said, for: 'both' })
  const marks = { thread: { updatedAt: n } }
  return { ...base(threadId, `e${n}`, n), kind: 'message.added', body, marks }
}
