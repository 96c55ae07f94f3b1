import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
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

const copies = <T>(count: number, item: (n: number) => T) =>
  Array.from({ length: count }, (_, n) => item(n))
const text = (length: number) => 'a'.repeat(length)
const fields = { type: 'object', required: ['a', 'b', 'c', 'd', 'e'] }
const sizeKeyword = (keyword: object) => ({ allOf: copies(200, () => keyword) })

test.each<[string, object, unknown]>([
  [
    'uniqueItems of long texts',
    { allOf: copies(160, () => ({ uniqueItems: true })) },
    copies(900, (n) => `${n}${text(1_000)}`),
  ],
  ['minLength', sizeKeyword({ minLength: 3 }), text(1_000_000)],
  ['maxLength', sizeKeyword({ maxLength: 3_000_000 }), text(1_000_000)],
  [
    'maxLength of items',
    { items: { allOf: copies(100, () => ({ maxLength: 9_999 })) } },
    copies(1_000, () => text(1_000)),
  ],
  [
    'const',
    {
      items: { allOf: copies(60, () => ({ $ref: '#/$defs/a' })) },
      $defs: { a: { const: text(90_000) } },
    },
    copies(9, () => text(90_000)),
  ],
  [
    'contains in anyOf',
    {
      anyOf: [...copies(40, () => ({ contains: { $ref: '#/$defs/a' } })), { type: 'array' }],
      $defs: { a: fields },
    },
    copies(1_500, () => ({})),
  ],
  [
    'references below names with many tildes',
    {
      additionalProperties: { anyOf: copies(40, () => ({ $ref: '#/$defs/a' })) },
      $defs: { a: { type: 'integer' } },
    },
    { ['~'.repeat(500_000)]: 1 },
  ],
  [
    'unevaluatedProperties',
    {
      anyOf: copies(40, () => ({ $ref: '#/$defs/a' })),
      unevaluatedProperties: false,
      $defs: { a: { patternProperties: { '^k': true } } },
    },
    Object.fromEntries(copies(1_300, (n) => [`k${n}`, n])),
  ],
])('a value is refused if checking %s would take too many steps', (_, schema, value) => {
  expect(check(schema, value)).toEqual(slow)
})

test('a check ends soon after it has found 100 problems', () => {
  let reads = 0
  const item = { type: 'object', required: ['a', 'b'] }
  const schema = { items: { $ref: '#/$defs/item' }, $defs: { item } }
  const rows = copies(2_000, () => ({
    get a() {
      reads++
      return undefined
    },
  }))
  const problems = check(schema, rows)
  expect(problems).toHaveLength(100)
  expect(problems[99]).toMatchObject({ path: ['49', 'b'] })
  expect(reads).toBeLessThan(2_000 + 200) // counting the values reads each of them once
})

test('100 problems in a branch of anyOf do not hide that another branch fits', () => {
  const schema = {
    anyOf: [{ items: { $ref: '#/$defs/a' } }, { maxItems: 900 }],
    $defs: { a: fields },
  }
  expect(
    check(
      schema,
      copies(900, () => ({})),
    ),
  ).toEqual([])
  expect(
    check(
      schema,
      copies(901, () => ({})),
    ).length,
  ).toBe(100)
})

