import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WordSearch } from './words.ts'

const found = (words: readonly string[], text: string) =>
  [...new WordSearch(words).find(text)].filter((word) => word !== undefined)

describe('WordSearch', () => {
  test('finds the words that a regular expression per word finds', () => {
    const units = ['a', 'B', 'ſ', 'K', 'Σ', 'ς', '秘', '+', ' ', '\n', '\u200B', '𐐀', '𐐨']
    const text = fc.string({ unit: fc.constantFrom(...units), maxLength: 8 })
    const property = fc.property(fc.array(text, { maxLength: 2 }), text, (words, whole) => {
      const each = words.map((word) => found([word], whole).length > 0)
      expect(each).toEqual(words.map((word) => expected(word)?.test(whole) ?? false))
      expect(found(words, whole).length > 0).toBe(each.includes(true))
    })
    fc.assert(property, { numRuns: 300 })
  })

  test('tells where a word is in the text as it was written', () => {
    const text = 'of  Acme \u00A0\n Corp. and İSTANBUL dogs'
    const words = found(['acme corp', 'dogs', 'corp'], text)
    expect(words.map(({ from, to }) => text.slice(from, to))).toEqual([
      'Acme \u00A0\n Corp',
      'Corp',
      'dogs',
    ])
  })

  test('returns the number of characters at the end that may begin a word', () => {
    const open = (text: string) => {
      const search = new WordSearch(['top secret', 'dog']).find(text)
      for (;;) {
        const { done, value } = search.next()
        if (done) return value
      }
    }
    expect(['It is to', 'top  \n se', 'a car', 'hotdog', ''].map(open)).toEqual([2, 9, 0, 3, 0])
  })

  test('pauses regularly in a long text, whatever the number of words', () => {
    const words = Array.from({ length: 1_000 }, (_, i) => `${'ab'.repeat(90)}${i}`)
    const text = 'ab'.repeat(500_000)
    const pauses = [...new WordSearch(words).find(text)]
    expect(new Set(pauses)).toEqual(new Set([undefined]))
    expect(pauses.length).toBeGreaterThanOrEqual(30)
  })

  test('a word search pauses after a bounded number of results, also where every character ends 200 words', () => {
    const words = Array.from({ length: 200 }, (_, i) => '秘'.repeat(i + 1))
    const between: number[] = [0]
    for (const word of new WordSearch(words).find('秘'.repeat(4_000)))
      if (word) between[between.length - 1]!++
      else between.push(0)
    expect(between.reduce((sum, count) => sum + count, 0)).toBe(200 * 4_000 - 199 * 100)
    expect(Math.max(...between)).toBeLessThan(10_000)
  })

  test('a word search skips positions where only words at or above the limit end', () => {
    const words = ['秘密', '秘', '密']
    expect(found(words, '秘密').map(({ word }) => word)).toEqual([1, 0, 2])
    const limited = [...new WordSearch(words).find('秘密', { words: 1 })]
    expect(limited.map((word) => word?.word)).toEqual([0, 2])
  })

  test('building a word search pauses while it reads 50,000 characters of words', () => {
    const words = Array.from({ length: 250 }, (_, i) => `${'ab'.repeat(98)}${1_000 + i}`)
    const steps = WordSearch.build(words)
    let pauses = 0
    let step = steps.next()
    for (; !step.done; step = steps.next()) pauses++
    expect(pauses).toBeGreaterThan(8)
    const [first] = step.value!.find(`x ${words[7]}`)
    expect(first).toEqual({ word: 7, from: 2, to: 202 })
  })

  test('searches 33,000 words in a long text in one pass', () => {
    const words = Array.from({ length: 33_000 }, (_, i) => `word${i}`)
    expect(found(words, `${'some other text '.repeat(20_000)} word32999`)).toMatchObject([
      { word: 32_999 },
    ])
  })
})

/** How a word was searched for, one by one. */
function expected(word: string): RegExp | undefined {
  const parts = word.split(/[\s\u0085\u200B]+/).filter((part) => part !== '')
  if (parts.length === 0) return undefined
  const escaped = parts.map((part) => part.replaceAll('+', '\\+')).join('[\\s\\u0085\\u200B]+')
  const whole = `(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`
  return new RegExp(/\p{Lo}/u.test(word) ? `${whole}|${escaped}` : whole, 'iu')
}
