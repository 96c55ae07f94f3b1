import { expect, test } from 'vitest'
import { priced, totalOf } from './usage.ts'

test('money is tokens by the table, cached ones at their own price', () => {
  const used = { inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400 }
  expect(priced(used, { input: 2, output: 8, cachedInput: 0.5 }).cost).toBeCloseTo(0.0022, 10)
  expect(priced(used, { input: 2, output: 8 }).cost).toBeCloseTo(0.0028, 10)
  expect(priced(used, undefined)).toEqual(used)
})

test('a sum says what its parts say, and nothing of what none of them says', () => {
  const lines = [
    { legId: 'a', model: 'm', calls: 2, inputTokens: 5 },
    { legId: 'b', model: 'm', calls: 1, inputTokens: 1, outputTokens: 3 },
  ]
  expect(totalOf(lines)).toEqual({ calls: 3, inputTokens: 6, outputTokens: 3 })
})
