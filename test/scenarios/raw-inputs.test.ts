import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { PolicyRule } from '../../src/core/policy.ts'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, names, said } from '../support/tools.ts'

class Money {
  readonly #cents: number
  constructor(text: string) {
    this.#cents = Math.round(Number(text) * 100)
  }
  get cents() {
    return this.#cents
  }
}

const kinds = {
  set: z.array(z.string()).transform((list) => new Set(list)),
  map: z.record(z.string(), z.string()).transform((given) => new Map(Object.entries(given))),
  date: z.string().transform((day) => new Date(day)),
  money: z.string().transform((amount) => new Money(amount)),
  bigint: z.string().transform((digits) => BigInt(digits)),
  nan: z.string().transform(Number),
  undefined: z.string().transform(() => undefined),
  coercedDate: z.coerce.date(),
  coercedBigint: z.coerce.bigint(),
  preparedDate: z.preprocess((day) => new Date(day as string), z.date()),
  taken: z.any().transform((list: string[]) => new Set(list.splice(0))), // changes its input
}
const values: [keyof typeof kinds, unknown, unknown][] = [
  ['set', ['a', 'b'], ['c']],
  ['map', { a: '1' }, { a: '2' }],
  ['date', '2026-11-17', '2026-11-18'],
  ['money', '1.50', '99.00'],
  ['bigint', '12345678901234567890', '1'],
  ['nan', 'many', 'few'],
  ['undefined', 'all', 'none'],
  ['coercedDate', '2026-11-17T10:00:00Z', '2026-11-18T10:00:00Z'],
  ['coercedBigint', '12345678901234567890', '1'],
  ['preparedDate', '2026-11-17', '2026-11-18'],
  ['taken', ['a', 'b'], ['c']],
]

function keeping(kind: keyof typeof kinds) {
  const ran: unknown[] = []
  const tool = defineTool({
    name: 'keep',
    description: '',
    schema: z.strictObject({ value: kinds[kind], note: z.string().default('none') }),
    access: 'write',
    run: async ({ value }) => {
      ran.push(value)
      return 'Kept.'
    },
  })
  return { ran, tool }
}

const done = [text('Done.')]

const served = async (
  { tool }: ReturnType<typeof keeping>,
  steps: Parameters<typeof scriptedModel>[0],
  more: { policy?: PolicyRule[]; data?: string; guardrails?: object } = {},
) => {
  const { data, ...rest } = more
  const model = scriptedModel(steps)
  const options = data === undefined ? {} : { data }
  const server = await serve({ model, tools: [tool], builtIns: false, ...rest }, options)
  return { ...server, model }
}

async function asked(server: Pick<Served, 'start'>) {
  const stream = await server.start('c', 'go')
  const ask = find(await stream.until('approval_required'), 'approval_required')
  return { stream, ask, run: stream.response.headers.get('x-interaction-id')! }
}

/** What a person can tell apart: a Set by its members, an amount by its cents. */
const seen = (value: unknown): unknown => {
  if (value instanceof Set || value instanceof Map) return [value.constructor.name, ...value]
  if (value instanceof Money) return ['Money', value.cents]
  return value
}

