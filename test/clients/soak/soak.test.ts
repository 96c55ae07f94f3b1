import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test, vi } from 'vitest'
import { type Random, randomFrom } from '../../crash/random.ts'
import { temporaryDirectory } from '../../support/server.ts'
import { Host, portFor } from './host.ts'
import { lifeFrom, withoutNumbers } from './lives.ts'
import { Visitor } from './visitor.ts'

/** Always the same in CI; `HANDRAIL_SEED=random` looks elsewhere. */
const asked = process.env.HANDRAIL_SEED ?? '2026'
const seed = asked === 'random' ? Date.now() % 1_000_000 : Number(asked)
const threads = Number(process.env.HANDRAIL_SOAK_THREADS ?? 200)
/** Threads at work at the same time. */
const width = Math.min(threads, 40)
const kills = 3

const random = randomFrom(seed)
const lives = Array.from({ length: Math.min(threads, 40) }, () => lifeFrom(random))
const lifeOf = (thread: number) => lives[thread % lives.length]!
const turns = Array.from({ length: threads }, (_, n) => lifeOf(n).length).reduce((a, b) => a + b)

const hosts: Host[] = []
afterAll(async () => {
  for (const host of hosts) await host.end()
})

test(`${threads} threads, broken lines, a server killed ${kills} times: nothing is lost or twice (seed ${seed})`, async () => {
  for (const method of ['error', 'warn'] as const) {
    vi.spyOn(console, method).mockImplementation(() => {}) // clients print every cut
  }
  const directory = await temporaryDirectory()
  const since = Date.now()
  const about = () => `seed ${seed}, ${((Date.now() - since) / 1_000).toFixed(1)} s`
  const calm = await newHost(`${directory.path}/calm`, 0)
  const calmly = lives.map((_, n) => new Visitor(calm, n))
  await atOnce(calmly, (visitor, n) => visitor.live(lifeOf(n)))
  const calmMarks = marksByThread(calm)
  await calm.end()
  console.log(`${about()}: ${lives.length} lives were lived in peace`)

  const host = await newHost(`${directory.path}/soak`, 1)
  let done = 0
  const visitors = Array.from(
    { length: threads },
    (_, n) => new Visitor(host, n, randomFrom(seed * 1_000 + n)),
  )
  const killing = killThrice(host, () => done, randomFrom(seed + 1))
  await Promise.race([
    atOnce(visitors, (visitor, n) => visitor.live(lifeOf(n), () => done++)),
    killing.then(() => new Promise<never>(() => {})), // it may only fail
  ])
  const killed = await killing
  console.log(`${about()}: killed ${killed.join(', ')}; ${JSON.stringify(sum(visitors))}`)

  const problems = visitors.flatMap((visitor) => visitor.problems)
  const marks = marksByThread(host)
  await atOnce(visitors, async (visitor, n) => {
    const differs = (what: string, is: string[] = [], be: string[] = []) => {
      const at = is.findIndex((line, i) => line !== be[i])
      if (at < 0 && is.length === be.length) return
      const from = at < 0 ? is.length : at
      const both = [is, be].map((lines) => lines.slice(from, from + 3).join('\n  '))
      const told = `${what}, from line ${from}:\n  ${both.join('\nand should be\n  ')}`
      const trail = visitor.trail.splice(0).join('\n  ') // told once
      problems.push(`${visitor.threadId} ${told}\nafter\n  ${trail}`)
    }
    const peaceful = calmly[n % lives.length]!
    const held = visitor.shown()
    const fresh = new Visitor(host, n)
    await fresh.open(n % 4 === 0 ? 'core' : 'http')
    await fresh.connect()
    differs('a fresh page shows', fresh.shown(), peaceful.shown())
    differs('it held in the end', held, fresh.shown())
    await visitor.connect()
    differs('it shows when connected again', visitor.shown(), fresh.shown())
    differs('outside was done', marks.get(n), calmMarks.get(n % lives.length))
  })
  await host.end()
  problems.push(...host.errors, ...calm.errors)
  const effects = host.marks().map(({ effectId }) => effectId)
  expect(new Set(effects).size, 'an effect has one id').toBe(effects.length)
  console.log(`${about()}: ${problems.length} problems`)
  expect(problems, `data is kept in ${directory.path}`).toEqual([])
  await directory.remove()
})

async function newHost(path: string, n: number): Promise<Host> {
  const host = new Host(path, portFor(n))
  hosts.push(host)
  await host.begin()
  return host
}

/** At moments of the work, not of the clock; every other one while something is done outside. */
async function killThrice(host: Host, done: () => number, random: Random): Promise<string[]> {
  const killed: string[] = []
  for (let k = 1; k <= kills; k++) {
    const moment = (turns * (k - 0.4 + random.below(30) / 100)) / (kills + 0.5)
    while (done() < moment) await sleep(5)
    const before = host.marks().length
    const until = Date.now() + 1_000
    while (k % 2 === 1 && host.marks().length === before && Date.now() < until) await sleep(1)
    killed.push(`after ${done()} of ${turns} turns`)
    await host.die(random.below(300))
  }
  return killed
}

async function atOnce(visitors: Visitor[], act: (visitor: Visitor, n: number) => Promise<void>) {
  const rest = visitors.entries()
  const some = Array.from({ length: width }, async () => {
    for (const [n, visitor] of rest) await act(visitor, n)
  })
  await Promise.all(some)
}

/** What was done outside for each thread, in an order that is not that of time. */
function marksByThread(host: Host): Map<number, string[]> {
  const found = new Map<number, string[]>()
  for (const { tool, what } of host.marks()) {
    const thread = Number(/^t(\d+)\./.exec(what)?.[1])
    const list = found.get(thread) ?? []
    found.set(thread, [...list, `${tool} ${withoutNumbers(what)}`].sort())
  }
  return found
}

function sum(visitors: readonly Visitor[]): Record<string, number> {
  const total: Record<string, number> = {}
  for (const { tally } of visitors) {
    for (const [name, count] of Object.entries(tally)) total[name] = (total[name] ?? 0) + count
  }
  return total
}
