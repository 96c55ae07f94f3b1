/** For those that nobody knows: few models of today read less. */
const unknown = 32_000

/** Tokens that models are known to take, by how their names begin; the first that fits. */
const known: readonly (readonly [start: string, tokens: number])[] = [
  ['openai/gpt-4.1', 1_047_576],
  ['openai/gpt-4o', 128_000],
  ['openai/gpt-4-turbo', 128_000],
  ['openai/gpt-4', 8_192],
  ['openai/gpt-3.5', 16_385],
  ['openai/gpt-5', 272_000],
  ['openai/o', 200_000],
  ['openai/', 128_000],
  ['anthropic/', 200_000],
  ['google/gemini', 1_048_576],
  ['google/', 32_000],
]

export const windowOf = (name: string): number =>
  known.find(([start]) => name.startsWith(start))?.[1] ?? unknown
