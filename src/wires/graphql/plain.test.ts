import fc from 'fast-check'
import { buildSchema, coerceInputValue, type GraphQLInputType } from 'graphql'
import { expect, test } from 'vitest'
import { arePlain } from './plain.ts'
import { typeDefs } from './schema.ts'

const type = buildSchema(typeDefs).getType('MessageInput') as GraphQLInputType

/** What GraphQL says of it. */
function isValid(message: unknown): boolean {
  let valid = true
  coerceInputValue(message, type, () => {
    valid = false
  })
  return valid
}

const value = fc.oneof(
  fc.constantFrom('user', 'assistant', 'text', '', null, true, false, 1, undefined),
  fc.constant({}),
  fc.constant([]),
)
const names = [
  ...['content', 'role', 'parentMessageId', 'name', 'arguments', 'scope', 'actionExecutionId'],
  ...['actionName', 'result', 'threadId', 'agentName', 'nodeName', 'runId', 'state', 'running'],
  ...['active', 'format', 'bytes', 'other', '__proto__', 'constructor'],
]
const part = fc.dictionary(fc.constantFrom(...names), value)
const whole = {
  textMessage: { content: 'hi', role: 'user' },
  actionExecutionMessage: { name: 'paint', arguments: '{}', parentMessageId: 'm' },
  resultMessage: { actionExecutionId: 'c', actionName: 'paint', result: 'ok' },
  imageMessage: { format: 'png', bytes: 'AA==', role: 'user' },
  agentStateMessage: {
    ...{ threadId: 't', agentName: 'a', nodeName: '', runId: 'r', role: 'assistant' },
    ...{ state: '{}', running: true, active: false },
  },
}
const kinds = fc.constantFrom(
  ...(Object.keys(whole) as (keyof typeof whole)[]),
  'other',
  'toString',
)
const message = fc
  .record({
    id: fc.constantFrom('m', 1, null, undefined),
    createdAt: fc.constantFrom('2025-01-01T00:00:00.000Z', 'x', null, undefined),
    kind: kinds,
    change: part,
    bare: part,
    own: fc.boolean(),
  })
  .map(({ id, createdAt, kind, change, bare, own }) => {
    const base = own ? { ...(whole as Record<string, object>)[kind], ...change } : bare
    return { id, createdAt, [kind]: base }
  })

test('what is plain is valid to GraphQL', () => {
  fc.assert(
    fc.property(message, (one) => {
      if (arePlain([one])) expect(isValid(one)).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('what clients send is plain', () => {
  const createdAt = '2025-01-01T00:00:00.000Z'
  const all = Object.entries(whole).map(([kind, one]) => ({ id: kind, createdAt, [kind]: one }))
  expect(arePlain(all)).toBe(true)
  expect(arePlain([...all, { id: 'x', createdAt }])).toBe(false)
  expect(arePlain('messages')).toBe(false)
})
