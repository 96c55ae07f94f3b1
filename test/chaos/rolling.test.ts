import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkThreads, type Thread } from '../crash/checker.ts'
import { executions } from '../crash/outside.ts'
import { randomFrom } from '../crash/random.ts'
import { receivedBy } from '../support/record.ts'
import { balance } from './balancer.ts'
import { spread, tallyOf } from './figures.ts'
import { takeoversIn } from './takeovers.ts'
import { Visitor, walks, words } from './visitor.ts'
import { createWorld, journalOf, writeDown } from './world.ts'

const seed = Number(process.env.HANDRAIL_SEED ?? 2026)
const visitors = 10
const grace = 2_000

/** A lease much longer than the test: whoever waited for one to lapse would be found out. */
const environment = {
  ...{ HANDRAIL_LEASE_MS: '60000', HANDRAIL_DRAIN_MS: '5000' },
  HANDRAIL_GRACE_MS: String(grace),
}

test('a rollout under load: no interaction fails, no word is lost, nobody is told of it', async () => {
  const world = await createWorld(3, environment)
  const balancer = await balance(() => world.seats.flatMap(({ url }) => url ?? []))
  const over = new AbortController()
  const crowd = Array.from({ length: visitors }, (_, n) => {
    const says = n % 2 === 0 ? walks : words
    const who = { name: `v${n}`, numbers: n * 10_000, says }
    return new Visitor(balancer.url, randomFrom(seed * 100 + n), who)
  })
  const lives = Promise.all(crowd.map((visitor) => visitor.live(over.signal)))
  const stops: number[] = []
  for (const seat of world.seats) {
    await sleep(1_500)
    seat.busy = true
    stops.push(await seat.stop())
    await seat.begin()
    seat.busy = false
  }
  await sleep(1_000)
  over.abort()
  await lives
  await balancer.close()
  await Promise.all(world.seats.map((seat) => seat.stop()))
  const threads = await journalOf(world)
  const handovers = waitsIn(threads, 'handover')
  const diaries = crowd.map(({ diary }) => diary)
  const all = <T>(of: (diary: Visitor['diary']) => T[]) => diaries.flatMap(of)
  const waits = diaries.reduce((sum, { askedToWait }) => sum + askedToWait, 0)
  const stop = spread(stops.map((ms) => ms - grace))
  console.log(
    [
      `rollout (seed ${seed}): ${diaries.reduce((sum, { runs }) => sum + runs, 0)} interactions`,
      `${handovers.length} legs handed over: ${spread(handovers)}`,
      `to compare, legs of new runs began after: ${spread(waitsIn(threads, 'start'))}`,
      `stopping, besides ${grace} ms of grace: ${stop}`,
      `${all(({ gaps }) => gaps).length} streams came back: ${spread(all(({ gaps }) => gaps))}`,
      `${balancer.refused} connections refused, ${waits} times asked to wait`,
      `retracted: ${retractions(threads) || 'nothing'}`,
    ].join('\n'),
  )
  const told = { accepted: new Map(), answers: new Map(), deleted: new Set<string>() }
  const problems = [
    ...world.register.problems,
    ...balancer.failures,
    ...all(({ failures }) => failures),
    ...checkThreads(
      threads,
      world.outside,
      { ...told, numbers: new Map() },
      receivedBy(world.record),
    ),
  ]
  if (problems.length > 0) writeDown(world, threads, problems)
  await world.close(problems.length > 0)
  expect(problems, `logs are kept in ${world.directory}`).toEqual([])
  expect(takeoversIn(threads, world.register)).toEqual([])
  const effects = executions(world.outside).map(({ effectId }) => effectId)
  expect(effects.length).toBe(new Set(effects).size)
  expect(waits).toBe(0)
  expect(handovers.length).toBeGreaterThan(0)
  expect(Math.max(...handovers)).toBeLessThan(5_000)
})

/** Milliseconds from the moment that a leg was put in line to the moment that a server began it. */
function waitsIn(threads: Thread[], why: 'handover' | 'start'): number[] {
  return threads.flatMap(({ entries }) =>
    entries.flatMap((entry, n) => {
      if (entry.kind !== 'run.queued' || entry.body.why !== why) return []
      const next = entries
        .slice(n)
        .find((one) => one.kind === 'run.started' && one.runId === entry.runId)
      return [(next?.at ?? Number.POSITIVE_INFINITY) - entry.at]
    }),
  )
}

const retractions = (threads: Thread[]): string =>
  tallyOf(
    threads.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.kind === 'message.retracted' ? [entry.body.why] : [])),
    ),
  )
