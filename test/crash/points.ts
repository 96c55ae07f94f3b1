import { bodies, type Kind } from '../../src/core/entries.ts'
import type { Random } from './random.ts'

/** Kinds that nobody here writes; hooks and graphs have crash tests of their own. */
const unreached: Kind[] = [
  'thread.archived',
  'grant.revoked',
  'governor.metered',
  'checkpoint.kept',
  'hook.tried',
  'hook.done',
]

const kinds = (Object.keys(bodies) as Kind[]).filter((kind) => !unreached.includes(kind))

/** What every server comes by, whatever its store. */
const everywhere = ['leg.claimed', 'effect.ran', 'model.pieces']

const others = [
  ...everywhere,
  'log.before-commit',
  'log.after-commit',
  'journal.partial',
  'index.before-rename',
  'segment.before-drop',
]

const around = kinds.flatMap((kind) => [`before ${kind}`, kind])

export const points: string[] = [...around, ...others]

/** Points of a server whose store is elsewhere. */
export const sharedPoints: string[] = [...around, ...everywhere]

/** Things to say that lead to a point nobody comes by often. */
const leading: Record<string, string[]> = {
  'thread.renamed': ['create'],
  'grant.given': ['remember'],
  'state.patched': ['note'],
  event: ['note', 'flaky'],
  'run.failed': ['fail'],
  'run.cancelling': ['cancel'],
  'run.cancelled': ['cancel'],
  'index.before-rename': ['delete'],
  'ask.raised': ['approve', 'three'],
  'ask.answered': ['approve', 'note'],
  'run.waiting': ['approve', 'note'],
  'message.retracted': ['flaky'],
  'effect.failed': ['broken', 'flaky'],
  'model.pieces': ['text 200'],
  'key.used': ['key'],
  'effect.ran': ['once', 'free'],
  'effect.done': ['once', 'free'],
  'effect.unknown': ['once', 'free'],
}

export const wishesFor = (point: string): string[] => leading[point.replace('before ', '')] ?? []

const rare = new Set(['thread.renamed', 'grant.given', 'run.failed', 'index.before-rename'])

/** How a life is to end: at a point of its own, by a hand from outside, or asked politely. */
export type End =
  | { by: 'point'; point: string; occurrence: number; again?: boolean }
  | { by: 'hand'; after: number }
  | { by: 'term'; after: number }

/** `kills` ends by SIGKILL, every point as often as the others, and a few stops among them. */
export function planOf(kills: number, random: Random): End[] {
  const plan: End[] = []
  let round: string[] = []
  for (let n = 0; n < kills; n++) {
    if (n % 10 === 9) {
      plan.push({ by: 'hand', after: 20 + random.below(600) })
      continue
    }
    if (round.length === 0) round = random.shuffled(points)
    const point = round.pop()!
    const often = !rare.has(point.replace('before ', ''))
    plan.push({ by: 'point', point, occurrence: random.pick(often ? [1, 2, 3, 5] : [1, 1, 2]) })
    if (n % 20 === 7) plan.push({ by: 'term', after: 50 + random.below(400) })
  }
  return plan
}
