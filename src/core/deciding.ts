import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { type Answering, answer, type Decider, type Named } from './asks.ts'
import { governorReport } from './budget-report.ts'
import { type BudgetChange, setBudget } from './budget-set.ts'
import { type Access, actorOf, type Caller } from './callers.ts'
import type { AgentSetup } from './context.ts'
import type { Ask, RunOptions } from './entries.ts'
import { revoke } from './grants.ts'
import { inbox } from './inbox.ts'
import type { RequestKey } from './keys.ts'
import { setupAt } from './parts.ts'
import { judge } from './policy.ts'
import { refusals } from './refusals.ts'
import type { RunSecrets } from './secrets.ts'
import type { Bus, Store } from './store.ts'
import type { Thread } from './thread.ts'
import type { Log } from './worker.ts'

interface Setup extends Pick<Access, 'upToDate'> {
  setups: { get(agent: string): AgentSetup | undefined }
  secrets: RunSecrets
  store: Store
  bus: Bus
  clock: Clock
  newId: NewId
  log: Log
  warm: (threadId: string) => Promise<Thread>
  ringHere: (thread: Thread) => void
  /** See `inbox`. */
  every: number
}

/** What people decide: answers, budgets, grants. */
export function deciding({ upToDate, setups, secrets, ringHere, ...setup }: Setup) {
  const { store, bus, clock, newId, log, warm: open, every } = setup

  /** Who asks: found by its path, which says more than its name where an agent is in no configuration. */
  function askerOf({ path, agent = '' }: Ask, running: string): AgentSetup | undefined {
    const own = setups.get(running)
    const at = own && path !== undefined ? setupAt(path, own, setups.get) : undefined
    return at ?? setups.get(agent) ?? own
  }

  function deciderOn(person: Caller, thread: Thread): Decider {
    const { runs, active } = thread.state
    const running = runs.get(active ?? '')?.agent ?? ''
    return {
      thread,
      toolsOf: (ask) => {
        const { toolbox } = askerOf(ask, running) ?? {}
        const { agent = '', policy = [] } = toolbox ?? {}
        return {
          agent,
          tools: toolbox?.tools() ?? new Map(),
          judge: (tool, { input, shown }) => judge(policy, { tool, agent, input, shown }),
        }
      },
      now: clock.now(),
      newId,
      person,
    }
  }

  async function settle(caller: Caller, thread: Thread, answering: Answering) {
    const settled = await answer(deciderOn(caller, thread), answering, actorOf(caller))
    ringHere(thread)
    return settled
  }

  return {
    /** Settles asks of a run together. `settled`: those that these decisions settled. */
    async answer(
      caller: Caller,
      clientId: string,
      answering: Answering & { options?: RunOptions },
    ) {
      const thread = await upToDate(caller, clientId)
      const { active } = thread.state
      if (active !== null && answering.options)
        secrets.keep(thread, active, secrets.split(answering.options, clientId).secrets)
      return { thread, settled: await settle(caller, thread, answering) }
    },

    /** The budget of a thread, as it is now. */
    async governor(caller: Caller, clientId: string) {
      const { state } = await upToDate(caller, clientId)
      return governorReport(state, setups.get(state.agent))
    },

    /** Sets it. Where the thread waits for more, this is the answer. */
    async setGovernor(
      caller: Caller,
      clientId: string,
      change: BudgetChange,
      named: Named,
      key?: RequestKey,
    ) {
      const thread = await upToDate(caller, clientId)
      const by = { actor: actorOf(caller), key }
      await setBudget(deciderOn(caller, thread), change, named, by)
      ringHere(thread)
      return governorReport(thread.state, setups.get(thread.state.agent))
    },

    /** Takes a grant of a thread back: from then on nothing begins by it. */
    async revoke(caller: Caller, clientId: string, grantId: string): Promise<void> {
      await revoke(await upToDate(caller, clientId), grantId, actorOf(caller))
    },

    /** What the caller may decide, across threads. */
    inbox: inbox({ store, bus, clock, every, open, settle }),

    answers: refusals(log),
  }
}