describe.each(values)('raw input: %s', (kind, sent, other) => {
  const parsed = kinds[kind].parse(structuredClone(sent) as never)

  test(`an input parsed to a ${kind} is shown, stored and digested as sent, and parsed again to run`, async () => {
    const box = keeping(kind)
    const calls = [call('1', 'keep', { value: sent }), call('2', 'keep', { value: other })]
    const server = await served(box, [calls, done])
    const stream = await server.start('c', 'go')
    const first = find(await stream.until('approval_required'), 'approval_required')
    const second = find(await stream.until('approval_required'), 'approval_required')
    expect(JSON.parse(first.tool_input)).toEqual({ value: sent })
    expect(first.card.arguments).toEqual([`value: ${JSON.stringify(sent)}`])
    expect(second.card.arguments).toEqual([`value: ${JSON.stringify(other)}`])
    expect(first.card.digest).not.toBe(second.card.digest)
    const run = stream.response.headers.get('x-interaction-id')!
    await server.approve('c', run, { approval_id: first.approval_id, approved: true })
    await server.approve('c', run, { approval_id: second.approval_id, approved: false })
    const rest = await stream.rest()
    expect(box.ran.map(seen)).toEqual([seen(parsed)])
    expect(JSON.parse(find(rest, 'tool_call').tool_input)).toEqual({ value: sent })
  })

  test(`an input parsed to a ${kind} keeps its type when the server restarts before the approval`, async () => {
    const { path: data, remove } = await temporaryDirectory()
    onTestFinished(remove)
    const before = await served(keeping(kind), [[call('1', 'keep', { value: sent })]], { data })
    const { ask, run } = await asked(before)
    await before.recorded('c', 'run.waiting')
    await before.close()
    const box = keeping(kind)
    const after = await served(box, [done], { data })
    await after.approve('c', run, { approval_id: ask.approval_id, approved: true })
    await (await after.join('c', run)).rest()
    expect(box.ran.map(seen)).toEqual([seen(parsed)])
  })

  test(`an input parsed to a ${kind} can be edited as JSON`, async () => {
    const box = keeping(kind)
    const server = await served(box, [[call('1', 'keep', { value: other })], done])
    const { ask, run, stream } = await asked(server)
    const edit = { approval_id: ask.approval_id, approved: true, edited_input: { value: sent } }
    expect((await server.approve('c', run, edit)).status).toBe(200)
    await stream.rest()
    expect(box.ran.map(seen)).toEqual([seen(parsed)])
  })
})

test('an input parsed to a Set keeps its type after a restart, also if the schema returns another default each time', async () => {
  const { path: data, remove } = await temporaryDirectory()
  onTestFinished(remove)
  let now = 0
  const ran: unknown[] = []
  const tool = defineTool({
    name: 'keep',
    description: '',
    schema: z.strictObject({ value: kinds.set, at: z.number().default(() => now++) }),
    access: 'write',
    run: async ({ value }) => void ran.push(value),
  })
  const step = [call('1', 'keep', { value: ['a', 'b'] })]
  const before = await served({ tool, ran }, [step], { data })
  const { ask, run } = await asked(before)
  await before.recorded('c', 'run.waiting')
  await before.close()
  const after = await served({ tool, ran }, [done], { data })
  await after.approve('c', run, { approval_id: ask.approval_id, approved: true })
  await (await after.join('c', run)).rest()
  expect(ran).toEqual([new Set(['a', 'b'])])
})

test('an edit to an input that JSON represents runs with the edited value', async () => {
  const ran: unknown[] = []
  const tool = defineTool({
    name: 'keep',
    description: '',
    schema: z.strictObject({ tags: kinds.set.optional(), note: z.string().default('none') }),
    access: 'write',
    run: async (input) => void ran.push(input),
  })
  const server = await served({ tool, ran }, [[call('1', 'keep', { tags: ['a'] })], done])
  const { ask, run, stream } = await asked(server)
  const edit = { approval_id: ask.approval_id, approved: true, edited_input: { note: 'mine' } }
  await server.approve('c', run, edit)
  await stream.rest()
  expect(ran).toEqual([{ note: 'mine' }])
})

test('AG-UI and GraphQL show the raw input too', async () => {
  const step = [call('1', 'keep', { value: ['a', 'b'] })]
  const server = await served(keeping('set'), [step, step])
  const messages = [{ id: 'u1', role: 'user', content: 'go' }]
  const events = await agui(server.url, { messages })
  const [interrupt] = events.at(-1).outcome.interrupts
  const shown = { input: { value: ['a', 'b'] }, card: { arguments: ['value: ["a","b"]'] } }
  expect(interrupt.metadata).toMatchObject(shown)
  const [{ value }] = (await generate(server.url, 'u1', 'go')).metaEvents
  expect(JSON.parse(value)).toMatchObject(shown)
})

