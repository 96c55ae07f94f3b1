import type { Known } from '../../src/core/entries.ts'
import type { Thread } from '../crash/checker.ts'
import { executions } from '../crash/outside.ts'
import { driverOf, type Life, type Register } from './seat.ts'

/** A leg that somebody else went on with, although its driver had not said that it is done. */
export interface Takeover {
  threadId: string
  /** The leg that was cut. */
  legId: string
  at: number
  fence: number
  life: Life | undefined
  /** Its driver was killed, or slept; or was alive, and without a lease: its store was away. */
  from: 'killed' | 'frozen' | 'alive'
  /** Milliseconds since then. */
  took?: number
}

export function takeoversIn(threads: Thread[], register: Register): Takeover[] {
  const found: Takeover[] = []
  for (const { threadId, entries } of threads) {
    const driven = new Map<string, Known>()
    for (const entry of entries) {
      const { kind, runId = '' } = entry
      if (kind === 'run.started') driven.set(runId, entry)
      if (kind !== 'run.queued' || entry.body.why !== 'recover') continue
      const { legId = '', at = 0 } = driven.get(runId) ?? {}
      const life = driverOf(register, legId, at)
      found.push({ threadId, legId, life, ...entryPlace(entry), ...causeOf(life, entry.at) })
    }
  }
  return found
}

const entryPlace = ({ at, fence }: Known) => ({ at, fence })

function causeOf(life: Life | undefined, at: number): Pick<Takeover, 'from' | 'took'> {
  if (!life) return { from: 'killed' } // so soon that what it logged last did not get out
  const { endedAt = Number.POSITIVE_INFINITY, frozen } = life
  const slept = frozen.findLast(({ from }) => from < at)
  if (slept && (at < slept.to || endedAt > at)) return { from: 'frozen', took: at - slept.from }
  if (endedAt <= at) return { from: 'killed', took: at - endedAt }
  return { from: 'alive' }
}

/**
 * I4 and I6, of drivers that slept or were cut off: after its leg was taken over a process writes nothing
 * for it and begins no effect of it. The journal knows whose entry is whose by leg and fence, the outside
 * knows who did what, and when.
 */
export function checkTakeovers(
  threads: Thread[],
  takeovers: Takeover[],
  outside: string,
  register: Register,
): string[] {
  const problems: string[] = []
  const startedAt = new Map<string, number>()
  const overAt = new Map(takeovers.map(({ legId, at }) => [legId, at]))
  const intents = new Map<string, Known[]>()
  for (const { threadId, entries } of threads) {
    const taken = takeovers.filter((one) => one.threadId === threadId)
    for (const entry of entries) {
      if (entry.kind === 'run.started') startedAt.set(entry.legId ?? '', entry.at)
      if (entry.kind === 'effect.intended') {
        const { effectId } = entry.body
        intents.set(effectId, [...(intents.get(effectId) ?? []), entry])
      }
      const older = taken.find(
        ({ fence, at }) => entry.fence > 0 && entry.fence < fence && entry.at > at,
      )
      if (older && isAfter(entry, older, entries))
        problems.push(`${threadId}: seq ${entry.seq} was written by a driver that had lost its leg`)
    }
  }
  for (const { effectId, by, at } of executions(outside)) {
    const life = register.lives.get(by)
    const own = (intents.get(effectId) ?? []).filter(
      ({ legId = '' }) => (driverOf(register, legId, startedAt.get(legId) ?? 0) ?? life) === life,
    )
    const said = `${effectId} happened at ${at} by ${by}`
    if (!intents.has(effectId)) continue // its thread was erased
    if (!own.some((intent) => intent.at <= at)) problems.push(`${said}, which did not intend it`)
    else if (own.every(({ legId }) => (overAt.get(legId ?? '') ?? at) < at))
      problems.push(`${said}, and its leg had been taken over`)
  }
  return problems
}

/** By its place, not by clocks. */
const isAfter = (entry: Known, { fence }: Takeover, entries: Known[]): boolean =>
  entries.some((other) => other.fence >= fence && other.seq < entry.seq)
