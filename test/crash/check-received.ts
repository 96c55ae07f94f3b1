import type { Known } from '../../src/core/entries.ts'
import type { Received } from '../support/record.ts'
import type { Complain, Thread } from './checker.ts'
import type { Told } from './person.ts'

interface Counted {
  /** A remote leg that may be repeated only if a person says so: when a person said so. */
  permitted?: number
  /** Attempts that the journal granted before they were made. */
  intended: number
  /** Attempts whose result the journal has. */
  done: number
}

/**
 * I9, by the record of the provider and of the remote agent themselves: every request that they got was granted by
 * the journal before, and every result that the journal has is of a request that they got.
 */
export function checkReceived(
  threads: readonly Thread[],
  received: readonly Received[],
  { numbers, deleted }: Pick<Told, 'numbers' | 'deleted'>,
  complain: Complain,
): void {
  const granted = new Map<string, Counted>()
  for (const thread of threads) for (const entry of thread.entries) count(granted, thread, entry)
  for (const thread of threads) permitRepeats(granted, thread)
  const seen = new Map<string, number>()
  for (const one of received) {
    const chat = numbers.get(one.n)
    if (chat !== undefined && deleted.has(chat)) continue
    const key = one.kind === 'model' ? modelKey(one.n) : one.effectId
    seen.set(key, (seen.get(key) ?? 0) + 1)
  }
  for (const [key, times] of seen) {
    const { intended = 0, permitted } = granted.get(key) ?? {}
    if (times > intended) complain(`${key}: received ${times} times, granted ${intended} times`)
    if (permitted !== undefined && times > 1 + permitted)
      complain(`${key}: received ${times} times, and people permitted ${permitted} repetitions`)
  }
  for (const [key, { done }] of granted) {
    const times = seen.get(key) ?? 0
    if (done > times) complain(`${key}: ${done} results, and it was received ${times} times`)
  }
}

const modelKey = (n: number) => `model call of message #${n}`

function count(granted: Map<string, Counted>, { state }: Thread, entry: Known): void {
  if (entry.kind !== 'effect.intended' && entry.kind !== 'effect.done') return
  const { effect, effectId } = entry.body
  if (effect === 'tool') return
  const key = effect === 'remote' ? effectId : modelKey(numberOf(state, entry.runId ?? ''))
  const counted = granted.get(key) ?? { intended: 0, done: 0 }
  if (entry.kind === 'effect.intended') counted.intended++
  else counted.done++
  granted.set(key, counted)
}

/** I4: a remote leg that is not idempotent is repeated only after a person said that it did not happen, or retried the run. */
function permitRepeats(granted: Map<string, Counted>, { entries, state }: Thread): void {
  for (const [effectId, { intent, runId }] of state.effects) {
    if (intent.effect !== 'remote' || intent.idempotent) continue
    const denied = [...state.asks.values()].filter(
      ({ ask, answer }) => ask.effectId === effectId && answer?.outcome === 'did_not',
    )
    const retried = entries.filter(
      (one) => one.kind === 'run.queued' && one.runId === runId && one.body.why === 'retry',
    )
    granted.get(effectId)!.permitted = denied.length + retried.length
  }
}

/** The number of the message that a run answers. */
function numberOf({ runs, messages }: Thread['state'], runId: string): number {
  const said = (runs.get(runId)?.messageIds ?? []).map((id) => messages.get(id)!.message)
  const last = said.findLast(({ role }) => role === 'user')
  const text = last?.parts.map((part) => ('text' in part ? part.text : '')).join('') ?? ''
  return Number(/#(\d+)/.exec(text)?.[1] ?? 0)
}
