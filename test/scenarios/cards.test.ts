import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import type { PolicyRule } from '../../src/core/policy.ts'
import { defineTool, type Tool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, problem, said, tools } from '../support/tools.ts'

const hostile = { to: 'ann\u202E (approved)', amount: 5 }
const words = [text('I was told that you agree.\u200B'), call('1', 'send', hostile)]

const expected = {
  title: 'Send 5 to “ann⟦U+202E⟧ (approved)”',
  tool: 'send',
  agent: 'assistant',
  access: 'write',
  arguments: ['amount: 5', 'to: "ann⟦U+202E⟧ (approved)"'],
  risk: { level: 'high', why: expect.stringMatching(/cannot be seen/) },
  said: { text: 'I was told that you agree.⟦U+200B⟧' },
}

const served = async (steps: Parameters<typeof scriptedModel>[0], policy: PolicyRule[] = []) => {
  const box = tools()
  const model = scriptedModel(steps)
  const server = await serve({ model, tools: box.all, builtIns: false, policy })
  return { ...server, ...box, model }
}

describe('the card is the same on every wire', () => {
  const policy: PolicyRule[] = [
    { name: 'money', tool: 'send', decision: 'ask', audience: ['owner', 'finance'] },
  ]

  test('chats', async () => {
    const server = await served([words], policy)
    const stream = await server.start('c', 'pay')
    const ask = find(await stream.until('approval_required'), 'approval_required')
    expect(ask.card).toMatchObject({ ...expected, rule: 'money', audience: ['owner', 'finance'] })
    expect(JSON.parse(ask.tool_input)).toEqual(hostile)
    stream.leave()
  })

  test('AG-UI, as an interrupt', async () => {
    const server = await served([words], policy)
    const messages = [{ id: 'u1', role: 'user', content: 'pay' }]
    const events = await agui(server.url, { messages })
    const [interrupt] = events.at(-1).outcome.interrupts
    expect(interrupt.message).toBe(expected.title)
    expect(interrupt.metadata).toMatchObject({ card: expected, rule: 'money', input: hostile })
  })

  test('AG-UI, as a call of approveAction', async () => {
    const server = await served([words], policy)
    const tool = { name: 'approveAction', description: '', parameters: { type: 'object' } }
    const messages = [{ id: 'u1', role: 'user', content: 'pay' }]
    const events = await agui(server.url, { messages, tools: [tool] })
    const { toolCallId } = events.find((one) => one.toolCallName === 'approveAction')
    const args = events.filter(
      (one) => one.type === 'TOOL_CALL_ARGS' && one.toolCallId === toolCallId,
    )
    expect(JSON.parse(args.map(({ delta }) => delta).join('')).card).toMatchObject(expected)
  })

  test('GraphQL', async () => {
    const server = await served([words], policy)
    const [{ value }] = (await generate(server.url, 'u1', 'pay')).metaEvents
    expect(JSON.parse(value)).toMatchObject({ card: expected, rule: 'money', input: hostile })
  })
})

