import { expect, test } from 'vitest'
import { heapBytes, isLarger } from './size.ts'

const limit = { values: 10, characters: 20 }

test('a value is larger than a limit by its values, its names or its characters', () => {
  expect(isLarger({ a: [1, 2, 3], b: 'text' }, limit)).toBe(false)
  expect(isLarger(new Array(9).fill(0), limit)).toBe(false)
  expect(isLarger(new Array(10).fill(0), limit)).toBe(true)
  expect(isLarger({ a: 1, b: 1, c: 1, d: 1, e: 1 }, limit)).toBe(true)
  expect(isLarger('x'.repeat(21), limit)).toBe(true)
  expect(isLarger({ ['n'.repeat(21)]: 1 }, limit)).toBe(true)
})

test('a value nested 100,000 levels deep is measured without recursion', () => {
  let deep: unknown = 1
  for (let i = 0; i < 100_000; i++) deep = [deep]
  expect(isLarger(deep, limit)).toBe(true)
  expect(isLarger(deep, { values: 200_000, characters: 0 })).toBe(false)
})

test.each([
  ['empty objects', '{}', 60],
  ['empty lists', '[]', 16],
  ['numbers', '0', 8],
  ['texts', '"日本"', 24],
  ['objects with fields', '{"a":{},"b":0}', 100],
])('a list of %s has at least the bytes of its items', (_, item, bytes) => {
  const list = JSON.parse(`[${Array(1_000).fill(item)}]`)
  expect(heapBytes(list)).toBeGreaterThanOrEqual(1_000 * bytes)
})

test('the bytes of a value nested 100,000 levels deep are counted without recursion', () => {
  let deep: unknown = 1
  for (let i = 0; i < 100_000; i++) deep = [deep]
  expect(heapBytes(deep)).toBeGreaterThan(1_600_000)
})
