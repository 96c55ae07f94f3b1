import { lookAt } from './doubt.ts'
import { editOfBegun, withEdit } from './edited.ts'
import type { Bench } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { type Execution, execute } from './execute.ts'
import { isOpen } from './grants.ts'
import { LegStop } from './leg.ts'
import { type CallPart, toolText } from './messages.ts'
import type { Plan, Toolbox } from './plan.ts'
import { planFor } from './planning.ts'
import { isOutdated } from './precondition.ts'
import type { Expectation } from './store.ts'
import { PreconditionChanged } from './tool.ts'

export type { Toolbox } from './plan.ts'

/** Guarded tool calls of one leg: each by the policy, the answers of people, and the ledger. */
export function toolCaller(box: Toolbox, bench: Bench) {
  const { leg, channel, clock } = bench

  return async (calls: readonly CallPart[]): Promise<void> => {
    const open = calls.filter(
      (call) => !bench.messages.some((one) => one.role === 'tool' && one.callId === call.callId),
    )
    let parked = false
    const raise = async (asks: Promise<Ask>[], expect: Expectation[] = []): Promise<void> => {
      if (asks.length === 0) return
      const ready = await Promise.all(asks)
      await channel.commitIf(expect, ...ready.map((ask) => draft('ask.raised', { ask })))
      parked = true
    }
    const run = async (call: CallPart, execution: Execution): Promise<void> => {
      const { grantId } = execution.intent
      // It may have ended while the call waited for its turn.
      const grant = grantId === undefined ? undefined : leg.thread.state.grants.get(grantId)
      if (grantId !== undefined && !(grant && isOpen(grant, clock.now())))
        return await act(call, planFor(call, box, bench))
      const { askAgain } = execution
      if (askAgain && (await isOutdated(execution, bench))) return await raise([askAgain()])
      const cut = await execute(execution, bench)
      if (cut instanceof PreconditionChanged) return await raise(askAgain ? [askAgain()] : [])
      if (!cut) return
      const plan = planFor(call, box, bench)
      await act(call, plan.do === 'look' ? { ...plan, cut } : plan)
    }
    /** Carries out a plan, and plans anew if what the plan relied on has changed meanwhile. */
    const act = async (call: CallPart, plan: Plan): Promise<void> => {
      leg.signal.throwIfAborted()
      try {
        await carryOut(call, plan)
      } catch (error) {
        if (!isRefused(error, plan)) throw error
        await act(call, planFor(call, box, bench))
      }
    }
    const carryOut = async (call: CallPart, plan: Plan): Promise<void> => {
      if (plan.do === 'wait') parked = true
      else if (plan.do === 'raise') await raise([plan.ask()], plan.expect)
      else if (plan.do === 'run') await run(call, plan.execution)
      else if (plan.do === 'look') {
        const moved = plan.record.state !== plan.execution.seen
        const next = moved ? planFor(call, box, bench) : await lookAt(plan, call, box, bench)
        await act(call, next)
      } else {
        const { messageId = '' } = plan
        const free = messageId !== '' && !leg.thread.state.messages.has(messageId)
        const id = free ? messageId : bench.newId('msg')
        const result = toolText(id, call, plan.text, plan.failed)
        if (plan.failed) result.meta = { notRun: true }
        const message = withEdit(result, editOfBegun(call, bench))
        const drafts = [...plan.also, draft('message.added', { message, for: 'both' })]
        if (plan.expect) await channel.commitIf(plan.expect, ...drafts)
        else channel.write(...drafts)
        bench.messages.push(message)
      }
    }
    // What needs a person is asked at once and together, while the rest already runs.
    const all = open.map((call) => [call, planFor(call, box, bench)] as const)
    const { settling } = leg
    const plans = settling
      ? all.filter(([, { do: what }]) => what === 'look' || what === 'say')
      : all
    const asks = plans.flatMap(([, plan]) => (plan.do === 'raise' ? [plan.ask()] : []))
    const rest = plans.filter(([, plan]) => plan.do !== 'raise')
    const results = await Promise.allSettled([raise(asks), inParallel(rest, box.parallel, act)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    if (parked) throw new LegStop('parked')
    if (settling) throw settling
  }
}

/**
 * Whether the store refused to record this plan because its grant was revoked, or because the effect that it
 * is about was settled or begun meanwhile.
 */
function isRefused(error: unknown, plan: Plan): boolean {
  if (!isRuntimeError(error, 'journal_conflict')) return false
  const { fact } = error.data ?? {}
  if (plan.do === 'run') {
    const { grantId, effectId } = plan.execution.intent
    return fact === `effect:${effectId}` || (grantId !== undefined && fact === `grant:${grantId}`)
  }
  return 'expect' in plan && plan.expect?.some((one) => one.fact === fact) === true
}

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
