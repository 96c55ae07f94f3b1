import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { grantFor } from './grants.ts'
import {
  callDigest,
  checkPolicy,
  defaultPolicy,
  globs,
  judge,
  type PolicyRule,
  ruleDigest,
  schemaDigest,
} from './policy.ts'
import { emptyState, type Grant } from './state.ts'
import { defineTool, type Tool } from './tool.ts'

const tool = (
  name: string,
  access?: Tool['access'],
  schema: z.ZodType = z.strictObject({}),
): Tool =>
  defineTool({ name, description: '', schema, ...(access && { access }), run: async () => '' })
const judged = (rules: readonly PolicyRule[], one: Tool, input: unknown = {}) =>
  judge(rules, { tool: one, agent: 'a', input })
const verdict = (rules: readonly PolicyRule[], one: Tool, input: unknown = {}) =>
  judged(rules, one, input).decision

describe('globs', () => {
  test.each([
    ['*', '', true],
    ['a*', 'abc', true],
    ['*c', 'abc', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'acb', false],
    ['ab*ba', 'aba', false],
    ['a.c', 'abc', false],
    ['abc', 'abcd', false],
    ['a\n*', 'a\nb', true],
  ])('%j for %j is %s', (pattern, name, fits) => {
    expect(globs(pattern, name)).toBe(fits)
  })

  test('many stars take linear time on a long name', () => {
    expect(globs(`${'*a'.repeat(12)}b`, 'a'.repeat(2_000))).toBe(false)
  })
})

describe('policy', () => {
  test('by default reading is allowed; writing, running and the unknown are asked about', () => {
    expect(verdict(defaultPolicy, tool('r', 'read'))).toBe('allow')
    for (const access of ['write', 'execute', undefined] as const) {
      expect(verdict(defaultPolicy, tool('w', access))).toBe('ask')
    }
  })

  test('one line makes reading ask', () => {
    const rules: PolicyRule[] = [{ access: 'read', decision: 'ask' }, ...defaultPolicy]
    expect(verdict(rules, tool('r', 'read'))).toBe('ask')
  })

  test('asks when no rule fits at all', () => {
    expect(judged([], tool('x', 'read'))).toMatchObject({ decision: 'ask', rule: 'no rule fits' })
  })

  test('the first rule that fits decides, and is named', () => {
    const rules: PolicyRule[] = [
      { tool: 'crm__*', when: (input) => (input as { n: number }).n > 5, decision: 'deny' },
      { name: 'the rest of crm', tool: 'crm__*', decision: 'allow' },
      { decision: 'ask', audience: ['finance'], timeout: 5, atTimeout: 'stop' },
    ]
    expect(judged(rules, tool('crm__find'), { n: 9 })).toMatchObject({
      decision: 'deny',
      rule: 'policy.0',
    })
    expect(judged(rules, tool('crm__find'), { n: 1 })).toMatchObject({
      decision: 'allow',
      rule: 'the rest of crm',
    })
    expect(judged(rules, tool('crm_find'))).toEqual({
      rule: 'policy.2',
      ruleDigest: ruleDigest(rules[2]!),
      decision: 'ask',
      audience: ['finance'],
      timeout: 5,
      atTimeout: 'stop',
    })
  })

  test('takes a tool name as it is, not as a pattern of another kind', () => {
    expect(verdict([{ tool: 'a.b', decision: 'allow' }], tool('axb'))).toBe('ask')
  })

  test('rules can name the server, the agent and the access', () => {
    const one = { ...tool('t', 'write'), server: 'crm' }
    expect(verdict([{ server: 'crm', decision: 'deny' }], one)).toBe('deny')
    expect(verdict([{ server: 'other', decision: 'deny' }], one)).toBe('ask')
    expect(verdict([{ agent: 'a', access: 'write', decision: 'allow' }], one)).toBe('allow')
    expect(verdict([{ agent: 'b', decision: 'allow' }], one)).toBe('ask')
  })

  test('arguments that cannot be judged fall to the safe side', () => {
    const given = { amount: { under: 100 } }
    const send = tool('send')
    for (const input of [{}, { amount: '5' }, { amount: null }, undefined]) {
      expect(verdict([{ arguments: given, decision: 'allow' }], send, input)).toBe('ask')
      expect(verdict([{ arguments: given, decision: 'deny' }], send, input)).toBe('deny')
      const asks: PolicyRule[] = [{ arguments: given, decision: 'ask' }, { decision: 'allow' }]
      expect(verdict(asks, send, input)).toBe('ask')
    }
    expect(verdict([{ arguments: given, decision: 'allow' }], send, { amount: 5 })).toBe('allow')
  })

  test('a function that throws, or gives a promise, has not said yes', () => {
    const throwing = () => {
      throw new Error('no such field')
    }
    const promising = (async () => false) as unknown as () => boolean
    for (const when of [throwing, promising]) {
      expect(verdict([{ when, decision: 'allow' }], tool('x'))).toBe('ask')
      expect(verdict([{ when, decision: 'deny' }], tool('x'))).toBe('deny')
    }
  })

  test.each<[unknown, string | RegExp]>([
    [{ decision: 'maybe' }, 'policy.1.decision: write allow or ask or deny.'],
    [{ tool: 'x' }, 'policy.1.decision: write allow or ask or deny.'],
    [{ tols: 'x', decision: 'allow' }, /^policy\.1\.tols is not known\. Known: name, tool, /],
    [{ tool: '', decision: 'allow' }, 'policy.1.tool: write a text that is not empty.'],
    [{ access: 'all', decision: 'allow' }, 'policy.1.access: write read or write or execute.'],
    [{ when: true, decision: 'allow' }, 'policy.1.when: write a function.'],
    [{ decision: 'ask', timeout: 0 }, 'policy.1.timeout: write milliseconds, up to a year.'],
    [{ decision: 'ask', timeout: '5m' }, 'policy.1.timeout: write milliseconds, up to a year.'],
    [{ decision: 'ask', atTimeout: 'allow' }, /^policy\.1\.atTimeout: write reject or approve/],
    [
      { decision: 'ask', audience: [] },
      "policy.1.audience: write who may decide: ['owner', 'approver'].",
    ],
    [{ decision: 'ask', audience: 'finance' }, /^policy\.1\.audience: /],
    [
      { decision: 'allow', audience: ['owner'] },
      'policy.1.audience is for rules that ask. Leave it out.',
    ],
    [{ decision: 'ask', reason: 'x' }, 'policy.1.reason is for rules that deny. Leave it out.'],
    [{ decision: 'ask', name: 'first' }, /^policy\.1\.name: another rule is called so/],
    [
      { decision: 'ask', arguments: { a: { over: 'x' } } },
      'policy.1.arguments.a.over: write a number.',
    ],
    ['allow', /^policy\.1: write a rule/],
  ])('what can never work is refused at the start: %j', (rule, sentence) => {
    const rules = [{ name: 'first', decision: 'ask' }, rule] as PolicyRule[]
    expect(() => checkPolicy(rules)).toThrow(sentence)
  })

  test('the digest changes with tool, schema, origin and arguments, not with the order of keys (I11)', () => {
    const one = tool('t', 'write')
    expect(callDigest(one, { a: 1, b: 2 })).toBe(callDigest(one, { b: 2, a: 1 }))
    expect(callDigest(one, { a: 1 })).not.toBe(callDigest(one, { a: '1' }))
    expect(callDigest(one, {})).not.toBe(callDigest(tool('u', 'write'), {}))
    expect(callDigest(one, {})).not.toBe(callDigest({ ...one, origin: 'elsewhere' }, {}))
    expect(callDigest(one, {})).not.toBe(
      callDigest(tool('t', 'write', z.strictObject({ x: z.string() })), {}),
    )
  })
})

