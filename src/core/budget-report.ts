import type { StartingBudget } from './agent-setups.ts'
import { governorView, type Softness, softness } from './budget.ts'
import { budgetAskOf } from './budget-set.ts'
import type { AgentSetup } from './context.ts'
import type { ThreadState } from './state.ts'

/** All there is to know of a thread's budget. */
export function governorReport(state: ThreadState, setup: AgentSetup | undefined) {
  const asked = budgetAskOf(state)
  const { isHitlEnabled } = state.governor
  const mode = asked ? 'asking' : isHitlEnabled ? 'auto' : 'off'
  const view = governorView(state.governor)
  const soft: Softness = setup ? softnessOf(setup) : unknown
  return {
    ...view,
    tokens: { ...view.tokens, hard: false, why: soft.tokens },
    money: { ...view.money, hard: false, why: soft.money },
    mode: mode as 'off' | 'auto' | 'asking',
    pending: asked?.ask.askId ?? null,
  }
}

/** Why limits of an agent's tokens and money are best-effort. */
export function softnessOf({ model, fallback, cheaper, rules }: AgentSetup) {
  const models = [model, fallback, cheaper].flatMap((one) => (one ? [one.name] : []))
  return softness(models, rules)
}

/** Limits that the server reports at start-up as best-effort, with the reason. */
export function softLimits(setups: AgentSetup[], budgetOf: (agent: string) => StartingBudget) {
  const found = new Map<string, { limit: string; why: string; agents: string[] }>()
  for (const setup of setups) {
    const { name } = setup.agent
    const { tokenLimit, moneyLimit } = budgetOf(name)
    const { tokens, money } = softnessOf(setup)
    for (const [limit, most, why] of [
      ['tokens', tokenLimit, tokens],
      ['money', moneyLimit, money],
    ] as const) {
      if (!most) continue
      const one = found.get(`${limit} ${why}`) ?? { limit, why, agents: [] }
      found.set(`${limit} ${why}`, { ...one, agents: [...one.agents, name] })
    }
  }
  return [...found.values()]
}

const unknown = { tokens: 'the agent is gone', money: 'the agent is gone' }