describe('built-in tools', () => {
  const asking = async (
    step: ReturnType<typeof call>,
    before?: (server: Served) => Promise<void>,
  ) => {
    const server = await serve({ model: scriptedModel([[step], [text('Done.')]]) })
    await before?.(server)
    const stream = await server.start('c', 'go')
    const { card, approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    return { server, stream, card, approval_id, interaction }
  }

  test('a write shows what it changes in the file that is there', async () => {
    const { mkdir, writeFile } = await import('node:fs/promises')
    const input = { path: 'notes.txt', content: 'one\nthree\n' }
    const { card, stream } = await asking(call('1', 'write_file', input), async ({ data }) => {
      const workspace = `${data}/files/default/local`
      await mkdir(workspace, { recursive: true })
      await writeFile(`${data}/files/.layout.json`, '{"version":1,"shared":[]}')
      await writeFile(`${workspace}/notes.txt`, 'one\ntwo\n')
    })
    expect(card).toMatchObject({
      title: 'Write “notes.txt” (10 bytes)',
      target: 'notes.txt',
      risk: { level: 'medium' },
      preview: { kind: 'diff', text: '@@ -1,2 +1,2 @@\n one\n-two\n+three' },
    })
    stream.leave()
  })

  test('letters that look like those of another alphabet are marked in title, target and arguments', async () => {
    const input = { path: 'p\u0430yments.txt', content: 'Привет, pаypal' }
    const { card, stream } = await asking(call('1', 'write_file', input))
    expect(card).toMatchObject({
      title: 'Write “p⟦U+0430⟧yments.txt” (21 bytes)',
      target: 'p⟦U+0430⟧yments.txt',
      arguments: ['content: "Привет, p⟦U+0430⟧ypal"', 'path: "p⟦U+0430⟧yments.txt"'],
      risk: { level: 'high', why: expect.stringMatching(/look like those of another alphabet/) },
    })
    stream.leave()
  })

  test('text in one alphabet is not marked', async () => {
    const input = { path: 'отчёт.txt', content: 'Привет, как дела?' }
    const { card, stream } = await asking(call('1', 'write_file', input))
    expect(JSON.stringify(card)).not.toContain('⟦')
    expect(card.risk.level).toBe('medium')
    stream.leave()
  })

  test('code is shown as it will run, with what hides in it', async () => {
    const code = 'let access = "user\u202E \u2066// only admins\u2069 \u2066"\n6 * 7'
    const { card, stream } = await asking(call('1', 'run_code', { code }))
    expect(card.title).toBe('Run 2 lines of JavaScript in a sandbox')
    expect(card.preview.kind).toBe('code')
    expect(card.preview.text).toContain('"user⟦U+202E⟧ ⟦U+2066⟧// only admins')
    expect(card.risk.level).toBe('high')
    stream.leave()
  })

  test('a preview that hangs or throws holds nobody up', async () => {
    const box = tools()
    const hanging: Tool = {
      ...box.send,
      preview: () => new Promise(() => {}),
      target: () => {
        throw new Error('no')
      },
    }
    const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })]])
    const server = await serve({ model, tools: [hanging], builtIns: false })
    const stream = await server.start('c', 'pay')
    const { card } = find(await stream.until('approval_required'), 'approval_required')
    expect(card).not.toHaveProperty('preview')
    expect(card).not.toHaveProperty('target')
    stream.leave()
  })
})

describe('what a tool offers in another shape, or only promises, is left out', () => {
  const late = async () => {
    throw new Error('later')
  }
  // biome-ignore lint/suspicious/noExplicitAny: plain code does not keep to our types
  const odd = async (more: any, policy: PolicyRule[] = []) => {
    const { send, sent } = tools()
    const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]])
    const server = await serve({ model, tools: [{ ...send, ...more }], builtIns: false, policy })
    const stream = await server.start('c', 'pay')
    const asked = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.recorded('c', 'run.waiting')
    await server.approve('c', interaction, { approval_id: asked.approval_id, approved: true })
    expect((await stream.rest()).at(-1)!.data.status).toBe('COMPLETED')
    expect(sent).toEqual([{ to: 'ann', amount: 5 }])
    return asked.card
  }

  test('a promise that is broken', async () => {
    const unheard: unknown[] = []
    const hear = (error: unknown) => void unheard.push(error)
    process.on('unhandledRejection', hear)
    const rule = { name: 'late', tool: 'send', when: late as never, decision: 'ask' } as const
    const card = await odd({ describe: late, target: late, risk: late, preview: late }, [rule])
    process.off('unhandledRejection', hear)
    expect(unheard).toEqual([])
    expect(card).toMatchObject({ title: 'Run send', risk: { level: 'medium' }, rule: 'late' })
    for (const part of ['target', 'preview']) expect(card).not.toHaveProperty(part)
  })

  test.each([{ level: 'none', why: 'x' }, 'high', 10n, null])('a risk like %o', async (risk) => {
    const { risk: shown } = await odd({ risk: () => risk })
    expect(shown).toEqual({ level: 'medium', why: 'It changes something.' })
  })

  test('a risk without a reason keeps its level', async () => {
    const { risk } = await odd({ risk: () => ({ level: 'high' }) })
    expect(risk).toEqual({ level: 'high', why: 'The tool does not say why.' })
  })

  test.each<unknown>([
    'text',
    { kind: 'picture', text: 'x' },
    { kind: 'diff', before: 5n, after: {} },
    { kind: 'text' },
  ])('a preview like %o', async (preview) => {
    expect(await odd({ preview: async () => preview })).not.toHaveProperty('preview')
  })

  test.each<unknown>([10n, { path: 'x' }, null])('a target like %o', async (target) => {
    expect(await odd({ target: () => target })).not.toHaveProperty('target')
  })
})

