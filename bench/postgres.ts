import type { NewEntry, Store } from '../src/core/store.ts'
import { systemClock } from '../src/lib/clock.ts'
import { fileStore } from '../src/stores/file/store.ts'
import { postgresStore } from '../src/stores/postgres/store.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { median, ms, quantile, table, withDirectory } from './support.ts'

const inFlight = [1, 8, 64]
const seconds = 3

/** What a transition costs: two entries with their marks and a guard, as a driver writes them. */
export async function postgres(): Promise<void> {
  const rows: string[][] = []
  for (const [label, settings] of [
    ['Postgres, fsync', ''],
    ['Postgres, no fsync', 'fsync = off\nsynchronous_commit = off'],
  ] as const) {
    const server = await startPostgres(settings)
    try {
      const store = await postgresStore({ url: server.url })
      rows.push([label, ...(await measure(store))])
      await store.close()
    } finally {
      await server.stop()
    }
  }
  await withDirectory(async (directory) => {
    const store = await fileStore({ directory, clock: systemClock })
    rows.push(['files', ...(await measure(store))])
    await store.close()
  })
  table(
    '8. Transitions on Postgres (two entries, marks, a guard; server and client on this machine)',
    [['', ...inFlight.map((n) => `${n} in flight`), 'append p50', 'p99'], ...rows],
    ['Transitions per second, each on a thread of its own; latency with one in flight.'],
  )
}

async function measure(store: Store): Promise<string[]> {
  const rates: string[] = []
  await rate(store, 'warm', 8)
  let took: number[] = []
  for (const n of inFlight) {
    const found = await rate(store, `n${n}`, n)
    rates.push(String(Math.round(found.length / seconds)))
    if (n === 1) took = found
  }
  return [...rates, ms(median(took)), ms(quantile(took, 0.99))]
}

/** Milliseconds of each transition. */
async function rate(store: Store, name: string, width: number): Promise<number[]> {
  const took: number[] = []
  const until = performance.now() + seconds * 1000
  await Promise.all(
    Array.from({ length: width }, async (_, i) => {
      const threadId = `${name}-${i}`
      await store.append(threadId, [created(threadId)], {})
      const { fence } = (await store.claim(threadId, 'bench', 60_000))!
      for (let n = 0; performance.now() < until; n++) {
        const since = performance.now()
        const expect = [{ fact: 'run:r', not: 'cancelling' }]
        await store.append(threadId, step(threadId, n, fence), { fence, expect })
        took.push(performance.now() - since)
      }
    }),
  )
  return took
}

const base = (threadId: string) => ({
  ...({ v: 1, threadId, tx: 'tx_01m7x0000000000000000000', at: Date.now(), fence: 0 } as const),
  ...{ actor: { type: 'agent', id: 'assistant' } as const, digest: 'd'.repeat(64) },
})

function created(threadId: string): NewEntry {
  const at = Date.now()
  const names = { tenant: 'default', owner: 'local', clientId: threadId, agent: 'assistant' }
  const row = { ...names, threadId, title: null, createdAt: at, updatedAt: at, archived: false }
  const thread = { ...row, status: 'running', leg: 'l' } as const
  const marks = { thread, facts: { 'run:r': 'running' } }
  return { ...base(threadId), id: `${threadId}-0`, kind: 'thread.created', body: '{}', marks }
}

function step(threadId: string, n: number, fence: number): NewEntry[] {
  const message = {
    id: `m_${n}`,
    role: 'assistant',
    parts: [{ type: 'text', text: 'w '.repeat(100) }],
  }
  const common = { ...base(threadId), fence, runId: 'r', legId: 'l' }
  const effectId = `effect_${n}`
  return [
    {
      ...{ ...common, id: `${threadId}-${n}-a`, kind: 'message.added' },
      body: JSON.stringify({ message, for: 'both' }),
      marks: { thread: { updatedAt: Date.now() } },
    },
    {
      ...{ ...common, id: `${threadId}-${n}-b`, kind: 'effect.intended' },
      body: JSON.stringify({ effectId, effect: 'tool', name: 'look', key: 'k', attempt: 1 }),
      marks: { facts: { [`effect:${effectId}`]: 'intended' } },
    },
  ]
}
