import type { Usage } from './entries.ts'

/** What one leg used of one model. Every attempt is a call, also one that failed. */
export interface UsageLine extends Usage {
  legId: string
  model: string
  calls: number
}

/** Money per million tokens. */
export interface Price {
  input: number
  output: number
  /** Without it, cached input costs what input costs. */
  cachedInput?: number
}

/** By the name of the model: `openai/gpt-5`. */
export type Prices = Readonly<Record<string, Price>>

const counts = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'reasoningTokens',
  'cost',
] as const

/** Adds what was said to a sum; what nobody said stays unsaid. */
export function addUsage(sum: Usage, more: Usage): void {
  for (const count of counts) {
    if (more[count] !== undefined) sum[count] = (sum[count] ?? 0) + more[count]
  }
}

export function lineOf(lines: UsageLine[], legId: string, model: string): UsageLine {
  let line = lines.find((one) => one.legId === legId && one.model === model)
  if (!line) {
    line = { legId, model, calls: 0 }
    lines.push(line)
  }
  return line
}

export function totalOf(lines: Iterable<UsageLine>): Usage & { calls: number } {
  const total: Usage & { calls: number } = { calls: 0 }
  for (const line of lines) {
    total.calls += line.calls
    addUsage(total, line)
  }
  return total
}

/** The same with what it costs, where the model has a price. */
export function priced(usage: Usage, price: Price | undefined): Usage {
  if (!price) return usage
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 } = usage
  const cached = Math.min(cachedInputTokens, inputTokens)
  const { input, output, cachedInput = input } = price
  const cost = (inputTokens - cached) * input + cached * cachedInput + outputTokens * output
  return { ...usage, cost: cost / 1_000_000 }
}
