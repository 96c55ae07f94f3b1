import { expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../lib/clock.ts'
import type { Bench } from './effects.ts'
import type { Answer, Ask, Body } from './entries.ts'
import { parseInput, type SettledInput, settledInput } from './inputs.ts'
import { callDigest } from './policy.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import { defineTool, type ParsedInput, type Tool } from './tool.ts'

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
