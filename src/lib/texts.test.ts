import { describe, expect, test } from 'vitest'
import { insideOf } from './base64.ts'
import { readFenced } from './fenced.ts'

// The tests of linear time have no assertion on time: a quadratic reader takes longer than the limit of a test.

describe('insideOf', () => {
  test('reads a data URL with parameters', () => {
    const png = { mediaType: 'image/png', data: 'aGk=' }
    for (const url of ['data:image/png;base64,aGk=', 'DATA:image/png;name=a;BASE64,aGk='])
      expect(insideOf(url)).toEqual(png)
    for (const url of [
      'data:,hi',
      'data:;base64,aGk=',
      'data:image/png,hi',
      'https://a.b/c,d',
      'data:x',
    ])
      expect(insideOf(url)).toBe(undefined)
  })

  test('a data URL of 1 MB without a comma takes linear time', () => {
    expect(insideOf(`data:${'x'.repeat(1_000_000)}`)).toBe(undefined)
  })
})

describe('readFenced', () => {
  test('reads the last closed block', () => {
    const text = 'Here:\n```json\n{"a": 1}\n```\nor\n```\n[2]\n```  \n```json\n{"open": true}'
    expect(readFenced(text)).toEqual([2])
    expect(readFenced('```json\r\n{"a": 1}\r\n```\r\n')).toEqual({ a: 1 })
    expect(readFenced(' {"a": 1} ')).toEqual({ a: 1 })
    expect(readFenced('```json\n```\nno')).toBe(undefined)
  })

  test('400 KB of opening fences take linear time', () => {
    expect(readFenced('```json\n'.repeat(50_000))).toBe(undefined)
  })
})
