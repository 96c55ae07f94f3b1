import fc from 'fast-check'
import { expect, test } from 'vitest'
import { insideOf, isBase64 } from './base64.ts'

test('knows what is base64', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => isBase64(Buffer.from(bytes).toString('base64'))),
  )
})

test.each([
  ['%%%%'],
  ['aGk'], // not padded
  ['aGk=='],
  ['a=bc'],
  ['aG k'],
  ['aGk=\n'],
  ['data:image/png;base64,aGk='],
  ['_-_-'], // for addresses
])('knows that %j is not', (text) => {
  expect(isBase64(text)).toBe(false)
})

test('agrees with the grammar of RFC 4648 on any text', () => {
  const alphabet = fc.constantFrom(...'AZaz09+/=-_ \n\0\u0141\uff21\u{10041}\ud83d')
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 12 }), (characters) => {
      const text = characters.join('')
      const grammar = text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
      expect(isBase64(text)).toBe(grammar)
    }),
    { numRuns: 20_000 },
  )
})

test('takes out what an address holds', () => {
  const png = { mediaType: 'image/png', data: 'aGk=' }
  expect(insideOf('data:image/png;base64,aGk=')).toEqual(png)
  expect(insideOf('data:image/png;name=a.png;base64,aGk=')).toEqual(png)
  expect(insideOf('data:image/png,hi')).toBeUndefined()
  expect(insideOf('https://example.com/a.png')).toBeUndefined()
})