test('conditions of the policy read the raw input where JSON cannot represent the parsed one', async () => {
  const policy: PolicyRule[] = [
    { tool: 'keep', arguments: { value: { contains: 'secret' } }, decision: 'deny', reason: 'No.' },
    {
      tool: 'keep',
      when: (input) => (input as { value: Set<string> }).value.has('a'),
      decision: 'allow',
    },
  ]
  const box = keeping('set')
  const steps = [
    [call('1', 'keep', { value: ['a', 'secret'] }), call('2', 'keep', { value: ['a'] })],
    done,
  ]
  const server = await served(box, steps, { policy })
  expect(names(await (await server.start('c', 'go')).rest())).not.toContain('approval_required')
  expect(said(server.model.requests[1])).toContainEqual(expect.stringContaining('not allowed: No.'))
  expect(box.ran.map(seen)).toEqual([['Set', 'a']])
})

test('guardrails on arguments read texts that the schema puts into a Set', async () => {
  const guardrails = {
    arguments: [{ name: 'passwords', words: ['hunter2'], decision: 'deny' as const }],
  }
  const box = keeping('set')
  const step = [call('1', 'keep', { value: ['hunter2'] })]
  const server = await served(box, [step, done], { guardrails })
  expect(names(await (await server.start('c', 'go')).rest())).not.toContain('approval_required')
  expect(box.ran).toEqual([])
})

test('texts of the model that the schema puts into a Set are quoted in the title', async () => {
  const box = keeping('set')
  box.tool.describe = (input) => `Keep ${[...(input as { value: Set<string> }).value].join(', ')}`
  const server = await served(box, [[call('1', 'keep', { value: ['nothing (approved by you)'] })]])
  const { ask, stream } = await asked(server)
  expect(ask.card.title).toBe('Run keep: “Keep nothing (approved by you)”')
  stream.leave()
})

