import type { MeteredCall } from './model-calls.ts'
import type { Providers } from './providers.ts'

const counters = {
  handrail_model_calls_total: 'Model calls, each attempt, by how it ended',
  handrail_model_tokens_total:
    'Tokens that providers said were used; cached and reasoning are among the others',
  handrail_model_cost_total: 'Money by the price table',
} as const

/** Models that are counted by name, and characters of a name: a graph may let its clients name the model. */
const maxModels = 500
const maxName = 200

/** Counts model calls of this process, as Prometheus reads them. */
export function callMeter(providers: Providers) {
  const sums = new Map<string, number>()
  const models = new Set<string>()
  const labelOf = (model: string): string => {
    if (model.length <= maxName && models.size < maxModels) models.add(model)
    return models.has(model) ? model : 'other'
  }
  const add = (name: keyof typeof counters, labels: Record<string, string>, by: number) => {
    const list = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`)
    const key = `${name}{${list.join(',')}}`
    sums.set(key, (sums.get(key) ?? 0) + by)
  }
  return {
    take({ model, tenant, outcome, usage = {} }: MeteredCall): void {
      const who = { model: labelOf(model), tenant }
      add('handrail_model_calls_total', { ...who, outcome }, 1)
      const kinds = {
        input: usage.inputTokens,
        output: usage.outputTokens,
        cached: usage.cachedInputTokens,
        reasoning: usage.reasoningTokens,
      }
      for (const [kind, count] of Object.entries(kinds))
        if (count) add('handrail_model_tokens_total', { ...who, kind }, count)
      if (usage.cost) add('handrail_model_cost_total', who, usage.cost)
    },
    text(): string {
      const lines: string[] = []
      for (const [name, help] of Object.entries(counters)) {
        lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} counter`)
        for (const [key, sum] of sums) if (key.startsWith(`${name}{`)) lines.push(`${key} ${sum}`)
      }
      const circuit = 'handrail_provider_circuit_open'
      lines.push(`# HELP ${circuit} 1 while a provider is not asked`, `# TYPE ${circuit} gauge`)
      const states = [...providers.states()]
      for (const [name, { isOpen }] of states)
        lines.push(`${circuit}{provider="${escaped(name)}"} ${isOpen ? 1 : 0}`)
      const clients = 'handrail_provider_client_circuits_open'
      lines.push(
        `# HELP ${clients} Keys of clients with which a provider is not asked`,
        `# TYPE ${clients} gauge`,
      )
      for (const [name, { openClients }] of states)
        lines.push(`${clients}{provider="${escaped(name)}"} ${openClients}`)
      return `${lines.join('\n')}\n`
    },
  }
}

const escaped = (value: string): string =>
  value.replace(/[\\"\n]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`))
