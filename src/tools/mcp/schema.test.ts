import { describe, expect, test } from 'vitest'
import { schemaReader } from './schema.ts'

const read = await schemaReader()
const text = (more: object) => ({ type: 'object', properties: { a: { type: 'string', ...more } } })

describe('the schema of a stranger', () => {
  test.each([
    ['a pattern', text({ pattern: '^(a+)+$' }), (evil: string) => ({ a: evil })],
    [
      'the name of a property',
      { type: 'object', patternProperties: { '^(a+)+$': {} }, additionalProperties: false },
      (evil: string) => ({ [evil]: 1 }),
    ],
    [
      'names of properties',
      { type: 'object', propertyNames: { pattern: '^(a|aa)+$' } },
      (evil: string) => ({ [evil]: 1 }),
    ],
    [
      'an old draft',
      { $schema: 'http://json-schema.org/draft-07/schema#', ...text({ pattern: '^(a+)+$' }) },
      (evil: string) => ({ a: evil }),
    ],
  ])('holds nobody up by %s', (_, json, evil) => {
    const { issues } = read(json)
    expect(issues(evil(`${'a'.repeat(40)}!`))).not.toEqual([])
    expect(issues(evil('aaa'))).toEqual([])
  })

  test('may not make many steps of many texts, and the next input has them all again', () => {
    const each = { type: 'string', pattern: '^((a|b|ab)*c?){1,300}$' }
    const { issues } = read({ type: 'array', items: each })
    expect(issues(Array.from({ length: 100 }, () => 'a'.repeat(9_000)))).not.toEqual([])
    expect(issues(['ab', 'aab', 'abc'])).toEqual([])
  })

  test('is refused where its patterns cannot be read', () => {
    for (const pattern of ['(?=a)b', '(a)\\1', '[a-']) {
      expect(() => read(text({ pattern }))).toThrow()
    }
  })

  test.each([
    ['1,001 characters', 'a'.repeat(1_001)],
    ['nested counts', '((a{1,100}){1,100})'],
    ['many counts', '\\p{L}{1000}'.repeat(90)],
    ['a counted class', '[a-z]{600}'.repeat(20)],
  ])('is refused before a pattern of %s is compiled', (_, pattern) => {
    expect(() => read(text({ pattern }))).toThrow(/a pattern is/)
  })

  test('is refused where its patterns are large together', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [
        `p${i}`,
        { type: 'string', pattern: `^a{${900 + i}}$` },
      ]),
    )
    expect(() => read({ type: 'object', properties })).toThrow(/too large/)
  })

  test('is left to the MCP server if it would take too long to compile', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`p${i}`, { type: 'string' }]),
    )
    const { issues, json } = read({ type: 'object', properties })
    expect(issues({ p1: 5 })).toEqual([])
    expect(issues([])).toEqual([{ path: [], message: 'must be object' }])
    expect(json).toMatchObject({ properties })
  })

  test('compares unique items in one pass', () => {
    const { issues } = read({ type: 'array', uniqueItems: true })
    const items = Array.from({ length: 20_000 }, (_, i) => ({ i }))
    expect(issues(items)).toEqual([])
    expect(issues([...items, { i: 7 }])).toEqual([
      { path: [], message: 'must NOT have duplicate items' },
    ])
  })

  test('is kept as it is, and read as it says', () => {
    const json = text({ pattern: '^\\p{Lu}[\\w-]{0,20}$', format: 'email', minLength: 2 })
    const { issues, json: kept } = read(json)
    expect(kept).toBe(json)
    expect(issues({ a: 'Ärger-1' })).toEqual([])
    expect(issues({ a: 'x' }).map(({ path }) => path)).toEqual([['a'], ['a']])
  })
})