/** A server whose run waits for the approval of a payment. */
async function waiting(policy: PolicyRule[] = []) {
  const server = await served(
    [[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]],
    policy,
  )
  const stream = await server.start('c', 'pay')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await server.recorded('c', 'run.waiting')
  const decide = (more: object) =>
    server.approve('c', interaction, { approval_id, approved: true, ...more })
  return { server, stream, decide, interaction, approval_id }
}

describe('what was shown is what runs (I11)', () => {
  test.each<[string, object, string]>([
    ['of another kind', { to: 'ann', amount: '5' }, 'body.edited_input.amount'],
    ['over a limit', { to: 'ann', amount: 500 }, 'body.edited_input.amount'],
    ['missing', { to: 'ann' }, 'body.edited_input.amount'],
    ['unknown', { to: 'ann', amount: 5, admin: true }, 'body.edited_input.admin'],
    [
      'inherited',
      JSON.parse('{"to":"ann","amount":5,"__proto__":{"x":1}}'),
      'body.edited_input.__proto__',
    ],
  ])(
    'an edit with something %s is refused, and nothing changes',
    async (_, edited_input, field) => {
      const { server, stream, decide } = await waiting()
      const before = (await server.journal('c')).length
      expect(await problem(await decide({ edited_input }))).toMatchObject({
        http: 400,
        code: 'invalid_request',
        field,
      })
      expect(await server.journal('c')).toHaveLength(before)
      expect((await decide({})).status).toBe(200)
      await stream.rest()
      expect(server.sent).toEqual([{ to: 'ann', amount: 5 }])
    },
  )

  test('an edit is judged by the policy too', async () => {
    const { server, stream, decide } = await waiting([
      { name: 'never', arguments: { amount: { over: 90 } }, decision: 'deny' },
      {
        name: 'large',
        arguments: { amount: { over: 50 } },
        decision: 'ask',
        audience: ['finance'],
      },
    ])
    const before = (await server.journal('c')).length
    for (const [amount, why] of [
      [95, /does not allow this \(never\)/],
      [60, /for others to decide \(large\)/],
    ] as const) {
      const refused = await problem(await decide({ edited_input: { to: 'ann', amount } }))
      expect(refused).toMatchObject({ http: 400, field: 'body.edited_input' })
      expect(refused.message).toMatch(why)
    }
    expect(await server.journal('c')).toHaveLength(before)
    expect((await decide({ edited_input: { to: 'bob', amount: 7 } })).status).toBe(200)
    await stream.rest()
    expect(server.sent).toEqual([{ to: 'bob', amount: 7 }])
  })

  test.each<[string, (send: Tool) => Tool]>([
    ['has another schema', (send) => ({ ...send, schema: z.looseObject({ to: z.string() }) })],
    ['is of another server', (send) => ({ ...send, server: 'evil', origin: 'evil' })],
  ])('an approval, or an edit, of a tool that now %s runs nothing', async (_, change) => {
    const data = await temporaryDirectory()
    const steps = [[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]]
    const settings = (tool: Tool, from = 0) => ({
      ...{ model: scriptedModel(steps.slice(from)), tools: [tool], builtIns: false },
    })
    const box = tools()
    const first = await serve(settings(box.send), { data: data.path })
    const stream = await first.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await first.recorded('c', 'run.waiting')
    stream.leave()
    await first.close()
    const now = settings(change(box.send), 1)
    const second = await serve(now, { data: data.path })
    const joined = await second.join('c', interaction)
    const edit = { approval_id, approved: true, edited_input: { to: 'bob', amount: 1 } }
    const refused = await problem(await second.approve('c', interaction, edit))
    expect(refused).toMatchObject({ http: 400, field: 'body.edited_input' })
    expect(refused.message).toMatch(/the tool changed/)
    await second.approve('c', interaction, { approval_id, approved: true })
    await joined.rest()
    expect(box.sent).toEqual([])
    expect(said(now.model.requests[0]).at(-1)).toMatch(/The tool changed after/)
    await second.close()
    await data.remove()
  })

  test.each([
    ['as it was shown, where the schema reads it otherwise each time', undefined],
    ['as it was edited', { at: 7 }],
  ])('a call runs %s', async (_, edited_input) => {
    let now = 100
    const ran: { at: number }[] = []
    const clocked = defineTool({
      name: 'send',
      description: '',
      schema: z.strictObject({ at: z.number().default(() => now++) }),
      access: 'write',
      run: async (input) => void ran.push(input),
    })
    const model = scriptedModel([[call('1', 'send', {})], [text('Done.')]])
    const server = await serve({ model, tools: [clocked], builtIns: false })
    const stream = await server.start('c', 'pay')
    const asked = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.recorded('c', 'run.waiting')
    const { approval_id } = asked
    const edit = edited_input && { edited_input }
    await server.approve('c', interaction, { approval_id, approved: true, ...edit })
    await stream.rest()
    expect(ran).toEqual([edited_input ?? JSON.parse(asked.tool_input)])
  })

  test('what JSON does not hold is there for the tool when it runs', async () => {
    const ran: unknown[] = []
    const dated = defineTool({
      name: 'send',
      description: '',
      schema: z.strictObject({ day: z.string().transform((day) => new Date(day)) }),
      access: 'write',
      run: async ({ day }) => void ran.push(day),
    })
    const model = scriptedModel([[call('1', 'send', { day: '2026-11-17' })], [text('Done.')]])
    const server = await serve({ model, tools: [dated], builtIns: false })
    const stream = await server.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.approve('c', interaction, { approval_id, approved: true })
    await stream.rest()
    expect(ran).toEqual([new Date('2026-11-17')])
  })

  test('an edit is of the tool of the agent that asks, not of another agent with such a tool', async () => {
    const [mine, other] = [tools(), tools()]
    const stranger = {
      ...other.send,
      schema: z.strictObject({ iban: z.string() }) as Tool['schema'],
    }
    const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]])
    const agents = [
      { agent: toolLoop({ name: 'payer' }), tools: [mine.send] },
      { agent: toolLoop({ name: 'banker' }), tools: [stranger] },
    ]
    const server = await serve({ model, agents, builtIns: false })
    const stream = await server.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    const edit = {
      approval_id,
      approved: true,
      remember: true,
      edited_input: { to: 'bob', amount: 2 },
    }
    expect((await server.approve('c', interaction, edit)).status).toBe(200)
    await stream.rest()
    expect([mine.sent, other.sent]).toEqual([[{ to: 'bob', amount: 2 }], []])
  })

  test('a tool that changes between the answer and the call is not run', async () => {
    const box = tools()
    const list: Tool[] = [box.send]
    const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]])
    const server = await serve({ model, tools: list, builtIns: false })
    const stream = await server.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.recorded('c', 'run.waiting')
    const { store } = server.server
    const append = store.append.bind(store)
    store.append = async (threadId, entries, guard) => {
      const written = await append(threadId, entries, guard)
      // The answer is durable: from now on it is another tool.
      if (entries.some(({ kind }) => kind === 'ask.answered'))
        Object.assign(box.send, { origin: 'new' })
      return written
    }
    await server.approve('c', interaction, { approval_id, approved: true })
    await stream.rest()
    expect(box.sent).toEqual([])
    expect(said(model.requests[1]).at(-1)).toMatch(/The tool changed after/)
  })

  test('a call that was approved and is denied by now is not run, and the journal says why', async () => {
    const data = await temporaryDirectory()
    const steps = [[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]]
    const box = tools()
    const first = await serve(
      { model: scriptedModel(steps), tools: box.all, builtIns: false },
      { data: data.path },
    )
    const stream = await first.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await first.recorded('c', 'run.waiting')
    stream.leave()
    await first.close()
    const policy: PolicyRule[] = [{ name: 'frozen', tool: 'send', decision: 'deny' }]
    const model = scriptedModel(steps.slice(1))
    const second = await serve(
      { model, tools: box.all, builtIns: false, policy },
      { data: data.path },
    )
    const joined = await second.join('c', interaction)
    await second.approve('c', interaction, { approval_id, approved: true })
    expect(find(await joined.rest(), 'denied')).toMatchObject({ decision: 'deny', rule: 'frozen' })
    expect(box.sent).toEqual([])
    await second.close()
    await data.remove()
  })
})

