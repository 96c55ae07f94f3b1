import { join as pathOf } from 'node:path'
import { startPostgres } from '../test/support/postgres.ts'
import { startRedis } from '../test/support/redis.ts'
import { join, start } from './cluster-client.ts'
import {
  deltas,
  peakOf,
  progress,
  type Stage,
  spreads,
  streaming,
  streams,
} from './cluster-streams.ts'
import {
  handrail,
  type Measured,
  mb,
  median,
  ms,
  play,
  quantile,
  sleep,
  table,
  withDirectory,
} from './support.ts'

const firsts = 150

/** Real servers on one Postgres, which syncs, and one Redis: what goes between them, and what it costs. */
export async function cluster(): Promise<void> {
  await withDirectory(async (directory) => {
    const alone = await handrail(pathOf(directory, 'alone'))
    const files = await firstDeltas(alone, 'one server, files')
    await alone.stop()
    const postgres = await startPostgres('')
    const redis = await startRedis()
    const servers: Measured[] = []
    const rates: string[][] = []
    const runs: string[][] = []
    let shared: number[] = []
    try {
      for (const count of [1, 2, 3]) {
        const env = { DATABASE_URL: postgres.url, REDIS_URL: redis.url }
        servers.push(await handrail(pathOf(directory, String(count)), env))
        const stage = { servers, redis }
        if (count === 1) shared = await firstDeltas(servers[0]!, 'one server, Postgres and Redis')
        for (const spread of spreads.filter((one) => one.servers === count))
          rates.push(await streaming(stage, spread))
        runs.push(await shortRuns(stage))
      }
      const late = await lateness(servers[0]!, servers[1]!)
      printRates(rates, await peakOf(redis))
      printRuns(runs)
      printFirsts(files, shared, late)
    } finally {
      for (const server of servers) await server.stop()
      await redis.stop()
      await postgres.stop()
    }
  })
}

/** Whole runs, each on a chat of its own, many at once. */
async function shortRuns({ servers }: Stage): Promise<string[]> {
  const label = servers.length === 1 ? '1 server' : `${servers.length} servers`
  progress(`${label}, short runs`)
  const took: number[] = []
  let n = 0
  const until = performance.now() + 6_000
  const since = performance.now()
  await Promise.all(
    Array.from({ length: 24 }, async (_, i) => {
      while (performance.now() < until) {
        const begun = performance.now()
        const { url } = servers[i % servers.length]!
        await play(`${url}/chats/run-${servers.length}-${++n}/interactions`, 'deltas 20 16')
        took.push(performance.now() - begun)
      }
    }),
  )
  const rate = (took.length / (performance.now() - since)) * 1_000
  return [label, rate.toFixed(0), ms(median(took)), ms(quantile(took, 0.95))]
}

/** Milliseconds from the request to the first delta, one run at a time, each on a new chat. */
async function firstDeltas(server: Measured, label: string): Promise<number[]> {
  progress(`first delta, ${label}`)
  const found: number[] = []
  for (let n = 0; n < firsts + 50; n++) {
    const run = await start(server, 'deltas 5 1')
    const { first } = await run.all
    if (n >= 50) found.push(first - run.since)
  }
  return found
}

/** Milliseconds by which a reader on another server has the first delta later than one on the driver's. */
async function lateness(driver: Measured, other: Measured): Promise<number[]> {
  progress('first delta, on another server')
  const found: number[] = []
  for (let n = 0; n < firsts + 20; n++) {
    const run = await start(driver, 'deltas 5 1 60')
    const [there, here] = [await join(other, run), run]
    const [late, soon] = await Promise.all([there.all, here.all])
    if (n >= 20) found.push(late.first - soon.first)
    await sleep(2)
  }
  return found
}

function printRates(rows: string[][], peak: number): void {
  table(
    `9. ${streams} streams of ${deltas.toLocaleString('en')} deltas, between servers through Redis`,
    [['', 'deltas/s', 'came', 'cpu server 1', 'server 2', 'server 3', 'Redis'], ...rows],
    [
      'deltas/s: from the first delta that a reader had until all readers had all, each delta counted once',
      'however many read it. came: what came as deltas; of the rest the reader had the finished message',
      'first. cpu: per delta, with the durable run around it. Servers, Redis, Postgres and readers share',
      `this machine. Redis needed ${mb(peak)} at most. Medians of three.`,
    ],
  )
}

function printRuns(rows: string[][]): void {
  table(
    '10. Whole runs on Postgres that syncs (20 deltas each, a new chat each, 24 at once)',
    [['', 'runs/s', 'p50', 'p95'], ...rows],
    ['From the request to the end of the stream; all on this machine.'],
  )
}

function printFirsts(files: number[], shared: number[], late: number[]): void {
  const row = (label: string, found: number[], more: string[]) => [
    ...[label, ms(median(found)), ms(quantile(found, 0.95))],
    ...more,
  ]
  const extra = [0.5, 0.95].map((q) => ms(quantile(shared, q) - quantile(files, q)))
  table(
    '11. The first delta (one run at a time, a new chat each, a model that does not wait)',
    [
      ['', 'p50', 'p95', 'extra p50', 'extra p95'],
      row('one server, files', files, ['', '']),
      row('the same server, Postgres and Redis', shared, extra),
      ['a reader on another server', '', '', ms(median(late)), ms(quantile(late, 0.95))],
    ],
    [
      'From the request to the first delta at the client. The last row: how much later than a reader on',
      'the server that drives, of the same run.',
    ],
  )
}
