import { setTimeout as sleep } from 'node:timers/promises'
import { checkThreads, type Thread } from '../crash/checker.ts'
import { differences } from '../crash/differences.ts'
import { Person, type Told } from '../crash/person.ts'
import { randomFrom } from '../crash/random.ts'
import { receivedBy } from '../support/record.ts'
import { nextBlow, Trouble } from './faults.ts'
import { spread, tallyOf } from './figures.ts'
import { unlikeJournal } from './from-journal.ts'
import { checkTakeovers, type Takeover, takeoversIn } from './takeovers.ts'
import { anyOf, createWorld, journalOf, type World, writeDown } from './world.ts'

export interface ChaosOptions {
  seed: number
  seconds: number
  /** Told every few seconds how far it is. */
  progress?: (line: string) => void
}

export interface ChaosReport {
  problems: string[]
  figures: string
  /** What is left to look at when there are problems. */
  directory: string
}

/** What takes long enough to be cut. */
const longer = ['slow 60', 'slow 150', 'steps', 'three', 'deaf', 'text 200']

const people = 5
const servers = 3

const environment = {
  HANDRAIL_HITL: 'on',
  HANDRAIL_ACTION_LIMIT: '8',
  HANDRAIL_DRAIN_MS: '300',
  HANDRAIL_GRACE_MS: '200',
}

/** People at three servers while everything goes wrong; then quiet, and the judgement. */
export async function chaos({ seed, seconds, progress }: ChaosOptions): Promise<ChaosReport> {
  const world = await createWorld(servers, environment)
  const crowd = Array.from({ length: people }, (_, n) => {
    const who = { name: `p${n}`, numbers: n * 1_000_000 }
    return new Person(randomFrom(seed * 100 + n), world.outside, who)
  })
  const trouble = new Trouble(world)
  const { problems } = world.register
  const told = () => progress?.(progressLine(trouble, crowd))
  const telling = setInterval(told, 3_000)
  let threads: Thread[] = []
  let took: Takeover[] = []
  let keep = true
  try {
    await live(world, crowd, trouble, { seed, seconds })
    const since = Date.now()
    await quiet(world)
    const client = anyOf(world, randomFrom(seed + 2))
    const door = { client, gone: AbortSignal.timeout(90_000), patient: true }
    await Promise.all(crowd.map((person) => person.settle(door)))
    told()
    if (door.gone.aborted) problems.push('it did not come to rest')
    const readers = crowd.flatMap((person) => person.readers)
    problems.push(...(await differences(client, readers)))
    progress?.(`at rest after ${Math.round((Date.now() - since) / 1_000)} s`)
    await Promise.all(world.seats.map((seat) => seat.stop()))

    threads = await journalOf(world)
    took = takeoversIn(threads, world.register)
    problems.push(...crowd.flatMap((person) => person.problems))
    problems.push(
      ...checkThreads(threads, world.outside, together(crowd), receivedBy(world.record)),
    )
    problems.push(...checkTakeovers(threads, took, world.outside, world.register))
    problems.push(...unlikeJournal(threads, readers))
    keep = problems.length > 0
    if (keep) writeDown(world, threads, problems)
  } finally {
    clearInterval(telling)
    await world.close(keep)
  }
  return { problems, figures: figuresOf(world, trouble, threads, took), directory: world.directory }
}

/** People come and go while one blow follows another. */
async function live(
  world: World,
  crowd: Person[],
  trouble: Trouble,
  { seed, seconds }: Pick<ChaosOptions, 'seed' | 'seconds'>,
): Promise<void> {
  const over = AbortSignal.timeout(seconds * 1_000)
  const random = randomFrom(seed)
  const lives = crowd.map(async (person, n) => {
    const client = anyOf(world, randomFrom(seed * 10 + n))
    const door = { client, gone: over, patient: true }
    while (!over.aborted) await person.live(door, longer)
  })
  while (!over.aborted) {
    const { after, faults } = nextBlow(random, servers)
    const waited = await sleep(after, true, { signal: over }).catch(() => false)
    if (waited) for (const fault of faults) trouble.begin(fault)
  }
  await trouble.over()
  await Promise.all(lives)
}

/** Everything is up, and nobody is about to die. */
async function quiet({ seats }: World): Promise<void> {
  for (const seat of seats) {
    seat.busy = true
    if (seat.life?.crash !== undefined) await seat.kill()
    await seat.begin()
    seat.busy = false
  }
}

/** What all of them were told. */
function together(crowd: Person[]): Told {
  const all = <K, V>(of: (told: Told) => Map<K, V>) =>
    new Map(crowd.flatMap(({ told }) => [...of(told)]))
  return {
    accepted: all(({ accepted }) => accepted),
    answers: all(({ answers }) => answers),
    numbers: all(({ numbers }) => numbers),
    deleted: new Set(crowd.flatMap(({ told }) => [...told.deleted])),
  }
}

function progressLine({ struck }: Trouble, crowd: Person[]): string {
  const chats = crowd.flatMap((person) => person.chats)
  const readers = chats.flatMap((chat) => [...chat.readers.values()])
  const over = readers.filter((reader) => reader.over).length
  const open = chats.filter((chat) => !chat.settled).length
  return `${struck.length} faults, ${readers.length} runs seen, ${over} read to the end, ${open} chats open`
}

function figuresOf(world: World, { struck }: Trouble, threads: Thread[], took: Takeover[]): string {
  const { register } = world
  const runs = threads.flatMap(({ state }) => [...state.runs.values()])
  const times = (from: Takeover['from']) =>
    spread(took.flatMap((one) => (one.from === from && one.took !== undefined ? [one.took] : [])))
  const counts = tallyOf(took.map(({ from }) => from))
  return [
    `${struck.length} faults (${tallyOf(struck)})`,
    `${register.lives.size} lives of ${servers} servers; died at ${tallyOf(diedAt(register.died))}`,
    `${threads.length} threads, ${runs.length} runs (${tallyOf(runs.map(({ status }) => status))})`,
    `${took.length} takeovers (${counts}); killed: ${times('killed')}; frozen: ${times('frozen')}`,
  ].join('\n')
}

const diedAt = (died: Map<string, number>) =>
  [...died].flatMap(([point, times]) => Array.from({ length: times }, () => point))
