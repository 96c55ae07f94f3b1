import type { AgentEvent } from './agent.ts'
import type { Actor, Answer, Ask, Body, Failure, RunOptions, Usage } from './entries.ts'
import type { Message } from './messages.ts'
import type { UsageLine } from './usage.ts'

/** State is a fold of the journal: the same entries always give the same state. */
export interface ThreadState {
  threadId: string
  seq: number
  tenant: string
  owner: string
  clientId: string
  agent: string
  title: string | null
  archived: boolean
  createdAt: number
  updatedAt: number
  /** The run at the tip of the branch that is shown. */
  head: string | null
  /** The one run that has not ended; `line` waits behind it. */
  active: string | null
  line: string[]
  /** The last run that ever joined the line: a guard that sees newcomers. */
  joined: string | null
  leg: string | null
  /** The runs that ended last. Older ones are released: see `Run.released`. */
  lastEnded: string[]
  runs: Map<string, Run>
  messages: Map<string, Said>
  /** The first entry that holds the data of a large part, by the digest of the data. */
  large: Map<string, number>
  /** Every call ever made on the thread, and where it stands. */
  calls: Map<string, { messageId: string; index: number }>
  asks: Map<string, AskRecord>
  /** What is still to be told outside, by ask. */
  hooks: Map<string, Hook>
  effects: Map<string, EffectRecord>
  grants: Map<string, Grant>
  governor: Governor
  states: Map<string, unknown>
  /** What agents keep of their own checkpoints, in the order it was kept. */
  kept: Map<string, Kept[]>
  keys: Map<string, Body<'key.used'>>
  /** Messages that were not let in, by the rule that says so. */
  refused: Map<string, { rule: string; reason: string }>
  /** What agents show besides messages: progress, plans, search results. */
  activities: Map<string, Activity>
  /** Messages that histories too long for a model begin with, in the order they were chosen. */
  cuts: string[]
  /** The last link of the audit's chain, and where it is. */
  chain: { link: string; seq: number } | null
}

export interface Kept {
  checkpointId: string
  data: unknown
  runId: string
}

export interface Activity {
  id: string
  type: string
  content: object
  runId: string
  seq: number
}

export type RunStatus =
  | 'queued'
  | 'running'
  | 'waiting'
  | 'cancelling'
  | 'completed'
  | 'failed'
  | 'cancelled'

export interface Run {
  runId: string
  agent: string
  status: RunStatus
  /** Undefined until the run has started, or ended without. */
  parentRunId: string | null | undefined
  branch: Body<'run.queued'>['branch']
  options: RunOptions
  legId: string
  leg: number
  /** The legs since it was last asked for or answered; the last is `legId`. */
  legs: string[]
  usage: UsageLine[]
  /** Model calls of it that failed. */
  failedCalls: number
  /** The effect that sums it up, once its budget left it only that. */
  lastCall: string | null
  /** Nobody attends it, and it was given its budget once more. */
  extended: boolean
  /** Times that its agent failed and was run again. */
  agentRetries: number
  /** When its leg was queued, and by which driver; 0 for a command. */
  queued: { at: number; fence: number }
  /** Seq of the entry that queued it. */
  firstSeq: number
  /** Seq of the entry by which it was last taken up again after it had failed; 0 if it never was. */
  retriedSeq: number
  /** Times it was taken up after a crash since it last got anywhere. */
  recoveries: number
  /** What clients called the requests that its legs answer. */
  requests: string[]
  /** It ended long ago: `options`, `before` and `given` are in the journal only. */
  released: boolean
  /** The agent's state when the run was queued. */
  before: unknown
  /** The client's copy of that state, as it last came with a request for this run. */
  given: { id: string; value: unknown } | undefined
  /** Steps that the agent says it is in. */
  steps: string[]
  messageIds: string[]
  askIds: string[]
  effectIds: string[]
  createdAt: number
  endedAt: number | null
  /** Seq of the entry that ended it; a retry takes that back. */
  endSeq: number | null
  cancellingAt: number | null
  error: Failure | null
  reason: string | null
}

export interface Said {
  message: Message
  for: 'model' | 'client' | 'both'
  /** The way to the sub-agent that said it. */
  path: string | undefined
  runId: string
  seq: number
  at: number
}

export interface AskRecord {
  ask: Ask
  /** The first ask of a call that was asked about again, see `replaces`: it has the arguments that the model wrote. */
  first?: Ask
  runId: string
  seq: number
  raisedAt: number
  /** What of it is told outside. */
  hook: 'raised' | 'both' | undefined
  answer: Answer | null
  answeredBy: Actor | null
  answeredAt: number | null
}

export interface Hook {
  about: 'raised' | 'settled'
  /** Tries so far, and when the next one is due. */
  attempt: number
  at: number
  since: number
}

export interface EffectRecord {
  intent: Body<'effect.intended'>
  state: 'intended' | 'done' | 'failed' | 'unknown'
  runId: string
  seq: number
  at: number
  messageId: string | undefined
  output: string | undefined
  /** When it was recorded that the call had exceeded its timeout. */
  timedOutAt?: number
  /** See `effect.done`. Messages that the thread already has were recorded later. */
  unrecorded?: readonly AgentEvent[]
  error: Failure | undefined
  usage: Usage | undefined
  /** The budget that it was reserved from: how often that had been given anew. */
  period: number
}

/** Calls that need not be asked about, by whom and since when. */
export interface Grant extends Body<'grant.given'> {
  by: Actor
  at: number
}

export interface Governor {
  isHitlEnabled: boolean
  actionLimit: number
  actionCounter: number
  total: number
  tokens: Measure
  money: Measure
  /** How often the budget was given anew. */
  period: number
  /** The last entry that changed what may be called: a guard that sees such changes. */
  mark: string | null
  /** The run that goes on with the cheaper model. */
  cheaper: string | null
  /** The run that may make one more call. */
  last: string | null
  /** Legs of agents elsewhere, and the model calls that those said they made. */
  remote: { legs: number; reported: number }
}

/** What is used since the budget was given includes what is reserved. */
export interface Measure {
  limit: number | null
  used: number
  total: number
}

export const ended = (run: Run): boolean =>
  run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'

export function emptyState(threadId: string): ThreadState {
  return {
    threadId,
    seq: 0,
    tenant: '',
    owner: '',
    clientId: '',
    agent: '',
    title: null,
    archived: false,
    createdAt: 0,
    updatedAt: 0,
    head: null,
    active: null,
    line: [],
    joined: null,
    leg: null,
    lastEnded: [],
    runs: new Map(),
    messages: new Map(),
    large: new Map(),
    calls: new Map(),
    asks: new Map(),
    hooks: new Map(),
    effects: new Map(),
    grants: new Map(),
    governor: emptyGovernor(),
    states: new Map(),
    kept: new Map(),
    keys: new Map(),
    refused: new Map(),
    activities: new Map(),
    cuts: [],
    chain: null,
  }
}

const emptyGovernor = (): Governor => ({
  isHitlEnabled: false,
  actionLimit: 0,
  actionCounter: 0,
  total: 0,
  tokens: { limit: null, used: 0, total: 0 },
  money: { limit: null, used: 0, total: 0 },
  period: 0,
  mark: null,
  cheaper: null,
  last: null,
  remote: { legs: 0, reported: 0 },
})