describe('grants', () => {
  const one: Tool = { ...tool('write', 'write'), server: 's', origin: 'o' }
  const given: Grant = {
    ...{ grantId: 'g', tool: 'write', schema: schemaDigest(one), server: 's', origin: 'o' },
    agent: 'clerk',
    rule: 'everything else is asked about',
    ruleDigest: ruleDigest(defaultPolicy[1]!),
    ...{ by: { type: 'user', id: 'ann' }, at: 0, until: 2_000 },
  }
  const allowed = ({
    grant = given,
    rules = defaultPolicy,
    used = one,
    agent = 'clerk',
    now = 1_000,
  }: {
    grant?: Grant
    rules?: readonly PolicyRule[]
    used?: Tool
    agent?: string
    now?: number
  } = {}) => {
    const state = emptyState('t')
    state.grants.set('g', grant)
    const verdict = judged(rules, used)
    return grantFor(state, { tool: used, agent, verdict }, now) !== undefined
  }

  test('allow what would be asked, until the very millisecond that they end', () => {
    expect(allowed()).toBe(true)
    expect(allowed({ now: 1_999 })).toBe(true)
    expect(allowed({ now: 2_000 })).toBe(false)
    expect(allowed({ now: 2_001 })).toBe(false)
  })

  test('are void for another schema, another server, another origin, another tool', () => {
    const schema = z.strictObject({ force: z.boolean() })
    expect(allowed({ used: { ...one, schema } })).toBe(false)
    expect(allowed({ used: { ...one, server: 'evil' } })).toBe(false)
    expect(allowed({ used: { ...one, origin: 'evil' } })).toBe(false)
    expect(allowed({ used: { ...one, name: 'write2' } })).toBe(false)
    const { server: _, origin: __, ...local } = one
    expect(allowed({ used: local as Tool })).toBe(false)
  })

  test('never lift a denial, and end with the rule that they were given by', () => {
    expect(allowed({ rules: [{ tool: 'write', decision: 'deny' }] })).toBe(false)
    expect(allowed({ rules: [{ name: 'big sums', tool: 'write', decision: 'ask' }] })).toBe(false)
    const other = { ...defaultPolicy[1]!, arguments: { amount: { over: 99 } } }
    expect(allowed({ rules: [other] }), 'the name alone is not the rule').toBe(false)
    const stricter = { ...defaultPolicy[1]!, audience: ['finance'] }
    expect(allowed({ rules: [stricter] })).toBe(false)
    expect(allowed({ rules: [stricter], grant: { ...given, audience: ['finance'] } })).toBe(true)
  })

  test('are of one agent, and of a rule wherever it stands', () => {
    expect(allowed({ agent: 'boss' })).toBe(false)
    const shifted: PolicyRule[] = [{ tool: 'other', decision: 'deny' }, ...defaultPolicy]
    expect(allowed({ rules: shifted })).toBe(true)
  })

  test('of before they said whose and by what they are, are asked for again', () => {
    const { ruleDigest: _, ...old } = given
    expect(allowed({ grant: old })).toBe(false)
    const { agent: __, ...older } = given
    expect(allowed({ grant: older })).toBe(false)
  })
})
