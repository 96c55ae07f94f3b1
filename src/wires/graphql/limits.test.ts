import { getIntrospectionQuery } from 'graphql'
import { describe, expect, test } from 'vitest'
import { defaultLimits, parseWithin } from './limits.ts'

const within = (source: string, limits = {}) =>
  parseWithin(source, { ...defaultLimits, ...limits }).kind
const nested = (depth: number) => `${'{a'.repeat(depth)}${'}'.repeat(depth)}`
const many = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => one(index)).join(' ')

test('lets through what GraphiQL asks about the schema', () => {
  const everything = getIntrospectionQuery({
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  })
  expect(within(everything)).toBe('Document')
})

describe('refuses, and says what would be right:', () => {
  const refused: [what: string, source: string, message: RegExp][] = [
    [
      'characters',
      `${'\n'.repeat(16_384)}{a}`,
      /more than 16384 characters\. Ask for less .* variables/,
    ],
    ['arguments', `{a{${many(33, () => 'b(c:1)')}}}`, /more than 32 arguments/],
    ['tokens', `{${'a '.repeat(4_000)}}`, /more than 4000 tokens\. Ask for less .* variables/],
    ['depth', nested(17), /17 fields deep, and 16 is the limit/],
    [
      'depth by fragments',
      '{...a} fragment a on Query{b{...c}} fragment c on B{d{e{f{g{h{i{j{k{l{m{n{o{p{q{r{s}}}}}}}}}}}}}}}}',
      /17 fields deep/,
    ],
    ['nesting', `{a(b:${'['.repeat(65)}${']'.repeat(65)})}`, /deeper than 64 levels\. Flatten/],
    ['fields', `{a{${'b '.repeat(500)}}}`, /more than 500 fields/],
    ['aliases', `{a{${many(17, (index) => `b${index}:b`)}}}`, /more than 16 aliases/],
    ['directives', `{a{${many(65, () => 'b@skip(if:true)')}}}`, /more than 64 directives/],
    ['spreads', `{${'...a '.repeat(33)}} fragment a on Query{b}`, /more than 32 spreads/],
    ['root fields', `{${many(17, () => 'a')}}`, /more than 16 fields at its root/],
    ['mutations', 'mutation{a b}', /one mutation/],
    ['mutations by fragments', 'mutation{...a ...a} fragment a on Mutation{b}', /one mutation/],
  ]
  test.each(refused)('%s', (_, source, message) => {
    expect(() => within(source)).toThrow(message)
  })
})

test('lets through what is just within the limits', () => {
  expect(within(nested(16))).toBe('Document')
  expect(within(`{${many(16, (index) => `a${index}:a`)}}`)).toBe('Document')
  expect(within('mutation{__typename a}')).toBe('Document')
})

test('measures fragments that contain each other no longer than others', () => {
  const bomb = many(15, (i) => `fragment f${i} on Q{...f${i + 1} ...f${i + 1}}`)
  expect(() => within(`{...f0} ${bomb} fragment f15 on Q{a}`)).toThrow('at its root')
  expect(within('{...a} fragment a on Q{...b} fragment b on Q{...a}')).toBe('Document')
})

test('refuses what is nested too deeply to be read at all', () => {
  const limits = { characters: 100_000, tokens: 100_000 }
  const source = `{a(b:${'['.repeat(40_000)}${']'.repeat(40_000)})}`
  expect(() => within(source, limits)).toThrow('The document is nested too deeply. Flatten it.')
})

test('answers no questions about the schema when it is told not to', () => {
  const limits = { introspection: false }
  expect(() => within('{__schema{types{name}}}', limits)).toThrow('Leave out __schema')
  expect(() => within('{a{__type(name:"A"){name}}}', limits)).toThrow('Leave out __type;')
  expect(within('{__typename a{__typename}}', limits)).toBe('Document')
})
