import { expect, test } from 'vitest'
import { keyOfWord, keysOf, wordsOf } from './words.ts'

const words = (text: string) => wordsOf(text).map(({ word }) => word)

test('words are letters and digits, whatever their case, accents and form', () => {
  expect(words('Don’t ask ACC-001, x_y: ÉLAN!')).toEqual('don t ask acc 001 x y elan'.split(' '))
  expect(words('caf\u00e9')).toEqual(words('CAFE\u0301'))
  expect(words('İstanbul ﬁne')).toEqual(['istanbul', 'fine'])
  expect(words('\u0301 - \ud800 💥')).toEqual([])
  expect(words('हिन्दी')).toHaveLength(1)
})

test('without spaces between words, each character is one', () => {
  expect(words('abc漢字x')).toEqual(['abc', '漢', '字', 'x'])
})

test('says where in the text a word begins', () => {
  const text = 'Ünlü 💥 ACC-1'
  for (const { word, at } of wordsOf(text))
    expect(
      text
        .slice(at, at + word.length)
        .normalize('NFD')
        .toLowerCase(),
    ).toContain(word[0])
  expect(wordsOf(text).map(({ at }) => at)).toEqual([0, 8, 12])
})

test('the keys of a text are those of its words, each once', () => {
  for (const text of ['A b a B 12', 'É e 漢漢 ﬁ', ''])
    expect(keysOf(text)).toEqual(new Set(words(text).map(keyOfWord)))
  expect(
    new Set(Array.from({ length: 10_000 }, (_, n) => keyOfWord(`word${n}`))).size,
  ).toBeGreaterThan(9_990)
})
