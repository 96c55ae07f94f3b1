import { setTimeout as sleep } from 'node:timers/promises'
import { sharedPoints } from '../crash/points.ts'
import type { Random } from '../crash/random.ts'
import type { Seat } from './seat.ts'
import { leaseMs, type World } from './world.ts'

const kinds = [
  ...['kill', 'kill', 'kill', 'freeze', 'freeze', 'stop'],
  ...['postgres', 'redis gone', 'redis flushed', 'redis frozen'],
] as const

export type Kind = (typeof kinds)[number]

/** One thing that goes wrong; everything about it was drawn before it happens. */
interface Fault {
  kind: Kind
  seat: number
  /** Milliseconds that it lasts. */
  lasts: number
  /** Of the process that comes afterwards. */
  crash?: string
}

/** Milliseconds until the next, and what happens then: one thing, or two at once. */
export interface Blow {
  after: number
  faults: Fault[]
}

export function nextBlow(random: Random, seats: number): Blow {
  const after = 400 + random.below(2_200)
  const first = fault(random, seats)
  if (!random.chance(0.25)) return { after, faults: [first] }
  const second = fault(random, seats)
  return { after, faults: part(first) === part(second) ? [first] : [first, second] }
}

/** Two things at once happen to different parts. */
const part = ({ kind, seat }: Fault): string =>
  kind === 'postgres' || kind.startsWith('redis') ? kind.slice(0, 5) : String(seat)

function fault(random: Random, seats: number): Fault {
  const kind = random.pick(kinds)
  const seat = random.below(seats)
  const point = `${random.pick(sharedPoints)}:${1 + random.below(12)}`
  const crash = random.chance(0.6) ? { crash: point } : {}
  const between = (least: number, most: number) => least + random.below(most - least)
  switch (kind) {
    case 'kill':
    case 'stop':
      return { kind, seat, lasts: between(0, 800), ...crash }
    case 'freeze':
      return { kind, seat, lasts: between(leaseMs + 500, leaseMs + 2_500) }
    case 'postgres':
      return { kind, seat, lasts: between(300, 3_000) }
    default:
      return { kind, seat, lasts: between(300, 2_500) }
  }
}

/** Resolves when it is over. */
export async function strike({ seats, postgres, redis }: World, fault: Fault): Promise<void> {
  const { kind, lasts, crash } = fault
  const seat = seats[fault.seat]!
  switch (kind) {
    case 'kill':
      return await alone(seat, async () => {
        await seat.kill()
        await sleep(lasts)
        await seat.begin(crash)
      })
    case 'stop':
      return await alone(seat, async () => {
        await seat.stop()
        await seat.begin(crash)
      })
    case 'freeze':
      return await alone(seat, () => seat.freeze(lasts))
    case 'postgres':
      await postgres.crash()
      await sleep(lasts)
      return await postgres.start()
    case 'redis gone':
      await redis.kill()
      await sleep(lasts)
      return await redis.start()
    case 'redis flushed':
      await redis.command('FLUSHALL')
      return
    case 'redis frozen':
      redis.pause()
      await sleep(lasts)
      redis.resume()
  }
}

/** While nobody else takes a hand to this seat; it is never left empty. */
async function alone(seat: Seat, act: () => Promise<void>): Promise<void> {
  seat.busy = true
  try {
    await act()
  } finally {
    seat.busy = false
    if (!seat.life) await seat.begin()
  }
}
