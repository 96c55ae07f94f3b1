import type { RedisServer } from '../test/support/redis.ts'
import { join, start } from './cluster-client.ts'
import { type Measured, median, percent, us } from './support.ts'

export const streams = 20
export const deltas = 2_000

export interface Stage {
  servers: Measured[]
  redis: RedisServer
}

/** Where stream n is driven and read: numbers of servers. */
interface Spread {
  label: string
  servers: number
  drivenOn: (n: number) => number
  readOn: (n: number) => number[]
}

export const spreads: Spread[] = [
  { label: '1 server', servers: 1, drivenOn: () => 0, readOn: () => [0] },
  {
    label: '2: driven on one, read on the other',
    servers: 2,
    drivenOn: () => 0,
    readOn: () => [1],
  },
  {
    label: '2: each drives for the other',
    servers: 2,
    drivenOn: (n) => n % 2,
    readOn: (n) => [(n + 1) % 2],
  },
  { label: '3: driven on one, read on two', servers: 3, drivenOn: () => 0, readOn: () => [1, 2] },
  {
    label: '3: each drives for the next',
    servers: 3,
    drivenOn: (n) => n % 3,
    readOn: (n) => [(n + 1) % 3],
  },
]

/** Streams whose readers are there before the first delta comes. */
export async function streaming({ servers, redis }: Stage, spread: Spread): Promise<string[]> {
  const round = async (count: number, wait: number) => {
    const before = await usages(servers, redis)
    const read = Array.from({ length: streams }, async (_, n) => {
      const run = await start(servers[spread.drivenOn(n)]!, `deltas ${count} 16 ${wait}`)
      const readers = await Promise.all(spread.readOn(n).map((i) => join(servers[i]!, run)))
      run.leave()
      return await Promise.all(readers.map((reader) => reader.all))
    })
    const heard = (await Promise.all(read)).flat()
    const came = heard.reduce((sum, { pieces }) => sum + pieces, 0) / heard.length / count
    const begun = heard.map(({ first }) => first).filter((at) => at > 0) // some may have had no delta
    const took = Math.max(...heard.map(({ end }) => end)) - Math.min(...begun)
    const after = await usages(servers, redis)
    const total = streams * count
    return {
      came,
      rate: (total * came) / took,
      cpu: after.map((one, i) => (one - before[i]!) / total),
    }
  }
  progress(spread.label)
  for (let warm = 0; warm < 2; warm++) await round(deltas, 500)
  const rounds = [await round(deltas, 700), await round(deltas, 700), await round(deltas, 700)]
  const cpu = (i: number) => median(rounds.map((one) => one.cpu[i]!))
  const all = servers.map((_, i) => cpu(i))
  return [
    spread.label,
    `${median(rounds.map(({ rate }) => rate)).toFixed(0)} k`,
    percent(median(rounds.map(({ came }) => came))),
    ...[0, 1, 2].map((i) => (all[i] === undefined ? '' : us(all[i]))),
    us(cpu(servers.length)),
  ]
}

/** Microseconds so far: of each server, then of Redis. */
async function usages(servers: readonly Measured[], redis: RedisServer): Promise<number[]> {
  const all = await Promise.all(servers.map(async (server) => (await server.usage()).cpu))
  const info = await redis.command('INFO', 'cpu')
  const of = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)![1])
  return [...all, (of('used_cpu_sys') + of('used_cpu_user')) * 1e6]
}

export const peakOf = async (redis: RedisServer) =>
  Number(/used_memory_peak:(\d+)/.exec(await redis.command('INFO', 'memory'))![1])

export const progress = (what: string) => void process.stderr.write(`cluster: ${what} ...\n`)
