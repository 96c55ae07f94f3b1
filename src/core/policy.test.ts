import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { callDigest, defaultPolicy, judge, type PolicyRule, schemaDigest } from './policy.ts'
import { emptyState } from './state.ts'
import { defineTool, type Tool } from './tool.ts'

const tool = (
  name: string,
  access?: Tool['access'],
  schema: z.ZodType = z.strictObject({}),
): Tool =>
  defineTool({ name, description: '', schema, ...(access && { access }), run: async () => '' })
const verdict = (
  rules: readonly PolicyRule[],
  one: Tool,
  input: unknown = {},
  state = emptyState('t'),
) => judge(rules, { tool: one, agent: 'a', input }, state, 1_000).decision

describe('policy', () => {
  test('by default reading is allowed; writing, running and the unknown are asked about', () => {
    expect(verdict(defaultPolicy, tool('r', 'read'))).toBe('allow')
    for (const access of ['write', 'execute', undefined] as const) {
      expect(verdict(defaultPolicy, tool('w', access))).toBe('ask')
    }
  })

  test('asks when no rule fits at all', () => {
    expect(verdict([], tool('x', 'read'))).toBe('ask')
  })

  test('the first rule that fits decides', () => {
    const rules: PolicyRule[] = [
      { tool: 'crm__*', when: (input) => (input as { n: number }).n > 5, decision: 'deny' },
      { tool: 'crm__*', decision: 'allow' },
      { decision: 'ask' },
    ]
    expect(verdict(rules, tool('crm__find'), { n: 9 })).toBe('deny')
    expect(verdict(rules, tool('crm__find'), { n: 1 })).toBe('allow')
    expect(verdict(rules, tool('crm_find'), { n: 1 })).toBe('ask')
  })

  test('takes a tool name as it is, not as a pattern of another kind', () => {
    expect(verdict([{ tool: 'a.b', decision: 'allow' }], tool('axb'))).toBe('ask')
  })

  test('a grant allows what would be asked, until it ends or the schema changes', () => {
    const one = tool('write', 'write')
    const state = emptyState('t')
    state.grants.set('g', { grantId: 'g', tool: 'write', schema: schemaDigest(one), until: 2_000 })
    expect(verdict(defaultPolicy, one, {}, state)).toBe('allow')
    expect(judge(defaultPolicy, { tool: one, agent: 'a', input: {} }, state, 2_000).decision).toBe(
      'ask',
    )
    const changed = tool('write', 'write', z.strictObject({ force: z.boolean() }))
    expect(verdict(defaultPolicy, changed, {}, state)).toBe('ask')
  })

  test('a grant never lifts a denial', () => {
    const one = tool('write', 'write')
    const state = emptyState('t')
    state.grants.set('g', { grantId: 'g', tool: 'write', schema: schemaDigest(one) })
    expect(verdict([{ tool: 'write', decision: 'deny' }], one, {}, state)).toBe('deny')
  })

  test('the digest changes with tool, schema and arguments, not with the order of keys (I11)', () => {
    const one = tool('t', 'write')
    expect(callDigest(one, { a: 1, b: 2 })).toBe(callDigest(one, { b: 2, a: 1 }))
    expect(callDigest(one, { a: 1 })).not.toBe(callDigest(one, { a: '1' }))
    expect(callDigest(one, {})).not.toBe(callDigest(tool('u', 'write'), {}))
    expect(callDigest(one, {})).not.toBe(
      callDigest(tool('t', 'write', z.strictObject({ x: z.string() })), {}),
    )
  })
})
