import { expect, test } from 'vitest'
import { momentAt } from '../../web/components/inspector/moment.ts'
import { fieldsOf, put, readField, valueAt, written } from '../../web/lib/schema.ts'

const schema = {
  type: 'object',
  properties: {
    to: { type: 'string', minLength: 2, pattern: '^[a-z]+$' },
    amount: { type: 'integer', minimum: 1, maximum: 9 },
    kind: { enum: ['gift', 'loan'] },
    sure: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
    odd: { type: 'string', pattern: '(' },
  },
  required: ['to', 'amount'],
}

const field = (name: string, value?: unknown) =>
  fieldsOf(schema, value).find((one) => one.name === name)!

test('a form has a control for each field, also for what the schema does not know', () => {
  const fields = fieldsOf(schema, { to: 'ann', more: { deep: [1] } })
  expect(fields.map(({ name, control, required }) => [name, control, required])).toEqual([
    ['to', 'text', true],
    ['amount', 'number', true],
    ['kind', 'choice', false],
    ['sure', 'yes-no', false],
    ['tags', 'json', false],
    ['odd', 'text', false],
    ['more', 'json', false],
  ])
  expect(written(fields.at(-1)!, { deep: [1] })).toBe('{\n  "deep": [\n    1\n  ]\n}')
})

test('what is written is read as the schema has it, or it is said what is wrong', () => {
  expect(readField(field('to'), 'ann')).toEqual({ value: 'ann' })
  expect(readField(field('to'), '')).toEqual({ problem: 'This is needed.' })
  expect(readField(field('to'), 'a')).toEqual({ problem: 'At least 2 characters.' })
  expect(readField(field('to'), 'ANN')).toEqual({ problem: 'This must match ^[a-z]+$.' })
  expect(readField(field('amount'), '3')).toEqual({ value: 3 })
  expect(readField(field('amount'), '3.5')).toEqual({ problem: 'This must be a whole number.' })
  expect(readField(field('amount'), 'x')).toEqual({ problem: 'This must be a number.' })
  expect(readField(field('amount'), '10')).toEqual({ problem: 'At most 9.' })
  expect(readField(field('kind'), '')).toEqual({})
  expect(readField(field('sure'), 'false')).toEqual({ value: false })
  expect(readField(field('tags'), '["a"]')).toEqual({ value: ['a'] })
  expect(readField(field('tags'), 'a')).toEqual({ problem: 'This is not JSON. Texts need quotes.' })
  expect(readField(field('odd'), 'x')).toEqual({ value: 'x' }) // the server reads that pattern
})

test('objects in an object are fields of their own; what may not be added is not offered', () => {
  const idea = {
    type: 'object',
    properties: { priority: { enum: ['high', 'low'] }, why: { type: 'string' } },
    required: ['priority'],
  }
  const whole = { properties: { idea }, required: ['idea'], additionalProperties: false }
  const value = { idea: { priority: 'low', why: 'so', more: 1 }, others: [] }
  const fields = fieldsOf(whole, value)
  expect(fields.map(({ name, control }) => [name, control])).toEqual([
    ['idea.priority', 'choice'],
    ['idea.why', 'text'],
    ['idea.more', 'number'],
  ])
  expect(fields.map(({ path }) => valueAt(value, path))).toEqual(['low', 'so', 1])
  const made = {}
  for (const { path } of fields) put(made, path, 2)
  expect(made).toEqual({ idea: { priority: 2, why: 2, more: 2 } })
})

test('a pattern that could freeze the page is left to the server', () => {
  const read = (pattern: string, value: string) => {
    const [one] = fieldsOf({ properties: { a: { type: 'string', pattern } } }, {})
    return readField(one!, value)
  }
  const evil = `${'a'.repeat(32)}!`
  for (const pattern of ['^(a+)+$', '^(a|aa)+$', '^a*a*a*a*a*a*a*a*$', 'a+$', '^(?=(a+)+$)'])
    expect(read(pattern, evil)).toEqual({ value: evil })
  const began = performance.now()
  for (const pattern of [
    '\\d*\\d*\\d*x',
    'a*a*a*a*b',
    '.*.*=.*',
    '^a{0,}a{0,}a*b',
    '^[a\\]]*a*a*b',
  ])
    for (const text of ['1', 'a'].map((one) => one.repeat(100_000)))
      expect(read(pattern, text)).toEqual({ value: text })
  for (let n = 0; n < 10; n++) read('^\\p{L}*\\p{L}*x', 'a'.repeat(1_000))
  expect(performance.now() - began).toBeLessThan(100)
  expect(read('^\\d{4}-\\d{2}$', '2026')).toEqual({ problem: 'This must match ^\\d{4}-\\d{2}$.' })
  expect(read('^[(|+]+$', '+(|')).toEqual({ value: '+(|' })
  expect(read('^[(|+]+$', 'x')).toEqual({ problem: 'This must match ^[(|+]+$.' })
})

test('a text that is not one in the arguments is shown as what it is', () => {
  const [one] = fieldsOf({ properties: { note: { type: 'string' } } }, { note: { a: 1 } })
  expect(one).toMatchObject({ control: 'json' })
})

test('where a run stood is told from its entries', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const entry = (kind: string, body: unknown, seq = 1) => ({
    ...{ seq, at, kind, body, size: 0 },
    actor: { type: 'agent' as const, id: 'a' },
  })
  const entries = [
    entry('run.started', { leg: 1 }),
    entry('effect.intended', { effectId: 'e', effect: 'model', name: 'demo' }),
    entry('effect.done', { effectId: 'e', usage: { inputTokens: 3, outputTokens: 4, cost: 2 } }),
    entry('ask.raised', { ask: { askId: 'q', title: 'Pay?' } }),
    entry('run.waiting', { askIds: ['q'] }),
    entry('ask.answered', { askId: 'q', state: 'approved' }),
    entry('message.added', null), // too large to be told
  ]
  expect(momentAt(entries.slice(0, 2))).toMatchObject({ status: 'running', running: ['demo'] })
  const asked = { status: 'waiting', open: ['Pay?'], running: [], inputTokens: 3, cost: 2 }
  expect(momentAt(entries.slice(0, 5))).toMatchObject(asked)
  expect(momentAt(entries)).toMatchObject({ open: [], messages: 1, calls: { model: 1, tool: 0 } })
})