test.each<[string, object, unknown]>([
  [
    '4,000 objects by reference',
    { items: { $ref: '#/$defs/a' }, $defs: { a: { type: 'object' } } },
    copies(4_000, () => ({})),
  ],
  ['10,000 different texts', { uniqueItems: true }, copies(10_000, (n) => `text ${n}`)],
  ['a text of 1,000,000 characters', { minLength: 1, maxLength: 2_000_000 }, text(1_000_000)],
  [
    '5,000 items of a choice',
    { items: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
    copies(5_000, (n) => n),
  ],
])('%s are checked within the budget', (_, schema, value) => {
  expect(check(schema, value)).toEqual([])
})

test('a check subtracts its steps from the budget and ends when there are none left', () => {
  const schema = { items: { minLength: 1 } }
  const checkIn = compileSchema(schema, { unsupportedPatterns: 'refuse' })
  const budget = { steps: 1_000 }
  expect(
    checkIn(
      copies(100, () => 'a'),
      budget,
    ),
  ).toEqual([])
  expect(budget.steps).toBeGreaterThan(500)
  expect(budget.steps).toBeLessThan(900)
  expect(
    checkIn(
      copies(1_000, () => 'a'),
      { steps: 1_000 },
    ),
  ).toEqual(slow)
})

test('paths contain names with slashes and tildes, and are left out if they are long', () => {
  const schema = { additionalProperties: { additionalProperties: { type: 'string' } } }
  expect(check(schema, { 'a/b': { '~c': 1, '~1': 'x' } })).toEqual([
    { path: ['a/b', '~c'], message: 'must be string' },
  ])
  expect(check(schema, { [text(3_000)]: { a: 1 } })).toEqual([
    { path: [], message: 'must be string' },
  ])
})

test('schemas fit the same values as without the budget', () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>(0, -0, 1, 1.5, '', '1', 'a', 'ab', true, false, null),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'c/~', '1'), tie('any'), { maxKeys: 3 }),
    ),
  })).any
  const sub = fc.letrec<Record<'schema', object>>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 2 },
      fc.record({ type: fc.constantFrom('string', 'number', 'object', 'array') }),
      fc.record({ const: value }),
      fc.record({ enum: fc.array(value, { minLength: 1, maxLength: 3 }) }),
      fc.record({ uniqueItems: fc.boolean(), minItems: fc.nat(2) }),
      fc.record({ required: fc.uniqueArray(fc.constantFrom('a', 'b')), maxProperties: fc.nat(2) }),
      fc.record({ minLength: fc.nat(2), multipleOf: fc.constantFrom(1, 2) }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ not: tie('schema') }),
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      fc.record({ if: tie('schema'), then: tie('schema'), else: tie('schema') }),
      fc.record({ items: tie('schema'), contains: tie('schema') }),
      fc.record({
        properties: fc.record({ a: tie('schema') }),
        additionalProperties: tie('schema'),
      }),
      fc.record({ allOf: fc.tuple(tie('schema')), unevaluatedProperties: tie('schema') }),
      fc.record({ prefixItems: fc.tuple(tie('schema')), unevaluatedItems: tie('schema') }),
      fc.record({
        propertyNames: tie('schema'),
        dependentSchemas: fc.record({ a: tie('schema') }),
      }),
      fc.constant({ $ref: '#/$defs/a' }),
    ),
  })).schema
  const property = fc.property(sub, sub, value, (...parts) => {
    const [inner, outer, given] = JSON.parse(JSON.stringify(parts)) as typeof parts
    const schema = { allOf: [outer], $defs: { a: { items: inner, properties: { a: inner } } } }
    if (JSON.stringify(inner).includes('$ref')) return
    const plain = new Ajv2020({ strict: false, validateSchema: false })
    expect(check(schema, given).length === 0).toBe(plain.validate(schema, given))
  })
  fc.assert(property, { numRuns: 300 })
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

test('a value below `not` is refused if its pattern would take too long to search', () => {
  const check = compileSchema({ not: { pattern: 'x{400}y' } }, { unsupportedPatterns: 'refuse' })
  expect(check('short')).toEqual([])
  expect(check('x'.repeat(90_000))).toEqual(slow)
  expect(check('x'.repeat(200_000))).toEqual(slow)
})

test('a check copies no list of errors for each item that does not fit a `$ref`', () => {
  const Item = { type: 'object', required: ['a', 'b', 'c', 'd', 'e'] }
  const rows = { type: 'array', contains: { $ref: '#/$defs/Item' } }
  const schema = { properties: { rows }, $defs: { Item } }
  const check = compileSchema(schema, { unsupportedPatterns: 'refuse' })
  const concat = vi.spyOn(Array.prototype, 'concat')
  onTestFinished(() => concat.mockRestore())
  expect(check({ rows: Array(2_000).fill({}) })).not.toEqual([])
  expect(concat.mock.calls.length).toBeLessThan(10)
})
