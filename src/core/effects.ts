import { sha256 } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Turn } from '../lib/turn.ts'
import type { Work } from '../lib/work.ts'
import type { CallIds } from './call-ids.ts'
import type { Outlet } from './channel.ts'
import type { AgentSetup } from './context.ts'
import { RuntimeError } from './errors.ts'
import type { Leg } from './leg.ts'
import type { Message } from './messages.ts'
import type { Recall, RecallQuery } from './recall.ts'
import type { RunSecrets } from './secrets.ts'
import type { EffectRecord } from './state.ts'

/** What one leg works with. */
export interface Bench {
  leg: Leg
  channel: Outlet
  clock: Clock
  newId: NewId
  crash: (point: string) => void
  random: () => number
  secrets: RunSecrets
  /** The branch as the agent sees it: what is durable, then what this leg has said since. */
  messages: Message[]
  /** Calls are reserved one after another: each sees what the one before it took. */
  turn: Turn
  /** Ids of calls in answers that are being written. */
  callIds: CallIds
  /** What the leg is doing now: it ends when nothing of it is running. */
  work: Work
  /** Tells the operator what went wrong, and what is behind it. */
  report: (error: unknown, about: object, message: string) => void
  /** What was said on other threads of the same owner. */
  recall: (query: RecallQuery, signal: AbortSignal) => Promise<Recall>
  /** Other agents, for those that have work done by them. */
  agents: (name: string) => AgentSetup
  /** Where in the run this is, when it is not the run's own agent that works here. */
  part?: Part
}

/** The work of a sub-agent. */
export interface Part {
  /** The way to it from the run's own agent. */
  path: string
  agent: string
  /** Under which its state is kept. */
  key: string
}

/** Who works here, and where what it leaves is kept. */
export const workerOf = ({ part, leg }: Pick<Bench, 'part' | 'leg'>) => ({
  agent: part?.agent ?? leg.run.agent,
  key: part?.key ?? leg.run.agent,
})

/** A place in a run, seen from its beginning. */
export const placed = ({ part }: Pick<Bench, 'part'>, path: string): string =>
  part ? `${part.path}/${path}` : path

/**
 * The key of an effect says where in the run it stands: the message that the step begins after
 * (its checkpoint), the path to the agent, and which of several. The same work has the same key in
 * every leg and after every crash; the id made of it is the tools' idempotency key.
 */
export function effectKey(runId: string, checkpoint: string, path: string, ordinal: number) {
  const key = `${runId}/${checkpoint}/${path}/${ordinal}`
  return { key, effectId: `eff_${sha256(key).slice(0, 26)}` }
}

/** What a key already led to; the same key for something else is an agent that wavers. */
export function recorded(record: EffectRecord | undefined, digest: string) {
  if (record?.state !== 'done') return undefined
  if (record.intent.digest !== digest) throw new RuntimeError('agent_not_deterministic')
  return record
}
