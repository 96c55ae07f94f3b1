import type { Bench } from './effects.ts'
import type { Ask, Draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { Execution } from './execute.ts'
import type { Guard } from './guard.ts'
import { type CallPart, callsOf } from './messages.ts'
import type { PolicyRule } from './policy.ts'
import type { EffectRecord } from './state.ts'
import type { OutcomeUnknown, Tool } from './tool.ts'

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
  | { do: 'say'; text: string; failed: boolean; also: Draft[]; messageId?: string }
  | { do: 'run'; execution: Execution }
  | { do: 'raise'; ask: () => Promise<Ask> }
  | { do: 'look'; execution: Execution; record: EffectRecord; stale: boolean; cut?: OutcomeUnknown }
  | { do: 'wait' }

export const say = (text: string, failed = true, ...also: Draft[]): Plan & { do: 'say' } => ({
  do: 'say',
  text,
  failed,
  also,
})

/** Told to the model when what was approved is not what would run. */
export const changed = 'The tool changed after this call was approved. It was not run.'

/** The message that holds a call, and which of its calls it is. */
export function placeOf(call: CallPart, bench: Bench): { messageId: string; index: number } {
  const isIt = (one: CallPart) => one.callId === call.callId
  const message = bench.messages.findLast((one) => callsOf(one).some(isIt))
  if (message) return { messageId: message.id, index: callsOf(message).findIndex(isIt) }
  const known = bench.leg.thread.state.calls.get(call.callId)
  if (known) return known
  throw new RuntimeError('agent_failed', 'The agent made a call that no message of it holds.')
}
