import { lookAt } from './doubt.ts'
import type { Bench } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { type Execution, execute } from './execute.ts'
import { isOpen } from './grants.ts'
import { LegStop } from './leg.ts'
import { type CallPart, toolText } from './messages.ts'
import type { Plan, Toolbox } from './plan.ts'
import { planFor } from './planning.ts'

export type { Toolbox } from './plan.ts'

/** Guarded tool calls of one leg: each by the policy, the answers of people, and the ledger. */
export function toolCaller(box: Toolbox, bench: Bench) {
  const { leg, channel, clock } = bench

  return async (calls: readonly CallPart[]): Promise<void> => {
    const open = calls.filter(
      (call) => !bench.messages.some((one) => one.role === 'tool' && one.callId === call.callId),
    )
    let parked = false
    const raise = async (asks: Promise<Ask>[]): Promise<void> => {
      if (asks.length === 0) return
      const ready = await Promise.all(asks)
      await channel.commit(...ready.map((ask) => draft('ask.raised', { ask })))
      parked = true
    }
    const run = async (call: CallPart, execution: Execution): Promise<void> => {
      const { grantId, effectId } = execution.intent
      // It may have ended while the call waited for its turn.
      const grant = grantId === undefined ? undefined : leg.thread.state.grants.get(grantId)
      if (grantId !== undefined && !(grant && isOpen(grant, clock.now())))
        return await act(call, planFor(call, box, bench))
      const cut = await execute(execution, bench).catch((error: unknown) => {
        if (grantId !== undefined && isRevoked(error, grantId)) return 'revoked' as const
        throw error
      })
      if (cut === 'revoked') return await act(call, planFor(call, box, bench))
      const record = leg.thread.state.effects.get(effectId)
      if (cut && record) await act(call, { do: 'look', execution, record, stale: false, cut })
    }
    const act = async (call: CallPart, plan: Plan): Promise<void> => {
      leg.signal.throwIfAborted()
      if (plan.do === 'wait') parked = true
      else if (plan.do === 'raise') await raise([plan.ask()])
      else if (plan.do === 'run') await run(call, plan.execution)
      else if (plan.do === 'look') await act(call, await lookAt(plan, call, box, bench))
      else {
        const { messageId = '' } = plan
        const free = messageId !== '' && !leg.thread.state.messages.has(messageId)
        const id = free ? messageId : bench.newId('msg')
        const message = toolText(id, call, plan.text, plan.failed)
        if (plan.failed) message.meta = { notRun: true }
        channel.write(...plan.also, draft('message.added', { message, for: 'both' }))
        bench.messages.push(message)
      }
    }
    // What needs a person is asked at once and together, while the rest already runs.
    const plans = open.map((call) => [call, planFor(call, box, bench)] as const)
    const asks = plans.flatMap(([, plan]) => (plan.do === 'raise' ? [plan.ask()] : []))
    const rest = plans.filter(([, plan]) => plan.do !== 'raise')
    const results = await Promise.allSettled([raise(asks), inParallel(rest, box.parallel, act)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    if (parked) throw new LegStop('parked')
  }
}

/** The store has refused to begin by a grant that was taken back. */
const isRevoked = (error: unknown, grantId: string): boolean =>
  isRuntimeError(error, 'journal_conflict') && error.data?.fact === `grant:${grantId}`

async function inParallel(
  plans: readonly (readonly [CallPart, Plan])[],
  most: number,
  act: (call: CallPart, plan: Plan) => Promise<void>,
): Promise<void> {
  const rest = plans.values()
  const workers = Array.from({ length: Math.min(most, plans.length) }, async () => {
    for (const [call, plan] of rest) await act(call, plan)
  })
  const results = await Promise.allSettled(workers)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
