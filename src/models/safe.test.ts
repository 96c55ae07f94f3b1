import { expect, test, vi } from 'vitest'
import { safeInput } from './safe.ts'

test('an input that providers take as it is is not copied', () => {
  const copy = vi.spyOn(Object, 'fromEntries')
  const input = safeInput(`{"a":[${'{"b":"\\n"},'.repeat(1_000)}{}]}`)
  const copies = copy.mock.calls.length
  copy.mockRestore()
  expect(input.a).toHaveLength(1_001)
  expect(copies).toBe(0)
})

test.each([
  ['{"a":[{"b":"\\ud800"}]}', { a: [{ b: '\ufffd' }] }],
  ['{"a":[{"\\ud800":1}]}', { a: [{ '\ufffd': 1 }] }],
  ['{"a":[{"__proto__":{"b":1},"c":2}]}', { a: [{ c: 2 }] }],
  ['{"a":[{"\\u005f_proto__":{"b":1},"c":2}]}', { a: [{ c: 2 }] }],
  ['[1]', { not_valid: '[1]' }],
  ['{', { not_valid: '{' }],
  ['', {}],
])('the input %s is made safe', (text, safe) => {
  expect(safeInput(text)).toEqual(safe)
})

test('an input of 70 levels is shown as text', () => {
  const deep = `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`
  expect(safeInput(deep)).toEqual({ not_valid: deep })
})
