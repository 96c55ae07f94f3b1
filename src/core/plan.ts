import type { Bench } from './effects.ts'
import type { Ask, Draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { Execution } from './execute.ts'
import type { Guard } from './guard.ts'
import { type CallPart, callsOf } from './messages.ts'
import type { PolicyRule } from './policy.ts'
import type { EffectRecord } from './state.ts'
import type { Expectation } from './store.ts'
import type { Tool } from './tool.ts'

export interface Toolbox {
  agent: string
  /** As they are now. */
  tools: () => ReadonlyMap<string, Tool>
  policy: readonly PolicyRule[]
  /** How many calls of one step run at once. */
  parallel: number
  /** An outcome that was kept while the store was away. */
  evidence: (effectId: string) => Promise<unknown>
  guard?: Guard
}

/** What is to be done with one call. */
export type Plan =
  | {
      do: 'say'
      text: string
      failed: boolean
      also: Draft[]
      messageId?: string
      expect?: Expectation[]
    }
  | { do: 'run'; execution: Execution }
  | { do: 'raise'; ask: () => Promise<Ask>; expect?: Expectation[] }
  | {
      do: 'look'
      execution: Execution
      record: EffectRecord
      /** The plan for a call that did not happen: the policy decides again whether it may run. */
      again: () => Plan
      cut?: Cut
    }
  | { do: 'wait' }

/** Why the outcome of a call that this leg made is unknown. `OutcomeUnknown` is one. */
export interface Cut {
  message: string
  /** Nothing of it can still be going on. */
  over: boolean
  /** The call exceeded its timeout and has not returned since. */
  running?: boolean
}

/** Facts that a plan for a call that was begun before relies on: nobody has settled or begun it since. */
export const unmoved = (effectId: string, state: EffectRecord['state']): Expectation[] => [
  { fact: `effect:${effectId}`, is: state },
]

export const say = (text: string, failed = true, ...also: Draft[]): Plan & { do: 'say' } => ({
  do: 'say',
  text,
  failed,
  also,
})

/** Told to the model when what was approved is not what would run. */
export const changed = 'The tool changed after this call was approved. It was not run.'

/** Message to the model if an older version may have applied the transform of the schema to an edit twice. */
export const ambiguous =
  'An older version of the server recorded the edited arguments in a form that is not safe to run. The call was not run. Call the tool again.'

/** The message that holds a call, and which of its calls it is. */
export function placeOf(call: CallPart, bench: Bench): { messageId: string; index: number } {
  const isIt = (one: CallPart) => one.callId === call.callId
  const message = bench.messages.findLast((one) => callsOf(one).some(isIt))
  if (message) return { messageId: message.id, index: callsOf(message).findIndex(isIt) }
  const known = bench.leg.thread.state.calls.get(call.callId)
  if (known) return known
  throw new RuntimeError('agent_failed', 'The agent made a call that no message of it holds.')
}
