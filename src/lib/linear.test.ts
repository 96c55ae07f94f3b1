import { describe, expect, test } from 'vitest'
import { compileLinear, estimateSize } from './linear.ts'

describe('estimateSize', () => {
  test.each([
    'abc',
    '^[a-z]+$',
    'a{1000}',
    '(ab|c){20,30}',
    '((a{10}){10}){5}',
    '\\p{L}{500}',
    '[a-z0-9_]{64}',
    '^((a|b|ab)*c?){1,300}$',
    '\\{a{3}',
    '[{}]{40}x{2,}',
    '(?:\\d{4}[ -]){3}\\d{4}',
  ])('is of the order of the compiled program for %s', (pattern) => {
    const size = compileLinear(pattern).programSize()
    expect(estimateSize(pattern)).toBeGreaterThan(size / 4 - 4)
    expect(estimateSize(pattern)).toBeLessThan(size * 6 + 8)
  })
})