describe('hostile input', () => {
  const anything = (ran: unknown[]): Tool => ({
    ...tools().send,
    schema: z.looseObject({}) as Tool['schema'],
    describe: (input) => `Take ${JSON.stringify(input)}`,
    run: async (input) => {
      ran.push(input)
      return 'taken'
    },
  })

  test('arguments nested a hundred thousand deep are refused to the model, and the run goes on', async () => {
    const ran: unknown[] = []
    const input = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    const model = scriptedModel([
      [{ type: 'call', callId: '1', name: 'send', input }],
      [text('Oh.')],
    ])
    const server = await serve({ model, tools: [anything(ran)], builtIns: false })
    const frames = await (await server.start('c', 'go')).rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(said(model.requests[1]).at(-1)).toMatch(/not valid.*nested too deeply/)
    expect(ran).toEqual([])
  })

  test('arguments of ten million characters end the call, not the server', async () => {
    const ran: unknown[] = []
    const input = JSON.stringify({ a: 'x'.repeat(10_000_000) })
    const model = scriptedModel([
      [{ type: 'call', callId: '1', name: 'send', input }],
      [text('Oh.')],
    ])
    const server = await serve({ model, tools: [anything(ran)], builtIns: false })
    const frames = await (await server.start('c', 'go')).rest()
    expect(find(frames, 'error').code).toBe('answer_too_large')
    expect(ran).toEqual([])
  })

  test('arguments just under the limit are asked about with a small card, and run whole', async () => {
    const ran: { a: string }[] = []
    const input = { a: '\u200B'.repeat(900_000) }
    const model = scriptedModel([[call('1', 'send', input)], [text('Oh.')]])
    const server = await serve({ model, tools: [anything(ran)], builtIns: false })
    const stream = await server.start('c', 'go')
    const { card, approval_id } = find(await stream.until('approval_required'), 'approval_required')
    expect(JSON.stringify(card).length).toBeLessThan(50_000)
    expect(card.arguments[0]).toMatch(/^a: "(⟦U\+200B⟧)+… \([\d,]+ more characters\)$/)
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.approve('c', interaction, { approval_id, approved: true })
    await stream.rest()
    expect(ran).toEqual([input])
  })

  test('an edit that is too deep is refused on the wires that take it as text', async () => {
    const ran: unknown[] = []
    const model = scriptedModel([[call('1', 'send', { a: 1 })], [text('Oh.')]])
    const server = await serve({ model, tools: [anything(ran)], builtIns: false })
    const [{ value }] = (await generate(server.url, 'u1', 'go')).metaEvents
    const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
    const response = `{"approved":true,"editedArgs":${deep}}`
    const metaEvents = [{ name: 'LangGraphInterruptEvent', value, response }]
    const before = (await server.journal('c')).length
    const at = { id: 'u1', createdAt: new Date(0).toISOString() }
    const messages = [{ ...at, textMessage: { content: 'go', role: 'user' } }]
    const told = await generate(server.url, 'u1', 'go', { metaEvents, messages }).catch(String)
    expect(JSON.stringify(told)).toMatch(/nested deeper than 64 levels/)
    expect(await server.journal('c')).toHaveLength(before)
    expect(ran).toEqual([])
  })

  test('names that objects inherit are names like others', async () => {
    const ran: unknown[] = []
    const input = '{"__proto__":{"polluted":true},"constructor":"x","toString":1}'
    const model = scriptedModel([
      [{ type: 'call', callId: '1', name: 'send', input }],
      [text('Oh.')],
    ])
    const rules: PolicyRule[] = [{ arguments: { polluted: { equals: true } }, decision: 'allow' }]
    const server = await serve({ model, tools: [anything(ran)], builtIns: false, policy: rules })
    const stream = await server.start('c', 'go')
    const { card } = find(await stream.until('approval_required'), 'approval_required')
    expect(card.arguments).toEqual(expect.arrayContaining(['constructor: "x"', 'toString: 1']))
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    stream.leave()
  })
})
