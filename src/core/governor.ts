import { pendingAsks } from './branch.ts'
import { type Need, reserveOf, type Spent, spentOf } from './budget.ts'
import { budgetAsk, type Pending } from './budget-ask.ts'
import type { Bench } from './effects.ts'
import { type Body, type Draft, draft } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import { LegStop } from './leg.ts'
import type { Run } from './state.ts'
import type { Expectation } from './store.ts'
import { type Thread, triesToDecide } from './thread.ts'

/** What happens to a run that nobody attends when its budget is spent. */
export const unattendedRules = ['ask', 'stop', 'summarise', 'continue'] as const
export type UnattendedRule = (typeof unattendedRules)[number]

export interface GovernorRules {
  /** The name of the cheaper model, where there is one. */
  cheaper?: string
  /** Nobody attends any run of the agent. */
  unattended?: boolean
  whenUnattended: UnattendedRule
}

export interface Reserving {
  intent: Body<'effect.intended'>
  need: Need
  pending: Pending
}

/**
 * Reserves a call: its intent is the reservation, durable before it is sent and written only if the
 * budget is still what it was seen to be (I9). A call that the budget does not cover is not sent: the
 * run is parked with one question, or goes on as the rule for unattended runs says. `last`: this is the
 * one call that is left to the run, to sum up.
 */
export async function reserve(
  { intent, need, pending }: Reserving,
  rules: GovernorRules,
  bench: Bench,
): Promise<{ last: boolean }> {
  const { leg, channel } = bench
  const { thread, run, runId } = leg
  return await bench.turn(async () => {
    const watch = new GovernorWatch(thread)
    for (;;) {
      leg.signal.throwIfAborted()
      const { governor } = thread.state
      if (run.lastCall !== null) throw new LegStop('finished')
      const last = governor.last === runId
      const spent = last ? undefined : spentOf(governor, need)
      const held = { ...reserveOf(governor, need), ...(last && { last }) }
      const next = spent
        ? whenSpent(spent, pending, need, rules, bench)
        : draft('effect.intended', { ...intent, ...held })
      try {
        await channel.commitIf(watch.expect(), next)
      } catch (error) {
        if (!isRuntimeError(error, 'journal_conflict')) throw error
        await channel.away(() => watch.again(error))
        continue
      }
      if (next.kind === 'effect.intended') return { last }
      if (next.kind === 'ask.raised') throw new LegStop('parked')
    }
  })
}

/** What is written in place of a call that the budget does not cover. */
function whenSpent(
  spent: Spent,
  pending: Pending,
  need: Need,
  rules: GovernorRules,
  bench: Bench,
): Draft<'ask.raised' | 'governor.set'> {
  const { run, runId, thread } = bench.leg
  if (isAsked(thread, run)) throw new LegStop('parked')
  const alone = rules.unattended || run.options.unattended
  switch (alone ? rules.whenUnattended : 'ask') {
    case 'ask':
      return draft('ask.raised', { ask: budgetAsk(spent, pending, need, rules.cheaper, bench) })
    case 'summarise':
      return draft('governor.set', { last: runId })
    case 'continue':
      if (run.extended) throw new RuntimeError('budget_spent')
      return draft('governor.set', { resetCounter: true, extended: runId })
    case 'stop':
      throw new RuntimeError('budget_spent')
  }
}

const isAsked = ({ state }: Thread, run: Run): boolean =>
  pendingAsks(state, run).some(({ ask }) => ask.kind === 'budget')

/** What was seen of a governor, for a guard: any change of what may be called is another mark. */
export class GovernorWatch {
  readonly #thread: Thread
  /** Threads of before there was this fact have none until their next change. */
  #absent = false
  #seen: string | null = null
  #tries = 0

  constructor(thread: Thread) {
    this.#thread = thread
  }

  expect(): Expectation[] {
    this.#seen = this.#thread.state.governor.mark
    return [{ fact: 'governor', is: this.#absent ? null : this.#seen }]
  }

  /** After a conflict: looks again. */
  async again(error: unknown): Promise<void> {
    if (++this.#tries >= triesToDecide) throw error
    await this.#thread.sync()
    const same = this.#thread.state.governor.mark === this.#seen
    this.#absent = same && !this.#absent
  }
}
