import type { Message } from '@ag-ui/client'
import type { ApiError, BudgetChange } from '../api.ts'
import type { Budget, CallStanding, Outline } from '../shapes.ts'
import type { Content } from './messages.ts'

/** How sure the page is that it shows what is. */
export type Phase = 'loading' | 'live' | 'reconnecting' | 'catching-up' | 'gone' | 'nowhere'

export interface LinkState {
  phase: Phase
  /** Undefined until it was read, and for a thread that does not exist yet. */
  outline: Outline | undefined
  /** The budget as it was last told. */
  governor: Budget | undefined
  /** The budget that a new thread is to begin with. */
  planned: BudgetChange | undefined
  /** Messages before those that the agent holds. */
  earlier: readonly Message[]
  /** This page has said something and reads the answer. */
  saying: boolean
  /** How often it has. */
  said: number
  stopping: boolean
  problem: Problem | undefined
  /** What tools print while they run, by call. */
  outputs: Readonly<Record<string, string>>
  /** How calls stand, as far as it was told live; the outline has the others. */
  calls: Readonly<Record<string, CallStanding>>
  /** The model failed, and is asked again at this time. */
  retry: { at: number; message: string } | undefined
}

/** Why something was not taken; with what was to be said, for the composer to take back. */
export interface Problem {
  error: ApiError
  saying?: Saying
}

export interface Saying {
  content: Content
  /** The message that this one replaces: an edit. */
  branchFrom?: string
  whenBusy?: 'queue' | 'cancel'
  /** What the agent is told besides. */
  forwarded?: Record<string, string>
}

export const initial: LinkState = {
  phase: 'loading',
  outline: undefined,
  governor: undefined,
  planned: undefined,
  earlier: [],
  saying: false,
  said: 0,
  stopping: false,
  problem: undefined,
  outputs: {},
  calls: {},
  retry: undefined,
}

/** Something runs on the thread, whoever began it. */
export function isRunning({ saying, outline }: LinkState): boolean {
  return saying || isActive(outline?.status)
}

export const isActive = (status: Outline['status'] | undefined): boolean =>
  status === 'running' || status === 'queued' || status === 'cancelling'

const mostOutput = 200_000 // characters kept of what a tool prints

/** What one of the server's own events changes. */
export function told(state: LinkState, name: string, value: unknown): Partial<LinkState> {
  if (name === 'handrail:tool_output') {
    const { toolCallId, delta } = value as { toolCallId: string; delta: string }
    const text = ((state.outputs[toolCallId] ?? '') + delta).slice(-mostOutput)
    return { outputs: { ...state.outputs, [toolCallId]: text } }
  }
  if (name === 'handrail:call') {
    const {
      toolCallId,
      state: now,
      at,
      grantId,
    } = value as CallStanding & { toolCallId: string; at: number }
    const times =
      now === 'running'
        ? { startedAt: at, ...(grantId !== undefined && { grantId }) }
        : { ...state.calls[toolCallId], endedAt: at }
    return { calls: { ...state.calls, [toolCallId]: { ...times, state: now } } }
  }
  if (name === 'handrail:governor') return { governor: value as Budget }
  if (name === 'handrail:retry') {
    const { inMs = 0, message = '' } = value as { inMs?: number; message?: string }
    return { retry: { at: Date.now() + inMs, message } }
  }
  return {}
}
