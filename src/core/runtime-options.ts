import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { AgentEntry, CallOptions, StartingBudget } from './agent-setups.ts'
import type { AuditKeys } from './audit.ts'
import type { Spool } from './channel.ts'
import type { UnattendedRule } from './governor.ts'
import type { Guard } from './guard.ts'
import type { OutboxOptions } from './outbox.ts'
import type { Bus, Cache, Queue, Slots, Store } from './store.ts'
import type { Log } from './worker.ts'

export interface RuntimeOptions {
  store: Store
  bus: Bus
  queue: Queue
  agents: readonly AgentEntry[]
  /** Agents that come and go; the same list until they change. */
  others?: () => readonly AgentEntry[]
  log: Log
  clock?: Clock
  newId?: NewId
  crash?: (point: string) => void
  spool?: Spool
  /** What may be said, shown and done. */
  guard?: Guard
  serverId?: string
  /** How models are called. */
  calls?: CallOptions
  /** Legs driven at once by this server, and calls of one step made at once. */
  maxLegs?: number
  /** Keeps what is made of threads, for this many milliseconds. */
  cache?: Cache
  viewTtl?: number
  /** Limits legs of all servers together. */
  slots?: Slots
  parallelCalls?: number
  /** Tells the outside of asks: what of them, and how. */
  hooks?: OutboxOptions & { about: 'raised' | 'both' }
  leaseTtl?: number
  sweepEvery?: number
  /** What new threads begin with, and what happens to runs that nobody attends. */
  governor?: StartingBudget
  whenUnattended?: UnattendedRule
  /** Model calls outside of threads that a user may make in a day; absent: no limit, and no count. */
  userLimit?: number
  /** Headers of requests that may be written to the journal, besides those in core/secrets.ts. */
  keepHeaders?: readonly string[]
  /** With keys, every entry is linked to the one before it. */
  audit?: AuditKeys
  /** Bytes of the threads that stay in memory while nobody uses them. Default: an eighth of the heap. */
  warmBytes?: number
  /** Bytes of the threads that the requests of one owner use at once; see `ThreadUses`. Default: a quarter of the heap. */
  usedBytes?: number
  /** True where clients' ids are used as thread keys: one owner, no auth. */
  plainIds?: boolean
}
