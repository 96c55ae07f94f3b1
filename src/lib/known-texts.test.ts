import { expect, test } from 'vitest'
import { KnownTexts } from './known-texts.ts'

const redact = (text: string, ...known: string[]) => new KnownTexts(known).redact(text, '***')

test.each([
  ['every occurrence of a text', 'a sesame-1, sesame-1', ['sesame-1'], 'a ***, ***'],
  ['texts that follow each other', 'sesame-1tulips-9', ['sesame-1', 'tulips-9'], '******'],
  ['texts that overlap, as one', 'x abcdefghij y', ['abcdefgh', 'defghij'], 'x *** y'],
  ['the longest of texts that begin alike', 'sesame-1234', ['sesame', 'sesame-12'], '***34'],
  ['a short text where a longer one fails', 'sesame-12x', ['sesame', 'sesame-123'], '***-12x'],
  ['a text inside of a longer one that fails', 'x-sesame-y', ['x-sesame-z', 'sesame'], 'x-***-y'],
  ['the whole text', 'sesame', ['sesame'], '***'],
  ['texts outside ASCII', 'пароль-1 😀😀😀!', ['пароль-1', '😀😀😀'], '*** ***!'],
  ['a text that the end cuts off', 'wrong key: sesame-1', ['sesame-123'], 'wrong key: ***'],
  ['no cut text of less than six characters', 'a sesam', ['sesame-123'], 'a sesam'],
  ['no text of less than six characters', 'a token', ['token', ''], 'a token'],
])('redacts %s', (_, text, known, left) => {
  expect(redact(text, ...known)).toBe(left)
})

test('redacts the same as a search for each text by itself', () => {
  let seed = 1
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed >>> 16) % below
  }
  const word = (length: number) => Array.from({ length }, () => 'ab'[random(2)]).join('')
  for (let round = 0; round < 300; round++) {
    const known = Array.from({ length: 1 + random(12) }, () => word(4 + random(8)))
    const text = word(60)
    const covered = new Set<number>()
    for (const one of known)
      for (let at = text.indexOf(one); at >= 0; at = text.indexOf(one, at + 1))
        if (one.length >= 6) for (let i = 0; i < one.length; i++) covered.add(at + i)
    for (let at = 0; at + 6 <= text.length; at++)
      if (known.some((one) => one.startsWith(text.slice(at))))
        for (let i = at; i < text.length; i++) covered.add(i)
    const left = [...text].filter((_, i) => !covered.has(i)).join('')
    expect(redact(text, ...known).replaceAll('*', '')).toBe(left)
  }
})

test('a comparison beyond the budget redacts the rest of the text', () => {
  const known = Array.from({ length: 20 }, (_, i) => `${'a'.repeat(5_000)}b${i}`)
  expect(redact(`plain ${'a'.repeat(20_000)}`, ...known)).toMatch(/^plain a*\*\*\*$/)
})

test('10,000 texts that begin alike are searched in a long text in one pass', () => {
  const known = Array.from({ length: 10_000 }, (_, i) => `abcdef${i}`)
  let reads = 0
  // A search for each text reads the text 10,000 times.
  const text = new Proxy(new String('abcdef '.repeat(1_000)), {
    get(target, name) {
      if (name === 'length') return target.length
      if (name === 'charCodeAt') reads++
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  new KnownTexts(known).redact(text as unknown as string, '***')
  expect(reads).toBeGreaterThan(0)
  expect(reads).toBeLessThan(7_000 * 100)
})
