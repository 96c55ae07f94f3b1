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
    const began = performance.now()
    expect(issues(evil(`${'a'.repeat(40)}!`))).not.toEqual([])
    expect(performance.now() - began).toBeLessThan(500)
    expect(issues(evil('aaa'))).toEqual([])
  })

  test('may not make many steps of many texts, and the next input has them all again', () => {
    const each = { type: 'string', pattern: '^((a|b|ab)*c?){1,300}$' }
    const { issues } = read({ type: 'array', items: each })
    const began = performance.now()
    expect(issues(Array.from({ length: 100 }, () => 'a'.repeat(9_000)))).not.toEqual([])
    expect(performance.now() - began).toBeLessThan(3_000)
    expect(issues(['ab', 'aab', 'abc'])).toEqual([])
  })

  test('is refused where its patterns cannot be read', () => {
    for (const pattern of ['(?=a)b', '(a)\\1', '[a-']) {
      expect(() => read(text({ pattern }))).toThrow()
    }
  })

  test('is kept as it is, and read as it says', () => {
    const json = text({ pattern: '^\\p{Lu}[\\w-]{0,20}$', format: 'email', minLength: 2 })
    const { issues, json: kept } = read(json)
    expect(kept).toBe(json)
    expect(issues({ a: 'Ärger-1' })).toEqual([])
    expect(issues({ a: 'x' }).map(({ path }) => path)).toEqual([['a'], ['a']])
  })
})
