import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeName, encodeName } from './names.ts'

test.each([
  ['thread_01h.v2-x', 'thread_01h.v2-x'],
  ['..', '%2E.'],
  ['.hidden', '%2Ehidden'],
  ['../x', '%2E.%2Fx'],
  ['a\u0000b', 'a%00b'],
  ['%2e', '%252e'],
  ['é~', '%C3%A9%7E'],
  ['', '%'],
])('writes %j as %s', (id, name) => {
  expect(encodeName(id)).toBe(name)
  expect(decodeName(name)).toBe(id)
})

test('shortens what is too long for a file system, and keeps it readable', () => {
  const name = encodeName(`${'long-'.repeat(100)}💥`)
  expect(name).toMatch(/^long-long-.*~[0-9a-f]{64}$/)
  expect(name.length).toBeLessThanOrEqual(180)
  expect(decodeName(name)).toBeUndefined()
})

test('gives different ids different names that stay in their folder', () => {
  const id = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.string({ unit: fc.constantFrom('.', '/', '%', '~', 'a', '\ud800', '2', 'E') }),
  )
  fc.assert(
    fc.property(id, id, (a, b) => {
      expect(encodeName(a)).toMatch(/^[A-Za-z0-9_%~-][A-Za-z0-9_%~.-]*$/)
      expect(encodeName(a).length).toBeLessThanOrEqual(180)
      expect(encodeName(a) === encodeName(b)).toBe(a === b)
    }),
  )
})
