import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { shareClass } from '../lib/shared-class.ts'
import type { Channel } from './channel.ts'
import type { Actor } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { LateOutcome, RemoteAttempt } from './late.ts'
import type { Run } from './state.ts'
import type { Thread } from './thread.ts'
import type { ToolContext } from './tool.ts'

/**
 * Why a leg stops before its agent is done. An ask that waits is `parked`; `again`: its agent failed;
 * `finished`: its run is complete, whatever the agent would still do.
 */
export class LegStop extends Error {
  readonly why: 'parked' | 'cancelled' | 'lost' | 'handover' | 'again' | 'finished'
  constructor(why: LegStop['why']) {
    super(`leg ${why}`)
    this.name = 'LegStop'
    this.why = why
  }
}
shareClass(LegStop, 'LegStop')

export const isStop = (error: unknown, why: LegStop['why']): boolean =>
  error instanceof LegStop && error.why === why

/** The right to drive, held by heartbeat. Effects start only well inside it (I4). */
export interface Lease {
  readonly fence: number
  /** Milliseconds that it lasts after each renewal. */
  readonly ttl: number
  /** Resolves while the lease surely holds for a while yet; rejects when it was lost. */
  hold(): Promise<void>
}

/** One uninterrupted stretch of work on a run. */
export interface Leg {
  readonly thread: Thread
  readonly run: Run
  readonly runId: string
  readonly legId: string
  readonly lease: Lease
  readonly actor: Actor
  readonly newId: NewId
  readonly clock: Clock
  /** Ends the leg's work: what it has begun is told to stop. */
  readonly abort: AbortController
  readonly signal: AbortSignal
  /** Secrets of the run, which must not be written in the sentence of an error either. */
  readonly secrets?: () => readonly string[]
  /** Fires when the server is about to go: the leg is handed over before its next effect. */
  readonly leaving: AbortSignal
  /** Fires when the server itself is going: nothing more can be written. */
  readonly closing: AbortSignal
  /** The work has failed with this error: calls in doubt are settled, and nothing else is started. */
  readonly settling?: Error
  /** Records the outcome of a tool call or a remote leg that this leg can no longer record itself. */
  readonly late: (outcome: LateOutcome, remote?: RemoteAttempt) => void
  /** Registers a call that the leg gave up. A server that stops waits for it, because its outcome may still be recorded. */
  readonly awaitLate: (call: Promise<void>) => void
}

/** The tenant and user that own the thread, as tools are given them. */
export const ownerOf = ({ thread }: Pick<Leg, 'thread'>): ToolContext => ({
  tenant: thread.state.tenant,
  user: thread.state.owner,
})

/**
 * Where another server can go on as if nothing had been: nothing is begun, all before it is written. Throws
 * if nothing may be started any more.
 */
export function mayHandOver({ leaving, settling }: Leg): void {
  if (settling) throw settling
  if (leaving.aborted) throw new LegStop('handover')
}

/**
 * Resolves when the leg may start something with effects: its lease surely holds for a while yet. Waits while
 * the store is unavailable. Rejects when the lease was lost or the leg was told to stop. Call it immediately
 * before each start, also before a retry.
 */
export async function holdLease({ lease, signal }: Leg, channel: Pick<Channel, 'away'>) {
  await channel.away(() => lease.hold())
  signal.throwIfAborted()
}

export interface Heartbeat {
  /** `claimedAt`: the monotonic time before the claim was sent. The lease begins no earlier. */
  lease(fence: number, claimedAt: number): Lease
  stop(): void
}

/**
 * One heartbeat per server renews all its leases. What it knows of them is measured by the local
 * monotonic clock from before each renewal was sent, so a process that slept knows that it did.
 */
export function heartbeat(renew: () => Promise<Set<number>>, ttl: number, clock: Clock): Heartbeat {
  const ended = new AbortController()
  let renewedAt = clock.monotonic()
  let held: Set<number> | undefined
  let renewing: Promise<void> | undefined

  const beat = () => {
    renewing ??= (async () => {
      const sentAt = clock.monotonic()
      held = await renew()
      renewedAt = sentAt
    })().finally(() => {
      renewing = undefined
    })
    return renewing
  }
  const run = async () => {
    while (!ended.signal.aborted) {
      await clock.sleep(ttl / 3, ended.signal)
      await beat().catch(() => {}) // hold() finds out before anything is done
    }
  }
  run().catch(() => {})

  return {
    lease: (fence, claimedAt) => ({
      fence,
      ttl,
      async hold() {
        const since = Math.max(claimedAt, held?.has(fence) ? renewedAt : 0)
        if (clock.monotonic() < since + ttl / 2) return
        await beat()
        if (!held?.has(fence)) throw new LegStop('lost')
        if (clock.monotonic() < renewedAt + ttl / 2) return
        throw new RuntimeError('store_unavailable')
      },
    }),
    stop: () => ended.abort(),
  }
}
