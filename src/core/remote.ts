import type { AgentEvent } from './agent.ts'

/** Name of the event with which an adapter reports model calls of the remote: `{ calls, usage }`. */
export const remoteCalls = 'remote.calls'

/** Work that another server does. It is one effect, however many events it yields. */
export interface RemoteCall {
  /** A plain sentence. A card shows it if a person must decide whether the work happened. */
  title: string
  /** The part of the request that distinguishes it from other requests. */
  input: unknown
  /** Repeating the work has no further effect, so it is repeated after a crash. */
  idempotent?: boolean
  /** Milliseconds after which the leg is given up. Later than that, the remote does not work on it. */
  timeout: number
  /**
   * Returns whether the remote knows the effect with this id. Called after a crash. If the remote cannot tell, a
   * person is asked and sees the evidence. A lookup that rejects is repeated for a while; its failure never
   * counts as 'absent'.
   */
  look?(begun: Begun, signal: AbortSignal): Promise<Looked>
  /** Does the work. Yields events and returns the output that the next leg needs. Must end when the signal fires. */
  work(use: RemoteUse): AsyncGenerator<AgentEvent, string, undefined>
}

export type Looked = 'absent' | 'there' | { evidence?: unknown; failed?: true }

export interface Begun {
  /** The same for every attempt. Send it as the idempotency key. */
  effectId: string
  /** Counts from 1. */
  attempt: number
}

export interface RemoteUse extends Begun {
  signal: AbortSignal
  /** The remote has worked on it since before a crash: continue reading and start nothing. */
  rejoin: boolean
}

/** The legs of a thread at one remote. */
export interface RemoteLine {
  /** The end of the last leg of this run. */
  last(): RemoteEnd | undefined
  /** Number of legs of this run that have ended. */
  legs(): number
  /** The end of the last leg before this run on its branch. `tip`: no other leg has started since. */
  before(): (RemoteEnd & { tip: boolean }) | undefined
  /** Makes one leg. If another process recorded that leg since `last()`, replays it instead. */
  leg(call: RemoteCall): AsyncGenerator<AgentEvent, void, undefined>
}

export interface RemoteEnd {
  effectId: string
  output: string
}
