import { expect, test } from 'vitest'
import { answerSchema } from './answer-schema.ts'

test('the patterns of a stranger are left out, wherever they are, and nothing else is', () => {
  const text = { type: 'string', maxLength: 9 }
  const evil = { ...text, pattern: '^(a+)+$' }
  expect(
    answerSchema({
      type: 'object',
      properties: { a: evil, pattern: evil, list: { items: [evil], default: { pattern: 'x' } } },
      patternProperties: { '^(a+)+$': {} },
      anyOf: [{ $ref: '#/$defs/one' }, evil],
      $defs: { one: evil },
    }),
  ).toEqual({
    type: 'object',
    properties: { a: text, pattern: text, list: { items: [text], default: { pattern: 'x' } } },
    anyOf: [{ $ref: '#/$defs/one' }, text],
    $defs: { one: text },
  })
})

test('one that is nested too deeply asks for nothing', () => {
  let schema: object = { type: 'string' }
  for (let level = 0; level < 5_000; level++) schema = { items: schema }
  expect(answerSchema(schema)).toEqual({})
})
