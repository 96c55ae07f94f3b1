import { expect, test } from 'vitest'
import { compileSchema, SchemaTooComplex } from './json-schema.ts'

const check = (schema: object, value: unknown) =>
  compileSchema(schema, { unsupportedPatterns: 'refuse' })(value)
const nested = (depth: number): unknown => (depth === 0 ? 1 : { x: nested(depth - 1) })
const twice = (reference: object) => {
  const branch = { properties: { x: reference }, required: ['missing'] }
  return { anyOf: [branch, branch] }
}
const slow = [{ path: [], message: 'takes too long to check against its schema' }]

test.each<[string, object, unknown]>([
  ['$ref', { $defs: { a: twice({ $ref: '#/$defs/a' }) }, $ref: '#/$defs/a' }, nested(40)],
  ['$dynamicRef', { $dynamicAnchor: 'a', ...twice({ $dynamicRef: '#a' }) }, nested(40)],
  [
    'enum',
    { items: { enum: Array.from({ length: 5_000 }, (_, i) => `x${i}`) } },
    Array.from({ length: 20_000 }, (_, i) => `y${i}`),
  ],
])('a schema whose %s would take seconds refuses the value at once', (_, schema, value) => {
  expect(check(schema, value)).toEqual(slow)
})

test('a recursive schema checks ordinary values', () => {
  const tree = {
    $defs: {
      node: { properties: { children: { items: { $ref: '#/$defs/node' } } }, type: 'object' },
    },
    $ref: '#/$defs/node',
  }
  expect(check(tree, { children: [{ children: [{}, {}] }, {}] })).toEqual([])
  expect(check(tree, { children: [{ children: [1] }] })).toMatchObject([
    { path: ['children', '0', 'children', '0'] },
  ])
})

const names = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`)
const named = (count: number, schema: unknown) =>
  Object.fromEntries(names(count).map((name) => [name, schema]))

test.each<[string, object]>([
  ['properties', { properties: named(3_000, {}) }],
  ['false properties', { properties: named(12_000, false) }],
  ['evaluated properties', { properties: named(12_000, true), unevaluatedProperties: false }],
  ['dependent names', { dependentRequired: { a: names(15_000) } }],
  ['dependent names under enum', { dependentRequired: { enum: names(15_000) } }],
  ['dependencies', { $schema: 'draft-07', dependencies: { required: names(15_000) } }],
  ['choices', { oneOf: names(1_900).map((name) => ({ const: name })) }],
  ['patterns', { patternProperties: named(500, true) }],
  ['parts of an enum', { enum: [{ properties: named(9_000, false) }], $ref: '#/enum/0' }],
  ['parts of a property named enum', { properties: { enum: { allOf: names(9_000) } } }],
])('a schema with thousands of %s is refused before it is compiled', (_, schema) => {
  expect(() => check(schema, {})).toThrow(SchemaTooComplex)
  expect(() => check(schema, {})).toThrow('more than 500 keywords and subschemas')
})

test('a schema of 100 described properties and a long enum is compiled', () => {
  const one = { type: 'string', title: 'A', description: 'One of many.', default: 'k1' }
  const schema = { properties: named(100, one), required: names(50), enum: names(5_000) }
  expect(
    check({ properties: { ...schema.properties, x: { enum: names(5_000) } } }, { x: 'k9' }),
  ).toEqual([])
  expect(check(schema, {}).length).toBeGreaterThan(50)
})

test('a schema is compiled once for all its checks', () => {
  const options = { unsupportedPatterns: 'refuse' } as const
  const schema = () => ({ properties: { a: { pattern: '^a+$' } } })
  const first = compileSchema(schema(), options)
  expect(compileSchema(schema(), options)).toBe(first)
  expect(compileSchema(schema(), { unsupportedPatterns: 'skip' })).not.toBe(first)
  for (let n = 0; n < 110; n++) compileSchema({ minimum: n }, options)
  expect(compileSchema(schema(), options)).not.toBe(first)
})
