import { expect, test } from 'vitest'
import { textsOf } from './json-texts.ts'

test('textsOf yields the strings and field names of a value, and no numbers or indexes', () => {
  const value = { a: ['b', 1, { c: null }], d: 'e' }
  expect([...textsOf(value)].sort()).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect([...textsOf('text')]).toEqual(['text'])
  expect([...textsOf(7)]).toEqual([])
})

test('a value nested 100,000 deep does not exhaust the stack', () => {
  let value: unknown = 'innermost'
  for (let n = 0; n < 100_000; n++) value = n % 2 ? [value] : { name: value }
  expect([...textsOf(value)]).toContain('innermost')
})
