import { readFileSync } from 'node:fs'
import {
  buildClientSchema,
  buildSchema,
  findBreakingChanges,
  type GraphQLSchema,
  type IntrospectionQuery,
  introspectionFromSchema,
  lexicographicSortSchema,
  printSchema,
} from 'graphql'
import { expect, test } from 'vitest'
import { typeDefs } from './schema.ts'

/** What a CopilotKit 1.10.6 server says of itself, without its descriptions. */
const captured = buildClientSchema(
  JSON.parse(
    readFileSync(
      new URL('../../../test/fixtures/graphql.introspection.json', import.meta.url),
      'utf8',
    ),
  ) as IntrospectionQuery,
)
const ours = buildSchema(typeDefs)

test('breaks nothing that clients of CopilotKit rely on', () => {
  expect(findBreakingChanges(captured, ours)).toEqual([])
})

test('has the same types, fields, defaults and nullability, and no others', () => {
  expect(bare(ours)).toEqual(bare(captured))
})

/** Without words: descriptions, reasons and links are our own. */
function bare(schema: GraphQLSchema): string[] {
  const silent = buildClientSchema(introspectionFromSchema(schema, { descriptions: false }))
  const text = printSchema(lexicographicSortSchema(silent))
  return text.replaceAll(/ @(deprecated|specifiedBy)\(\w+: "[^"]*"\)/g, '').split('\n')
}
