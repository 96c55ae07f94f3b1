import fc from 'fast-check'
import { expect, test } from 'vitest'
import { containsText } from './contains.ts'

test('containsText answers as String.includes does', () => {
  const word = (maxLength: number) =>
    fc.array(fc.constantFrom('a', 'b'), { maxLength }).map((letters) => letters.join(''))
  fc.assert(
    fc.property(word(30), word(6), (text, part) => {
      expect(containsText(text, part)).toBe(text.includes(part))
    }),
    { numRuns: 500 },
  )
})
