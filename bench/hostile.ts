import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { attacks, attempt, sender } from './attacks.ts'
import {
  handrail,
  here,
  type Measured,
  mb,
  median,
  ms,
  quantile,
  quiet,
  sleep,
  table,
  times,
  type Usage,
  withDirectory,
} from './support.ts'

const victim = 'victim-key-0123456789'
const attacker = 'attacker-key-0123456789'
const seconds = Number(process.env.BENCH_SECONDS ?? 60)
const warmUp = 10
/** Repetitions of each attack sent alone. */
const tries = 5
/** Requests that the attacker has under way. */
const atOnce = 8
/** First token at p99 relative to the idle server, and RSS in the last third of the attack relative to its middle third. */
const target = { p99: 3, memory: 1.25 }

interface Window {
  first: number[]
  lag: NonNullable<Usage['lag']>
  /** Once a second. */
  rss: number[]
}

/** What one tenant notices while another one sends the worst requests there are. */
export async function hostile(): Promise<void> {
  await withDirectory(async (directory) => {
    const server = await handrail(directory, {
      HANDRAIL_API_KEYS: `${victim}=good/ann,${attacker}=bad/eve`,
      HANDRAIL_CLIENT_KEYS: 'on',
      HANDRAIL_CACHE_BYTES: String(64 * 2 ** 20), // full within seconds, so that growth after that is a leak
      BENCH_LAG: '1',
    })
    await underAttack(server, warmUp) // loads what is loaded with the first request of its kind
    await server.usage('collect')
    const idle = await watch(server, (n) => n < 1_000)
    const { window: busy, outcomes } = await underAttack(server, seconds)
    await sleep(5_000)
    const after = server.running() ? await server.usage('collect') : undefined
    report(idle, busy, after?.rss, outcomes)
    if (server.running()) await oneByOne(server)
    if (server.running()) await server.stop()
  })
}

/** Sends each attack alone, `tries` times, and prints how long it blocked the event loop of a warm server. */
async function oneByOne(server: Measured): Promise<void> {
  const send = sender(server.url, attacker)
  const rows: string[][] = []
  for (const attack of attacks) {
    const longest: number[] = []
    let status = 0
    for (let n = 0; n < tries; n++) {
      await quiet(server)
      await server.usage('lag')
      status = await attempt(attack, send)
      await sleep(100) // the end of the run, after the response
      longest.push((await server.usage()).lag!.max)
    }
    rows.push([attack.name, String(status), ms(median(longest)), ms(Math.max(...longest))])
  }
  table(
    `16b. Event loop blocked by one request at a time, ${tries} tries each (limit: 50 ms)`,
    [['request', 'status', 'median', 'most'], ...rows],
    ['Each time includes the 5 ms between two samples and pauses of garbage collection.'],
  )
}

async function underAttack(server: Measured, seconds: number) {
  const env = { HOSTILE: JSON.stringify({ url: server.url, key: attacker, seconds, atOnce }) }
  const child = fork(here('./hostile-client.ts'), {
    execArgv: ['--import', 'tsx'],
    env: { PATH: process.env.PATH, ...env },
  })
  setPriority(child.pid!, 10) // on few cores, making the requests must not delay the server
  let ended = false
  const outcomes = once(child, 'message').then(([list]) => list as [string, number][])
  const exited = once(child, 'exit').then(() => {
    ended = true
  })
  const window = await watch(server, () => !ended && server.running())
  await exited
  return { window, outcomes: await outcomes }
}

/** The time to the first token, one run after the other, and how late the event loop was meanwhile. */
async function watch(server: Measured, more: (runs: number) => boolean): Promise<Window> {
  const first: number[] = []
  const rss: number[] = []
  let last = await server.usage('lag')
  let asked = performance.now()
  while (more(first.length)) {
    first.push(await firstToken(server).catch(() => Number.POSITIVE_INFINITY))
    await sleep(10)
    if (performance.now() - asked < 1_000 || !server.running()) continue
    asked = performance.now()
    last = await server.usage()
    rss.push(last.rss)
  }
  if (server.running()) last = await server.usage()
  return { first, lag: last.lag!, rss: [...rss, last.rss] }
}

let chats = 0

async function firstToken(server: Measured): Promise<number> {
  const since = performance.now()
  const response = await fetch(`${server.url}/chats/chat-${++chats}/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': victim },
    body: JSON.stringify({ user_message: 'deltas 3 1' }),
    signal: AbortSignal.timeout(60_000),
  })
  let text = ''
  let took: number | undefined
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString()
    if (took === undefined && text.includes('answer_delta')) took = performance.now() - since
  }
  if (took === undefined) throw new Error(`no token: ${response.status} ${text.slice(0, 200)}`)
  return took
}

/** Compares averages, because a single sample of RSS depends on when the garbage collector ran last. */
function growthOf(rss: readonly number[]): number {
  const third = Math.floor(rss.length / 3)
  const sum = (list: readonly number[]) => list.reduce((total, bytes) => total + bytes, 0)
  return sum(rss.slice(-third)) / sum(rss.slice(-2 * third, -third))
}

function report(
  idle: Window,
  busy: Window,
  after: number | undefined,
  outcomes: readonly [string, number][],
): void {
  const row = (name: string, { first, lag, rss }: Window) => [
    ...[name, String(first.length), ms(median(first)), ms(quantile(first, 0.99))],
    ...[ms(lag.p50), ms(lag.p99), ms(lag.max), mb(Math.max(...rss))],
  ]
  const ratio = quantile(busy.first, 0.99) / quantile(idle.first, 0.99)
  const growth = growthOf(busy.rss)
  const restarts = after === undefined ? 1 : 0
  const met = ratio <= target.p99 && growth <= target.memory && restarts === 0
  const left = after === undefined ? 'none' : mb(after)
  table(
    `16. Another tenant's runs while one key sends the worst requests for ${seconds} s, ${atOnce} at once`,
    [
      ['', 'runs', 'first token p50', 'p99', 'loop late p50', 'p99', 'most', 'RSS at most'],
      row('idle', idle),
      row('attacked', busy),
    ],
    [
      `p99 of the first token: ${times(ratio)} of idle (target: at most ${target.p99}x). Restarts: ${restarts} (target: 0).`,
      `RSS in the last third of the attack: ${times(growth)} of the middle third (target: at most ${target.memory}x); afterwards, collected: ${left}.`,
      `Target ${met ? 'met' : 'NOT met'}. What the attacker got:`,
      ...[...outcomes].sort().map(([what, count]) => `  ${count.toLocaleString('en')} x ${what}`),
    ],
  )
}
