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
  const after = 300 + random.below(2_000)
  const first = fault(random, seats)
  if (!random.chance(0.25)) return { after, faults: [first] }
  return { after, faults: [first, fault(random, seats)] }
}

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

/** What goes wrong now. Things overlap, each with a part of its own, and one server is left alone. */
export class Trouble {
  readonly struck: Kind[] = []
  readonly #world: World
  readonly #going = new Map<unknown, Promise<void>>()

  constructor(world: World) {
    this.#world = world
  }

  begin(fault: Fault): void {
    const { kind } = fault
    const { seats } = this.#world
    const free = [...seats.slice(fault.seat), ...seats].filter((seat) => !this.#going.has(seat))
    const seat = new Set(free).size > 1 ? free[0] : undefined
    const part = kind === 'postgres' || kind.startsWith('redis') ? kind.slice(0, 5) : seat
    if (part === undefined || this.#going.has(part)) return
    this.struck.push(kind)
    const over = strike(this.#world, seat ?? seats[0]!, fault)
    this.#going.set(
      part,
      over.finally(() => this.#going.delete(part)),
    )
  }

  /** Everything is well again. */
  async over(): Promise<void> {
    while (this.#going.size > 0) await Promise.all(this.#going.values())
  }
}

async function strike({ postgres, redis }: World, seat: Seat, fault: Fault): Promise<void> {
  const { kind, lasts, crash } = fault
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
