import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { bullmqQueue } from '../src/queue/bullmq/queue.ts'
import { startRedis } from '../test/support/redis.ts'
import type { Report, Task } from './redis-server.ts'
import { median, ms, quantile, sleep, table, us } from './support.ts'

const file = fileURLToPath(new URL('./redis-server.ts', import.meta.url))

interface Case extends Omit<Task, 'round'> {
  label: string
  repeats: number
}

const cases: Case[] = [
  { label: '1 stream, 16 a turn', threads: 1, pieces: 60_000, burst: 16, repeats: 3 },
  { label: '1 stream, 1 a turn', threads: 1, pieces: 20_000, burst: 1, repeats: 3 },
  { label: '50 streams, 1 a turn each', threads: 50, pieces: 1_000, burst: 1, repeats: 3 },
  { label: '50 streams, one every 5 ms', threads: 50, pieces: 400, burst: 0, repeats: 1 },
  { label: '1 stream, one every 5 ms', threads: 1, pieces: 1_000, burst: 0, repeats: 1 },
]

/** Deltas from the server that drives to others, by a real Redis; every server a process of its own. */
export async function redis(): Promise<void> {
  const server = await startRedis()
  const writer = await start('writer', server.url, 'w')
  const readers: ChildProcess[] = []
  const rows: string[][] = []
  let round = 0
  for (const count of [1, 2, 3]) {
    readers.push(await start('reader', server.url, `r${count}`))
    for (const one of cases) {
      const results: Awaited<ReturnType<typeof play>>[] = []
      await play(writer, readers, { ...one, pieces: 500, round: ++round }) // warm
      for (let n = 0; n < one.repeats; n++) {
        const cpu = await cpuOf(server)
        const result = await play(writer, readers, { ...one, round: ++round })
        results.push({ ...result, redis: (await cpuOf(server)) - cpu })
      }
      const total = one.threads * one.pieces
      const each = (pick: (result: (typeof results)[0]) => number) => median(results.map(pick))
      const late = results.flatMap((result) => result.late)
      rows.push([
        `${count} reading, ${one.label}`,
        one.burst > 0 ? `${Math.round(each(({ took }) => total / took))} k` : '',
        us(each(({ writer }) => writer / total)),
        us(each(({ reader }) => reader / total)),
        us(each(({ redis }) => redis / total)),
        ms(quantile(late, 0.5)),
        ms(quantile(late, 0.99)),
      ])
    }
  }
  for (const child of [writer, ...readers]) child.disconnect()
  const rings = await ringing(server.url)
  await server.stop()
  table(
    'Deltas from the driving server to readers on other servers, through Redis',
    [['', 'deltas/s', 'cpu writer', 'cpu reader', 'cpu Redis', 'late p50', 'late p99'], ...rows],
    [
      'deltas/s: written until every reader had all; cpu: per delta, of the writer, of one reader, of',
      'Redis; late: from the push to the reader woken, where written as fast as can be mostly a queue.',
      `A ring by BullMQ is looked at by another server after ${rings}.`,
    ],
  )
}

/** From a ring on one server to the look on another. */
async function ringing(url: string): Promise<string> {
  const log = { info: () => {}, warn: () => {} }
  const [here, there] = [await bullmqQueue({ url, log }), await bullmqQueue({ url, log })]
  const stop = new AbortController()
  let looked = () => {}
  const served = there.serve(async () => looked(), stop.signal)
  const late: number[] = []
  for (let n = 0; n < 600; n++) {
    const since = performance.now()
    await new Promise<void>((resolve) => {
      looked = resolve
      here.ring(`thread_${n}`)
    })
    if (n >= 100) late.push(performance.now() - since)
    await sleep(2)
  }
  stop.abort()
  await served
  await Promise.all([here.close(), there.close()])
  return `${ms(quantile(late, 0.5))} (p50), ${ms(quantile(late, 0.99))} (p99)`
}

async function play(writer: ChildProcess, readers: readonly ChildProcess[], task: Task) {
  const ready = readers.map((child) => report(child, 'ready'))
  for (const child of readers) child.send(task)
  await Promise.all(ready)
  await sleep(50)
  const since = performance.now()
  const read = readers.map((child) => report(child, 'done'))
  const written = report(writer, 'done')
  writer.send(task)
  const seen = await Promise.all(read)
  const took = performance.now() - since
  const { cpu } = await written
  await sleep(20)
  return {
    took,
    writer: cpu,
    reader: median(seen.map((one) => one.cpu)),
    redis: 0,
    late: seen.flatMap((one) => one.late),
  }
}

type Done = Extract<Report, { type: 'done' }>

async function report(child: ChildProcess, type: Report['type']): Promise<Done> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [Report]
    if (message.type === type) return message as Done
  }
}

async function start(role: string, url: string, id: string): Promise<ChildProcess> {
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const
  const child = spawn(process.execPath, ['--import', 'tsx', file, role, url, id], {
    stdio: [...stdio],
  })
  await report(child, 'ready')
  return child
}

/** Microseconds of CPU that Redis has used. */
async function cpuOf(server: Awaited<ReturnType<typeof startRedis>>): Promise<number> {
  const info = await server.command('INFO', 'cpu')
  const of = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)![1])
  return (of('used_cpu_sys') + of('used_cpu_user')) * 1e6
}
