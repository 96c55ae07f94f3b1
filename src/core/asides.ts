import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { offshoot } from '../lib/signal.ts'
import { missing } from './agent-setups.ts'
import { type Access, actorOf, type Caller, nameOf } from './callers.ts'
import type { AgentSetup } from './context.ts'
import { type CountedCall, countedCall } from './counted-call.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import type { Guard } from './guard.ts'
import type { Message } from './messages.ts'
import type { Model, ModelEvent, ModelRequest } from './model.ts'
import type { CallRules } from './model-calls.ts'
import type { Thread } from './thread.ts'
import { userBudget, userBudgetId } from './user-budget.ts'
import { watched } from './watch.ts'
import type { Log } from './worker.ts'

interface Setup extends Pick<Access, 'find' | 'withThread'> {
  setups: { get(agent: string): AgentSetup | undefined }
  rules: CallRules
  guard?: Guard | undefined
  userLimit?: number | undefined
  clock: Clock
  newId: NewId
  closing: AbortSignal
  log: Log
}

/** Calls of models outside of any run: suggestions, tasks, judgements. */
export function asides({ find, withThread, setups, rules, guard, userLimit, ...setup }: Setup) {
  const { clock, newId, closing, log } = setup

  /** One call of a model outside of any run: charged to the thread, or to the user's budget of the day. */
  async function* aside(
    caller: Caller,
    thread: Thread | undefined,
    agent: string,
    call: Pick<CountedCall, 'model' | 'request' | 'signal'>,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    const actor = actorOf(caller)
    if (thread) {
      yield* await countedCall(thread, { ...call, actor, first: () => [] }, rules, newId)
    } else if (userLimit === undefined) yield* call.model.stream(call.request, call.signal)
    else {
      const clientId = userBudgetId(clock.now())
      const about = { name: nameOf(caller, clientId), agent, limit: userLimit }
      const { result } = await withThread(caller, clientId, async (own) => {
        const first = () => userBudget(own.state, about)
        return await countedCall(own, { ...call, actor, first }, rules, newId)
      })
      yield* result
    }
  }

  /** What is asked outside of any run is judged, and leaves no trace but its cost. */
  async function refuseInput(
    caller: Caller,
    thread: Thread | undefined,
    agent: string,
    message: Message,
    before: readonly Message[],
  ): Promise<void> {
    const ask = async (model: Model, request: ModelRequest) => {
      let text = ''
      const call = { model, request, signal: closing }
      for await (const event of aside(caller, thread, agent, call))
        if (event.type === 'text') text += event.text
      return text
    }
    const denial = await guard?.input(message, { before: () => before, ask })
    if (denial) throw new RuntimeError('guardrail', denial.reason)
  }

  /**
   * One call of an agent's model outside of any run; nothing of it is kept but its cost, which is the
   * thread's where it is about one. Rejects with `budget_spent` at the limit.
   */
  async function* complete(
    caller: Caller,
    { agent, clientId }: { agent: string; clientId?: string },
    request: ModelRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    const { model } = setups.get(agent) ?? missing(agent)
    const thread = clientId === undefined ? undefined : await find(caller, clientId)
    const last = request.messages.findLast(({ role }) => role === 'user')
    if (last) await refuseInput(caller, thread, agent, last, request.messages)
    const ends = offshoot(signal)
    const call = { model, request, signal: ends.signal }
    const events = aside(caller, thread, agent, call)
    try {
      yield* watched(events, rules.silence, clock, ends.abort)
    } catch (error) {
      const known = signal.aborted || isRuntimeError(error, 'budget_spent')
      if (!known) log.warn({ agent, err: error }, 'a call outside of runs failed')
      throw error
    } finally {
      ends.leave()
    }
  }

  return { complete }
}
