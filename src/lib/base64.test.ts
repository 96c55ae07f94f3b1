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

test('takes out what an address holds', () => {
  const png = { mediaType: 'image/png', data: 'aGk=' }
  expect(insideOf('data:image/png;base64,aGk=')).toEqual(png)
  expect(insideOf('data:image/png;name=a.png;base64,aGk=')).toEqual(png)
  expect(insideOf('data:image/png,hi')).toBeUndefined()
  expect(insideOf('https://example.com/a.png')).toBeUndefined()
})
