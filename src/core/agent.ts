import type { Clock } from '../lib/clock.ts'
import type { Answer, Ask, RunOptions, Usage } from './entries.ts'
import type { CallPart, Message } from './messages.ts'
import type { Model, ModelParameters, ToolSpec } from './model.ts'
import type { RemoteLine } from './remote.ts'
import type { RetryRule } from './retry.ts'
import type { AskRecord, Kept } from './state.ts'
import type { Tool } from './tool.ts'

/**
 * A way to think. It is run once for each leg, from the start, and finds in `ctx` what earlier
 * legs left: it must keep nothing of its own between legs.
 */
export interface Agent {
  readonly name: string
  readonly description?: string
  /** First messages that a page offers to users who start a chat with it. */
  readonly suggestions?: readonly string[]
  /** Running it again after it has thrown is worth trying: it is, in a new leg, after a while. */
  readonly supportsRetry?: boolean
  /** How it is run again, where that is not as for all. */
  readonly retry?: Partial<RetryRule>
  /** It has its work done by others, and tells how they stand: see workflow-events.ts. */
  readonly orchestrates?: boolean
  /** Who does its parts, by their paths: what they ask is judged by what they have, also between legs. */
  readonly parts?: Readonly<Record<string, string | Agent>>
  /** Tools of its own: it calls them by the policy, like any other. */
  readonly tools?: readonly Tool[]
  run(ctx: AgentContext): AsyncIterable<AgentEvent>
}

export type AgentEvent =
  /** A piece of an open message: shown at once, kept by nobody. */
  | { type: 'piece'; piece: Piece }
  /** A finished message. */
  | { type: 'message'; message: Message; for?: 'model' | 'client' | 'both' }
  /** The whole state; readers are told what changed. */
  | { type: 'state'; value: unknown }
  /** A part of the work that has a name: a node of a graph, a stage of a plan. */
  | { type: 'step'; name: string; done: boolean }
  /** Something to show beside the messages; the same id again takes its place. */
  | { type: 'activity'; id: string; activity: string; content: object }
  | { type: 'event'; name: string; value: unknown }

/** A piece of something that is being written: of a message, of a call's input, of a tool's output. */
export interface Piece {
  kind: 'text' | 'reasoning' | 'input' | 'output'
  /** The message; for `input` and `output` the call. */
  id: string
  /** The message that an `input` belongs to. */
  messageId?: string
  /** The tool of an `input` or `output`. */
  name?: string
  /** The part of the run that writes it, see `Task`. Set by the runtime. */
  path?: string
  text: string
}

export interface AgentContext {
  readonly threadId: string
  readonly runId: string
  readonly legId: string
  readonly signal: AbortSignal
  readonly options: RunOptions
  readonly newId: (prefix: string) => string
  /** The branch up to now, this run's own messages included. */
  messages(): readonly Message[]
  /**
   * The messages with the data of large images and documents, which `messages` leaves in the journal
   * (`stored`). `model` does this by itself.
   */
  whole(messages: readonly Message[]): Promise<readonly Message[]>
  /** What the agent left with its last `state` event, on this thread. */
  state(): unknown
  /** The client's copy of the state, if one came with a request for this run; `id` tells which. */
  given(): { id: string; value: unknown } | undefined
  /** What was kept on this branch, oldest first. */
  kept(): readonly Kept[]
  /**
   * Keeps what is needed to go on from a checkpoint of the agent's own. It is written in order with all
   * else, so it is durable before anything that begins later.
   */
  keep(checkpointId: string, data: unknown): void
  /** A model call that was made past `model`, told afterwards: it counts, and stops the next one. */
  metered(call: { model: string; usage?: Usage }): void
  /** The tools this agent may use now: some come and go. */
  readonly tools: readonly ToolSpec[]
  /**
   * One governed model call: reserved, intended, streamed to the readers, retried by the table,
   * and kept. Resolves with the message once it is durable or queued with the next transition.
   */
  model(call: ModelCall): Promise<{ message: Message; usage?: Usage }>
  /**
   * Makes the calls that have no result yet, several at once, each by the policy: allowed ones run,
   * the others are asked about together. Resolves when every call has its result message;
   * ends the leg when a person must answer first.
   */
  call(calls: readonly CallPart[]): Promise<void>
  /** Work that another server does for this run, leg by leg, each of it through the ledger. */
  remote(name: string): RemoteLine
  /** The answer to a question, if it is there; else raises it and ends the leg. */
  ask(question: Question): Promise<Answer>
  /** A question that was asked under this key, who answered it, and when. */
  asked(key: string): AskRecord | undefined
  readonly clock: Clock
  /**
   * Resolves when the agent may start something with effects that does not go through the ledger: this server
   * surely has the thread. Rejects when it has lost it. Await it immediately before each start and each retry.
   */
  hold(): Promise<void>
  /** Returns the text without the secrets of the run. An agent must call it before it keeps or tells the text of an error. */
  redact(text: string): string
  /** Tells the operator, in the log, of a failure that the run gets over, with what is behind it. */
  report(error: unknown, about: object, message: string): void
  /**
   * Has a part of the run done by another agent, in this leg: its messages, its state and its effects
   * are its own, the budget is the run's. Rejects with what it throws, also with the end of the leg
   * when it waits for a person. The same path again goes on where it was.
   */
  delegate(task: Task): Promise<TaskEnd>
}

export interface Task {
  /** Names it in the run: one path, one task. */
  path: string
  /** One of the configuration's, or one that has the tools and the model of whoever asks. */
  agent: string | Agent
  /** What it is told, as a user would say it. */
  input: string
  /** Ends it early. */
  signal?: AbortSignal
  /**
   * The error with which it has failed. Its tool calls in doubt are checked and asked about, nothing else is started,
   * and `delegate` rejects with this error, or with the end of the leg when it waits for a person.
   */
  failure?: Error
}

export interface TaskEnd {
  /** What it said, oldest first. */
  messages: readonly Message[]
  state: unknown
  /** Of all its model calls, those of earlier legs too. */
  usage: Usage
}

export interface ModelCall {
  /** Which of several branches calls. Calls of one branch are told apart by their order alone. */
  path?: string
  system?: string[]
  messages: readonly Message[]
  tools?: readonly ToolSpec[]
  parameters?: ModelParameters
  /** Whom to ask, in place of the agent's own model. */
  by?: Model
  /** The answer is for models, and shown to nobody. */
  hidden?: boolean
}

export type Question = Pick<Ask, 'kind' | 'title'> &
  Partial<Pick<Ask, 'schema' | 'editable' | 'partialEdit' | 'input' | 'preview' | 'audience'>> & {
    /** Tells the questions of one run apart; the same question has the same key in every leg. */
    key: string
    /** Milliseconds to wait for an answer. */
    timeout?: number
    atTimeout?: Ask['atTimeout']
  }