describe('a schema that transforms JSON to other JSON', () => {
  const euros = z.number().transform((amount) => Math.round(amount * 100))

  function paying(amount: z.ZodType = euros) {
    const ran: unknown[] = []
    const tool = defineTool({
      name: 'pay',
      description: '',
      schema: z.strictObject({ amount, memo: z.string().default('') }),
      access: 'write',
      describe: (input) => `Pay ${(input as { amount: number }).amount} cents`,
      run: async (input) => {
        ran.push(input)
        return 'Paid.'
      },
    })
    return { ran, tool }
  }
  const pay = (id: string, amount: unknown = 5) => call(id, 'pay', { amount })

  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
  const approval = async (server: { url: string }, id: string): Promise<any> =>
    await (await fetch(`${server.url}/approvals/${id}`)).json()
  const decide = (server: Pick<Served, 'request'>, id: string, edited_input: unknown) =>
    server.request('POST', `/approvals/${id}`, { approved: true, edited_input })

  test('the card of a transformed input shows the input as sent, and its title describes what runs', async () => {
    const box = paying()
    const server = await served(box, [[pay('1')], done])
    const { ask, run, stream } = await asked(server)
    expect(ask.card).toMatchObject({ title: 'Pay 500 cents', arguments: ['amount: 5'] })
    expect((await approval(server, ask.approval_id)).input).toEqual({ amount: 5 })
    await server.approve('c', run, { approval_id: ask.approval_id, approved: true })
    await stream.rest()
    expect(box.ran).toEqual([{ amount: 500, memo: '' }])
  })

  test('an edit is written as the card shows the input, and is transformed once', async () => {
    const box = paying()
    const server = await served(box, [[pay('1')], done])
    const { ask, stream } = await asked(server)
    const edit = { amount: 7, memo: 'x' }
    expect((await decide(server, ask.approval_id, edit)).status).toBe(200)
    await stream.rest()
    expect(box.ran).toEqual([{ amount: 700, memo: 'x' }])
    expect(await approval(server, ask.approval_id)).toMatchObject({
      ...{ title: 'Pay 700 cents', input: edit, edited: true, original_input: { amount: 5 } },
    })
  })

  test('an edit of a text that the schema turns into a number is accepted as a text', async () => {
    const box = paying(z.string().transform(Number))
    const server = await served(box, [[pay('1', '5')], done])
    const { ask, stream } = await asked(server)
    expect(JSON.parse(ask.tool_input)).toEqual({ amount: '5' })
    expect((await decide(server, ask.approval_id, { amount: '7' })).status).toBe(200)
    await stream.rest()
    expect(box.ran).toEqual([{ amount: 7, memo: '' }])
  })

  describe('an input that is sent back as it was shown runs as the model sent it and is not an edit', () => {
    const unedited = async (server: Served, box: { ran: unknown[] }, id: string) => {
      expect(box.ran).toEqual([{ amount: 500, memo: '' }])
      expect(await approval(server, id)).not.toHaveProperty('edited')
      expect(await approval(server, id)).toMatchObject({ input: { amount: 5 }, state: 'approved' })
    }

    test('POST /approvals/{id}', async () => {
      const box = paying()
      const server = await served(box, [[pay('1')], done])
      const { ask, stream } = await asked(server)
      const { input } = await approval(server, ask.approval_id)
      expect((await decide(server, ask.approval_id, input)).status).toBe(200)
      await stream.rest()
      await unedited(server, box, ask.approval_id)
    })

    test('chats wire', async () => {
      const box = paying()
      const server = await served(box, [[pay('1')], done])
      const { ask, run, stream } = await asked(server)
      const { approval_id } = ask
      const edited_input = JSON.parse(ask.tool_input)
      await server.approve('c', run, { approval_id, approved: true, edited_input })
      await stream.rest()
      await unedited(server, box, approval_id)
    })

    test('GraphQL', async () => {
      const box = paying()
      const server = await served(box, [[pay('1')], done])
      const [{ name, value }] = (await generate(server.url, 'u1', 'go')).metaEvents
      const { askId, input } = JSON.parse(value)
      const response = JSON.stringify({ approved: true, editedArgs: input })
      await generate(server.url, 'u1', 'go', { metaEvents: [{ name, value, response }] })
      await unedited(server, box, askId)
    })

    test('AG-UI', async () => {
      const box = paying()
      const server = await served(box, [[pay('1')], done])
      const messages = [{ id: 'u1', role: 'user', content: 'go' }]
      const [{ id, metadata }] = (await agui(server.url, { messages })).at(-1).outcome.interrupts
      const payload = { approved: true, editedArgs: metadata.input }
      const resume = [{ interruptId: id, status: 'resolved', payload }]
      await agui(server.url, { messages, resume, runId: 'r2' })
      await unedited(server, box, metadata.askId ?? id)
    })

    test('workflow', async () => {
      const box = paying()
      const server = await served(box, [[pay('1')], done])
      const body = { session_id: 's', messages: [{ role: 'user', content: 'go' }] }
      const stream = await server.open('POST', '/copilotkit/chat', body)
      const { approval_id } = find(
        await stream.until('approval_required'),
        'approval_required',
      ).data
      const { input } = await approval(server, approval_id)
      await decide(server, approval_id, input)
      const frames = await stream.rest()
      expect(find(frames, 'approval_response').data).not.toHaveProperty('edited')
      expect(find(frames, 'tool_call').data).not.toHaveProperty('edited')
      await unedited(server, box, approval_id)
    })
  })

  test('conditions of the policy read the transformed value, which runs', async () => {
    const policy: PolicyRule[] = [
      {
        tool: 'pay',
        arguments: { amount: { over: 1_000 } },
        decision: 'deny',
        reason: 'Too much.',
      },
      { tool: 'pay', decision: 'ask' },
    ]
    const box = paying()
    const server = await served(box, [[pay('1', 11), pay('2')], done], { policy })
    const { ask, stream } = await asked(server)
    expect(JSON.parse(ask.tool_input)).toEqual({ amount: 5 })
    const refused = await decide(server, ask.approval_id, { amount: 11 })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('the policy does not allow this')
    await decide(server, ask.approval_id, { amount: 9 })
    await stream.rest()
    expect(said(server.model.requests[1])).toContainEqual(expect.stringContaining('Too much.'))
    expect(box.ran).toEqual([{ amount: 900, memo: '' }])
  })

  const decoding = () => paying(z.string().transform((code) => atob(code)))

  test.each([
    ['as the model sent them', btoa('hunter2')],
    ['as they run', 'hunter2'],
  ])('guardrails on arguments read texts %s', async (_, word) => {
    const rule = { name: 'passwords', words: [word], decision: 'deny' as const }
    const box = decoding()
    const step = [pay('1', btoa('hunter2'))]
    const server = await served(box, [step, done], { guardrails: { arguments: [rule] } })
    expect(names(await (await server.start('c', 'go')).rest())).not.toContain('approval_required')
    expect(box.ran).toEqual([])
  })

  test('the card warns of characters that only the transformed text has and that cannot be seen', async () => {
    const hiding = paying(z.string().transform((text) => text.replace('-', '\u202e')))
    const server = await served(hiding, [[pay('1', 'a-b')]])
    const { ask, stream } = await asked(server)
    expect(ask.card.risk).toMatchObject({ level: 'high', why: expect.stringContaining('seen') })
    stream.leave()
  })

  describe('approvals that an older version stored with the transformed input', () => {
    /** As the older version: 5 becomes 500, which it stored as the input. Both schemas have the same JSON Schema. */
    const older = z.number().transform((amount) => (amount < 100 ? amount * 100 : amount))

    async function upgraded(steps: ReturnType<typeof call>[]) {
      const { path: data, remove } = await temporaryDirectory()
      onTestFinished(remove)
      const before = await served(paying(older), [steps], { data })
      const stream = await before.start('c', 'go')
      const first = find(await stream.until('approval_required'), 'approval_required')
      const rest =
        steps.length > 1 ? [find(await stream.until('approval_required'), 'approval_required')] : []
      await before.recorded('c', 'run.waiting')
      const run = stream.response.headers.get('x-interaction-id')!
      const ids: string[] = [first, ...rest].map(({ approval_id }) => approval_id)
      return {
        before,
        ids,
        async upgrade() {
          await before.close()
          const box = paying()
          const after = await served(box, [done], { data })
          return { box, after, finish: async () => await (await after.join('c', run)).rest() }
        },
      }
    }

    test.each([
      ['without an input', undefined],
      ['with the input that the card shows, in another order', { memo: '', amount: 500 }],
    ])('an approval %s runs what the card showed', async (_, input) => {
      const { ids, upgrade } = await upgraded([pay('1')])
      const { box, after, finish } = await upgrade()
      expect((await approval(after, ids[0]!)).input).toEqual({ amount: 500, memo: '' })
      expect((await decide(after, ids[0]!, input)).status).toBe(200)
      await finish()
      expect(box.ran).toEqual([{ amount: 500, memo: '' }])
      expect(await approval(after, ids[0]!)).not.toHaveProperty('edited')
    })

    test('an edit is refused, because the card shows the input after the transform', async () => {
      const { ids, upgrade } = await upgraded([pay('1')])
      const { box, after, finish } = await upgrade()
      const response = await decide(after, ids[0]!, { amount: 600, memo: '' })
      expect(response.status).toBe(400)
      expect(await response.text()).toContain('older version')
      expect(await approval(after, ids[0]!)).toMatchObject({ state: 'pending' })
      await decide(after, ids[0]!, undefined)
      await finish()
      expect(box.ran).toEqual([{ amount: 500, memo: '' }])
    })

    test('an edit that may have been transformed twice does not run', async () => {
      const { before, ids, upgrade } = await upgraded([pay('1'), pay('2')])
      const edit = { amount: 50_000, memo: '' } // what the older version made of an edit to 500
      expect((await decide(before, ids[0]!, edit)).status).toBe(200)
      const { box, after, finish } = await upgrade()
      await decide(after, ids[1]!, undefined)
      await finish()
      expect(box.ran).toEqual([{ amount: 500, memo: '' }])
      expect(said(after.model.requests[0])).toContainEqual(expect.stringContaining('not run'))
    })
  })
})
