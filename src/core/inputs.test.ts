import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../lib/clock.ts'
import type { Bench } from './effects.ts'
import type { Answer, Ask, Body } from './entries.ts'
import { parseInput, type SettledInput, settledInput } from './inputs.ts'
import { callDigest } from './policy.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import { defineTool, type ParsedInput, readInput, readInputInTurns, type Tool } from './tool.ts'

const bench = { report: () => {}, clock: systemClock } as unknown as Bench
const tags = z.array(z.string()).transform((list) => new Set(list))
const toolOf = (schema: z.ZodType): Tool =>
  defineTool({ name: 'keep', description: '', schema, run: async () => '' })
const keep = toolOf(z.strictObject({ tags }))

const parsed = (tool: Tool, input: unknown) =>
  parseInput(JSON.stringify(input), tool, bench) as ParsedInput

/** An approval as an older version stored it: its input is the JSON of what the schema returned. */
const olderApproval = (tool: Tool, input: unknown, answer: Partial<Answer> = {}) => {
  const digest = callDigest(tool, input)
  const ask = { askId: 'ask_1', input: JSON.parse(JSON.stringify(input)), digest } as Ask
  return { ask, answer: { askId: 'ask_1', state: 'approved', digest, ...answer } } as AskRecord
}

const settled = (tool: Tool, sent: unknown, approval?: AskRecord, record?: EffectRecord) =>
  settledInput(parsed(tool, sent), tool, { approval, record }, bench) as SettledInput

test('an approval that an older version stored for a Set still runs, with a Set', () => {
  const sent = { tags: ['a'] }
  const approval = olderApproval(keep, parsed(keep, sent).input)
  expect(approval.ask.input).toEqual({ tags: {} })
  const { input, digest } = settled(keep, sent, approval)
  expect(input).toEqual({ tags: new Set(['a']) })
  expect(digest).toBe(approval.ask.digest)
})

test('an effect that an older version began for a Set keeps its digest', () => {
  const sent = { tags: ['a'] }
  const { input } = parsed(keep, sent)
  const digest = callDigest(keep, input)
  const intent = { input: { tags: {} }, digest } as unknown as Body<'effect.intended'>
  expect(settled(keep, sent, undefined, { intent } as EffectRecord)).toMatchObject({
    input,
    digest,
  })
})

test('an edit that an older version stored without the members of its Set does not run', () => {
  const lossy = { tags: {} }
  const digest = callDigest(keep, lossy)
  const approval = olderApproval(keep, parsed(keep, { tags: ['a'] }).input, {
    input: lossy,
    digest,
  })
  // Another digest than the answer has: the planner refuses the call.
  expect(settled(keep, { tags: ['b'] }, approval).digest).not.toBe(digest)
})

test('an edited raw input that was read back from the journal runs as a Set', () => {
  const input = { tags: ['edited'] }
  const digest = callDigest(keep, input, { raw: true })
  const ask = { askId: 'ask_1', input: { tags: ['a'] }, raw: true, digest: 'other' } as Ask
  const answer = { askId: 'ask_1', state: 'approved', input, raw: true, digest } as Answer
  const found = settled(keep, { tags: ['a'] }, { ask, answer } as AskRecord)
  expect(found).toEqual({ input: { tags: new Set(['edited']) }, shown: input, raw: true, digest })
})

test('an approval that an older version stored for plain JSON runs with the stored values', () => {
  let now = 1
  const clocked = toolOf(z.strictObject({ at: z.number().default(() => now++) }))
  const approval = olderApproval(clocked, { at: 0 })
  expect(settled(clocked, {}, approval)).toMatchObject({ input: { at: 0 }, shown: { at: 0 } })
})

test('inputs that differ only inside of a Set have different digests', () => {
  expect(settled(keep, { tags: ['a'] }).digest).not.toBe(settled(keep, { tags: ['b'] }).digest)
})

test('a raw input and an equal parsed input have different digests', () => {
  const input = { tags: ['a'] }
  expect(callDigest(keep, input, { raw: true })).not.toBe(callDigest(keep, input))
})

const cents = z.number().transform((euros) => Math.round(euros * 100))
const pay = toolOf(z.strictObject({ amount: cents, memo: z.string().default('') }))

test.each<[string, z.ZodType, unknown, unknown]>([
  ['multiplies a number', pay.schema as z.ZodType, { amount: 5 }, { amount: 500, memo: '' }],
  ['makes a number of a text', z.object({ n: z.string().transform(Number) }), { n: '5' }, { n: 5 }],
  [
    'adds a prefix',
    z.object({ t: z.string().transform((t) => `> ${t}`) }),
    { t: 'a' },
    { t: '> a' },
  ],
  ['negates', z.object({ on: z.boolean().transform((on) => !on) }), { on: true }, { on: false }],
])('an input whose schema %s is raw', (_, schema, sent, input) => {
  expect(readInput(toolOf(schema), sent)).toEqual({ input, shown: sent, raw: true })
})

