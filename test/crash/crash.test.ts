import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { chatsClient } from '../support/chats.ts'
import { type OutsideRecord, startRecord } from '../support/record.ts'
import { temporaryDirectory } from '../support/server.ts'
import { check } from './checker.ts'
import { differences } from './differences.ts'
import { begin, type Place, placeIn, stopInTime, tryBegin } from './life.ts'
import { Person } from './person.ts'
import { type End, planOf, points, wishesFor } from './points.ts'
import { randomFrom } from './random.ts'

/** Always the same in CI; `HANDRAIL_SEED=random npm run test:crash` looks elsewhere. */
const asked = process.env.HANDRAIL_SEED ?? '2026'
const seed = asked === 'random' ? Date.now() % 1_000_000 : Number(asked)
const kills = Number(process.env.HANDRAIL_KILLS ?? 220)
const workers = 2
/** Milliseconds after which a life that does not come by its point is ended by hand. */
const patience = 2_500

/** How often each point was died at. */
const died = new Map<string, number>()
const tally = { kills: 0, byHand: 0, stops: 0, missed: [] as string[] }

const records: OutsideRecord[] = []

afterAll(async () => {
  await Promise.all(records.map((record) => record.close()))
  const hits = [...died].sort().map(([point, times]) => `${point} ${times}`)
  const { kills: n, byHand, stops, missed } = tally
  console.log(
    `seed ${seed}: ${n} kills (${byHand} from outside), ${stops} stops\n${hits.join(', ')}` +
      (missed.length > 0 ? `\nnot reached in one life: ${missed.join(', ')}` : ''),
  )
})

test.concurrent.each(Array.from({ length: workers }, (_, n) => n))(
  `whatever it dies of, nothing is lost, doubled or half done (seed ${seed}, worker %i)`,
  async (worker) => {
    const random = randomFrom(seed * 10 + worker)
    const directory = await temporaryDirectory()
    const place = placeIn(directory.path)
    const record = await startRecord(`${place.outside}.received`)
    records.push(record)
    const environment = { ...settings, CRASH_RECORD: record.url }
    const person = new Person(random, place.outside)
    const plan = planOf(kills, randomFrom(seed)).filter((_, n) => n % workers === worker)
    for (let end = plan.shift(); end; end = plan.shift()) {
      const reached = await life(place, person, end, environment)
      if (!reached && end.by === 'point' && !end.again)
        plan.push({ ...end, occurrence: 1, again: true })
    }

    const server = await begin(place, environment)
    const client = chatsClient(server.url)
    await person.settle({ client, gone: new AbortController().signal })
    const problems = [...person.problems, ...(await differences(client, person.readers))]
    expect(await stopInTime(server)).toBe(true)
    problems.push(...(await check(place.data, place.outside, person.told, record)))
    expect(problems, `data is kept in ${directory.path}`).toEqual([])
    await directory.remove()
  },
)

test('every point was died at', () => {
  if (kills < 200) return
  expect(points.filter((point) => (died.get(point) ?? 0) < 2)).toEqual([])
})

const settings = {
  HANDRAIL_HITL: 'on',
  HANDRAIL_ACTION_LIMIT: '8',
  HANDRAIL_SEGMENT_BYTES: '60000',
  HANDRAIL_DRAIN_MS: '30',
}

/** One life: the recovery from the last end, and the prey of the next. True when it ended as planned. */
async function life(
  place: Place,
  person: Person,
  end: End,
  environment: Record<string, string>,
): Promise<boolean> {
  const crash = end.by === 'point' ? `${end.point}:${end.occurrence}` : undefined
  const server = await tryBegin(place, environment, crash)
  const gone = new AbortController()
  let reached = true
  if (server) {
    void server.exited.then(() => gone.abort())
    const door = { client: chatsClient(server.url), gone: gone.signal }
    const lived = person.live(door, end.by === 'point' ? wishesFor(end.point) : [])
    const late = sleep(end.by === 'point' ? patience : end.after, undefined, {
      signal: gone.signal,
    })
    const alive = await late.then(
      () => true,
      () => false,
    )
    if (alive && end.by === 'term') await stopInTime(server)
    else if (alive) {
      reached = end.by === 'hand'
      await server.kill()
    }
    await lived
    const { code, signal } = await server.exited
    if (end.by === 'term' ? code !== 0 : signal !== 'SIGKILL')
      person.problems.push(`the server ended by itself (${signal ?? code}): ${server.output()}`)
    const errors = server.output().match(/^.*"level":50.*$/gm) ?? []
    for (const error of errors) person.problems.push(error)
  }
  if (end.by === 'term') tally.stops++
  else tally.kills++
  if (end.by === 'hand' || !reached) tally.byHand++
  if (end.by !== 'point') return true
  if (reached) died.set(end.point, (died.get(end.point) ?? 0) + 1)
  else tally.missed.push(`${end.point}:${end.occurrence}`)
  return reached
}
