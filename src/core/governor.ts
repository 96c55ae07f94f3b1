import type { Bench } from './effects.ts'
import { draft } from './entries.ts'
import { LegStop } from './leg.ts'

/** Milliseconds a person has to grant more calls. */
const patience = 24 * 3_600_000

/**
 * Stops before a model call that the thread's budget does not cover: asks for more and ends the
 * leg. The reservation itself is the call's intent, which the journal counts.
 */
export async function overBudget({ leg, channel, clock, newId }: Bench): Promise<void> {
  const { governor, asks } = leg.thread.state
  if (!governor.isHitlEnabled || governor.actionCounter < governor.actionLimit) return
  const open = leg.run.askIds.some((id) => {
    const record = asks.get(id)
    return record?.ask.kind === 'budget' && !record.answer
  })
  if (!open) {
    const { isHitlEnabled, actionLimit, actionCounter, total } = governor
    const ask = {
      askId: newId('ask'),
      kind: 'budget' as const,
      title: `All ${actionLimit} model calls of this chat's budget are used. Continue?`,
      step: leg.legId,
      key: `budget:${total}`,
      input: { actionLimit, isHitlEnabled, actionsUsed: actionCounter, total },
      deadline: clock.now() + patience,
      atTimeout: 'stop' as const,
    }
    await channel.commit(draft('ask.raised', { ask }))
  }
  throw new LegStop('parked')
}
