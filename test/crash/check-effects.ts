import type { Known } from '../../src/core/entries.ts'
import { ended } from '../../src/core/state.ts'
import type { Complain, Thread } from './checker.ts'
import type { Execution } from './outside.ts'

type State = 'intended' | 'done' | 'failed' | 'unknown'

/** I3 and I4: the ledger against what the outside saw. */
export function checkEffects(threads: Thread[], seen: Execution[], complain: Complain): void {
  const happened = new Map<string, number>()
  for (const { effectId } of seen) happened.set(effectId, (happened.get(effectId) ?? 0) + 1)
  const intents = new Set<string>()
  for (const thread of threads) {
    const told: Complain = (problem) => complain(`${thread.threadId}: ${problem}`)
    checkLedger(thread, intents, told)
    checkOutcomes(thread, happened, told)
    checkApprovals(thread, told)
  }
  for (const { effectId, n } of seen) {
    if (!intents.has(effectId)) complain(`${effectId} (${n}) happened and was never intended`)
  }
}

/** What happens to an effect, step by step. */
function checkLedger({ entries, state }: Thread, intents: Set<string>, complain: Complain): void {
  const states = new Map<string, { state: State; attempt: number; how: Known }>()
  for (const entry of entries) {
    if (!entry.kind.startsWith('effect.')) continue
    const { effectId } = entry.body as { effectId: string }
    const before = states.get(effectId)
    const said = `seq ${entry.seq}: ${entry.kind} of ${effectId} after ${before?.state}`
    if (entry.kind === 'effect.intended') {
      const { attempt, idempotent, effect } = entry.body
      if (attempt !== (before?.attempt ?? 0) + 1) complain(`${said}: attempt ${attempt}`)
      if (before?.state === 'done' || before?.state === 'intended') complain(said)
      if (before && effect === 'tool' && !idempotent && !allowed(before, effectId)) complain(said)
      intents.add(effectId)
      states.set(effectId, { state: 'intended', attempt, how: entry })
    } else {
      const next = entry.kind.slice('effect.'.length) as State
      const open = before?.state === 'intended' || before?.state === 'unknown'
      // Stopped on the way, it is in doubt as well: then a person says how it ended.
      if (!open && !(before?.state === 'failed' && doubt(before, effectId))) complain(said)
      states.set(effectId, { state: next, attempt: before?.attempt ?? 0, how: entry })
    }
  }

  /** What the person said about an attempt that was in doubt. */
  function doubt({ attempt }: { attempt: number }, id: string) {
    const asked = [...state.asks.values()].find(({ ask }) => ask.key === `doubt:${id}:${attempt}`)
    return asked?.answer
  }

  /** A non-idempotent tool is begun again only when a person said so, or it never began. */
  function allowed(before: { state: State; attempt: number; how: Known }, id: string): boolean {
    const { how } = before
    if (how.kind === 'effect.failed' && how.body.error.message === notBegun) return true
    return doubt(before, id)?.outcome === 'did_not'
  }
}

const notBegun = 'Stopped before it began.'

function checkOutcomes({ state }: Thread, happened: Map<string, number>, complain: Complain): void {
  for (const [effectId, { intent, state: is, runId }] of state.effects) {
    if (intent.effect !== 'tool') continue
    const times = happened.get(effectId) ?? 0
    const said = `${intent.name} ${effectId} is ${is} and happened ${times} times`
    if (times > intent.attempt) complain(`${said} in ${intent.attempt} attempts`)
    if (!intent.idempotent && times > 1) complain(said)
    if (is === 'done' && times === 0) complain(said)
    const run = state.runs.get(runId)!
    if (is === 'intended' && ended(run)) complain(`${said}, its run ${run.status}`)
    if (is !== 'unknown' || run.status === 'cancelled' || run.status === 'failed') continue
    const asked = [...state.asks.values()].some(
      ({ ask, answer }) => ask.kind === 'in_doubt' && ask.effectId === effectId && !answer,
    )
    if (!asked) complain(`${said}, its run ${run.status}, and nobody is asked`)
  }
}

/** What was approved was done, or is seen not to have been. */
function checkApprovals({ state }: Thread, complain: Complain): void {
  for (const { ask, answer, runId } of state.asks.values()) {
    if (ask.kind !== 'approval') continue
    const run = state.runs.get(runId)!
    const made = [...state.effects.values()].filter(({ intent }) => intent.askId === ask.askId)
    if (made.length > 1) complain(`${ask.askId} led to ${made.length} effects`)
    if (answer?.state !== 'approved' && made.length > 0)
      complain(`${ask.askId} is ${answer?.state} and led to an effect`)
    if (answer?.state === 'approved' && made.length === 0 && run.status === 'completed')
      complain(`${ask.askId} was approved and nothing came of it`)
    const [effect] = made
    if (effect && effect.intent.digest !== (answer?.digest ?? ask.digest))
      complain(`${ask.askId}: another call was made than the one that was approved`)
  }
}
