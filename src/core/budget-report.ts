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
  const sure = (why: string | undefined) =>
    why === undefined ? { hard: true } : { hard: false, why }
  return {
    ...view,
    tokens: { ...view.tokens, ...sure(soft.tokens) },
    money: { ...view.money, ...sure(soft.money) },
    mode: mode as 'off' | 'auto' | 'asking',
    pending: asked?.ask.askId ?? null,
  }
}

/** Why limits of an agent's tokens and money are not hard, if they are not. */
export function softnessOf({ model, fallback, cheaper, rules }: AgentSetup) {
  const models = [model, fallback, cheaper].flatMap((one) => (one ? [one.name] : []))
  return softness(models, rules)
}

/** What is said at start-up: a limit that cannot be kept must not look as if it could. */
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
      if (!most || why === undefined) continue
      const one = found.get(`${limit} ${why}`) ?? { limit, why, agents: [] }
      found.set(`${limit} ${why}`, { ...one, agents: [...one.agents, name] })
    }
  }
  return [...found.values()]
}

const unknown = { tokens: 'the agent is gone', money: 'the agent is gone' }