test.each<[string, z.ZodType, unknown, unknown]>([
  ['has a default', z.object({ t: z.string().default('a') }), {}, { t: 'a' }],
  ['trims a text', z.object({ t: z.string().trim() }), { t: ' a ' }, { t: 'a' }],
  ['coerces a number', z.object({ n: z.coerce.number() }), { n: '5' }, { n: 5 }],
  ['drops unknown fields', z.object({ t: z.string() }), { t: 'a', more: 1 }, { t: 'a' }],
])('an input whose schema %s is shown as the schema returns it', (_, schema, sent, input) => {
  expect(readInput(toolOf(schema), sent)).toEqual({ input, shown: input })
})

test('an input is raw if its schema throws, or returns another kind of value, when it reads its own output', () => {
  const throwing = z.any().transform(({ t }) => ({ u: t.trim() }))
  expect(readInput(toolOf(throwing), { t: 'a' })).toMatchObject({ raw: true })
  const day = z.any().transform((t) => (t === 'now' ? '2026-11-17T00:00:00.000Z' : new Date(t)))
  const schema = z.object({ day })
  expect(readInput(toolOf(schema), { day: 'now' })).toMatchObject({ raw: true })
})

test('a schema that returns its input unchanged is run once', () => {
  let runs = 0
  const counted = toolOf(z.object({ t: z.string().refine(() => ++runs > 0) }))
  expect(readInput(counted, { t: 'a' })).toEqual({ input: { t: 'a' }, shown: { t: 'a' } })
  expect(runs).toBe(1)
})

test('an approval that an older version stored for a transformed input runs exactly what its card showed', () => {
  const approval = olderApproval(pay, { amount: 500, memo: '' })
  const found = settled(pay, { amount: 5 }, approval)
  const shown = { amount: 500, memo: '' }
  expect(found).toEqual({ input: shown, shown, digest: approval.ask.digest })
})

test('an edit that an older version may have transformed twice is stale', () => {
  const input = { amount: 50_000, memo: '' }
  const digest = callDigest(pay, input)
  const approval = olderApproval(pay, { amount: 500, memo: '' }, { input, raw: false, digest })
  expect(settled(pay, { amount: 5 }, approval)).toMatchObject({ input, digest, stale: true })
})

test('an edit that an older version stored runs if the schema would not change it again', () => {
  const trimmed = toolOf(z.strictObject({ t: z.string().trim() }))
  const input = { t: 'b' }
  const digest = callDigest(trimmed, input)
  const approval = olderApproval(trimmed, { t: 'a' }, { input, raw: false, digest })
  expect(settled(trimmed, { t: 'a' }, approval)).toEqual({ input, shown: input, digest })
})

test('an edit of a raw input runs as an older version stored it, because it was parsed once', () => {
  const tool = toolOf(z.strictObject({ amount: cents, tags: tags.optional() }))
  const ask = {
    askId: 'ask_1',
    input: { amount: 5, tags: ['a'] },
    raw: true,
    digest: 'other',
  } as Ask
  const input = { amount: 700 }
  const digest = callDigest(tool, input)
  const answer = { askId: 'ask_1', state: 'approved', input, raw: false, digest } as Answer
  const found = settled(tool, { amount: 5, tags: ['a'] }, { ask, answer } as AskRecord)
  expect(found).toEqual({ input, shown: input, digest })
})

test('a call that an older version began with a transformed input keeps its input and its digest', () => {
  const input = { amount: 500, memo: '' }
  const digest = callDigest(pay, input)
  const intent = { input, digest } as unknown as Body<'effect.intended'>
  const found = settled(pay, { amount: 5 }, undefined, { intent } as EffectRecord)
  expect(found).toEqual({ input, shown: input, digest })
})

test('an input that is parsed twice is read in several turns of the event loop', async () => {
  let turns = 0
  const parsedAt: number[] = []
  const counted = toolOf(
    z.object({ n: z.number().transform((n) => parsedAt.push(turns) && n + 1) }),
  )
  let isCounting = true
  const counting = (async () => {
    for (; isCounting; turns++) await setImmediate()
  })()
  const read = await readInputInTurns(counted, { n: 1 })
  isCounting = false
  await counting
  expect(read).toEqual({ input: { n: 2 }, shown: { n: 1 }, raw: true })
  expect(parsedAt).toHaveLength(2)
  expect(parsedAt[1]).toBeGreaterThan(parsedAt[0]!)
})
