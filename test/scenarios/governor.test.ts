import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { RuntimeError } from '../../src/core/errors.ts'
import { userText } from '../../src/core/messages.ts'
import type { ModelEvent } from '../../src/core/model.ts'
import { remoteCalls } from '../../src/core/remote.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import type { Settings } from '../../src/settings.ts'
import { type Served, serve } from '../support/serve.ts'
import { look, send } from '../support/story.ts'
import { find, problem, said, tools } from '../support/tools.ts'

const on = (limit: number, more: Record<string, string> = {}) => ({
  env: { HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: String(limit), ...more },
})

async function story(
  steps: Parameters<typeof scriptedModel>[0],
  options: Parameters<typeof serve>[1],
  more: Settings = {},
) {
  const box = tools()
  const model = scriptedModel(steps)
  const server = await serve({ model, tools: box.all, builtIns: false, ...more }, options)
  return { ...server, ...box, model }
}

/** Starts, and reads up to the question for more budget. */
async function spent(server: Served, chat = 'c', query = '') {
  const stream = await server.start(chat, 'the sea?', query)
  const before = await stream.until('approval_required')
  const { interaction_id } = find(before, 'interaction_started')
  const asked = before.at(-1)!.data
  const { approval_id } = asked
  const answer = (body: object) => server.approve(chat, interaction_id, { approval_id, ...body })
  return { stream, before, asked, interaction_id, input: JSON.parse(asked.tool_input), answer }
}

const governor = async (server: Served, chat = 'c') =>
  (await server.request('GET', `/threads/${chat}/governor`)).json()
const put = (server: Served, body: object, chat = 'c') =>
  server.request('PUT', `/threads/${chat}/governor`, body)
const status = (frames: Awaited<ReturnType<Awaited<ReturnType<Served['start']>>['rest']>>) =>
  find(frames, 'interaction_complete').status

const kinds = async (server: Served, chat = 'c') =>
  (await server.journal(chat)).map(({ kind }) => kind)

/** The journal's reservations: model calls, by their effect. */
const reserved = async (server: Served, chat = 'c') =>
  (await server.journal(chat)).flatMap((entry) =>
    entry.kind === 'effect.intended' && entry.body.effect !== 'tool' ? [entry.body] : [],
  )

const steps = [[look('1', 'sea')], [look('2', 'sky')], [text('Blue.')], [text('More.')]]

describe('the four steps of the budget', () => {
  test('off: no limit, and tools still ask', async () => {
    const server = await story([[look('1', 'sea')], [send('2')], [text('Done.')]], {
      env: { HANDRAIL_ACTION_LIMIT: '1' },
    })
    const { asked, answer, stream } = await spent(server)
    expect(asked.kind).toBe('approval')
    await answer({ approved: true })
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(await governor(server)).toMatchObject({
      ...{ isHitlEnabled: false, mode: 'off', remaining: null, total: 3, policy: 'in force' },
      pending: null,
    })
  })

  test('on: calls are made until the budget is used up, then one question, then that very call', async () => {
    const server = await story(steps, on(2))
    const { asked, input, answer, stream } = await spent(server)
    expect(server.model.requests).toHaveLength(2)
    expect(asked).toMatchObject({ kind: 'budget', action: 'budget' })
    expect(input).toMatchObject({
      ...{ actionLimit: 2, isHitlEnabled: true, actionsUsed: 2, total: 2, spent: 'actions' },
      pending: { agent: 'assistant', model: 'scripted', purpose: 'result of look: saw sky' },
    })
    expect(input.options.map((one: { option: string }) => one.option)).toEqual([
      ...['more', 'unlimited', 'summarise', 'stop'],
    ])
    expect(await governor(server)).toMatchObject({
      ...{ mode: 'asking', remaining: 0, pending: asked.approval_id },
    })
    expect((await answer({ approved: true, newLimit: 20, newStatus: true })).status).toBe(200)
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(server.looked).toEqual(['sea', 'sky'])
    expect(said(server.model.requests[2]).at(-1)).toBe('tool: saw sky')
    const made = await reserved(server)
    expect(made).toHaveLength(3)
    expect(made[2]).toMatchObject({ effectId: input.pending.effectId, attempt: 1 })
    expect(await governor(server)).toMatchObject({
      ...{ actionLimit: 20, actionsUsed: 1, remaining: 19, total: 3, mode: 'auto' },
    })
    // The answer and what it sets are one transition.
    const journal = await server.journal('c')
    const answered = journal.find(({ kind }) => kind === 'ask.answered')!
    const together = journal.filter(({ tx }) => tx === answered.tx).map(({ kind }) => kind)
    expect(together).toEqual(['ask.answered', 'governor.set', 'run.queued'])
  })

  test('an ops request that sets the budget answers the question, in one transition', async () => {
    const server = await story(steps, on(2))
    const { stream, asked } = await spent(server)
    const set = await put(server, { actionLimit: 7 })
    expect(await set.json()).toMatchObject({ actionLimit: 7, actionsUsed: 0, pending: null })
    expect(status(await stream.rest())).toBe('COMPLETED')
    const journal = await server.journal('c')
    const answered = journal.find(({ kind }) => kind === 'ask.answered')!
    expect(answered).toMatchObject({ body: { askId: asked.approval_id }, actor: { wire: 'ops' } })
    const together = journal.filter(({ tx }) => tx === answered.tx).map(({ kind }) => kind)
    expect(together).toEqual(['ask.answered', 'governor.set', 'run.queued'])
  })

  test('stop ends the run, and no call is made', async () => {
    const server = await story(steps, on(2))
    const { answer, stream } = await spent(server)
    await answer({ stop: true })
    expect(status(await stream.rest())).toBe('CANCELLED')
    expect(server.model.requests).toHaveLength(2)
  })

  test('lowered below what is used: the next call asks', async () => {
    const server = await story(steps, on(5))
    await (await server.start('c', 'hi')).rest()
    const set = await put(server, { actionLimit: 1 })
    expect(await set.json()).toMatchObject({ actionLimit: 1, actionsUsed: 3, remaining: 0 })
    const { input, answer, stream } = await spent(server)
    expect(input).toMatchObject({ actionLimit: 1, actionsUsed: 3 })
    expect(server.model.requests).toHaveLength(3)
    await answer({ approved: true })
    await stream.rest()
    expect(await governor(server)).toMatchObject({ actionLimit: 1, actionsUsed: 1, total: 4 })
  })

  test('open streams are told of the budget whenever it moves', async () => {
    const server = await story(steps, on(2))
    const { before, answer, stream } = await spent(server)
    const meter = (frames: typeof before) =>
      frames.flatMap(({ event, data }) => (event === 'governor' ? [data.remaining] : []))
    expect(meter(before)).toEqual([1, 0])
    await answer({ newLimit: 3 })
    expect(meter(await stream.rest())).toEqual([3, 2])
  })
})

describe('what is no budget', () => {
  const bad = [
    [{ newLimit: 0 }, 'body.newLimit'],
    [{ newLimit: 0, newStatus: true }, 'body.newLimit'],
    [{ newLimit: -1 }, 'body.newLimit'],
    [{ newLimit: 1e9 }, 'body.newLimit'],
    [{ newLimit: 2.5 }, 'body.newLimit'],
    [{ newLimit: '20' }, 'body.newLimit'],
    [{ newLimit: 'NaN' }, 'body.newLimit'],
    [{ newLimit: null }, 'body.newLimit'],
    [{ newStatus: 'on' }, 'body.newStatus'],
    [{ option: 'cheaper' }, 'body.option'],
    [{ option: 'free' }, 'body.option'],
    [{ option: 'summarise', newLimit: 9 }, 'body.newLimit'],
    [{}, 'body.approved'],
  ] as const

  test('is refused by name, and the question stays open', async () => {
    const server = await story(steps, on(2))
    const { answer, asked } = await spent(server)
    for (const [body, field] of bad)
      expect(await problem(await answer(body)), JSON.stringify(body)).toMatchObject({
        ...{ http: 400, code: 'invalid_request', field },
      })
    for (const [body, field] of [
      [{}, 'body.actionLimit'],
      [{ actionLimit: 0 }, 'body.actionLimit'],
      [{ actionLimit: -3 }, 'body.actionLimit'],
      [{ actionLimit: '7' }, 'body.actionLimit'],
      [{ actionLimit: 1e9 }, 'body.actionLimit'],
      [{ tokenLimit: 0 }, 'body.tokenLimit'],
      [{ moneyLimit: -1 }, 'body.moneyLimit'],
      [{ isHitlEnabled: 1 }, 'body.isHitlEnabled'],
      [{ limit: 3 }, 'body.limit'],
    ] as const)
      expect(await problem(await put(server, body)), JSON.stringify(body)).toMatchObject({
        ...{ http: 400, code: 'invalid_request', field },
      })
    expect((await governor(server)).pending).toBe(asked.approval_id)
    expect(server.model.requests).toHaveLength(2)
    expect((await kinds(server)).filter((kind) => kind === 'governor.set')).toHaveLength(1)
  })

  test('a thread that is not there has none', async () => {
    const server = await story(steps, on(2))
    expect((await server.request('GET', '/threads/nobody/governor')).status).toBe(404)
    expect((await put(server, { actionLimit: 3 }, 'nobody')).status).toBe(404)
  })

  test('a budget is no answer to an approval', async () => {
    const server = await story([[send('1')], [text('Done.')]], on(9))
    const { answer } = await spent(server)
    expect(await problem(await answer({ newLimit: 5 }))).toMatchObject({
      ...{ http: 400, field: 'body.newLimit' },
    })
    expect((await answer({ approved: true })).status).toBe(200)
  })
})

describe('a budget that lands the plane', () => {
  test('no limit: the rest is made, and counted', async () => {
    const server = await story(steps, on(1))
    const { answer, stream } = await spent(server)
    await answer({ option: 'unlimited' })
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(await governor(server)).toMatchObject({ isHitlEnabled: false, total: 3 })
  })

  test('a summary is one call without tools, and the run is complete', async () => {
    const server = await story(
      [[look('1', 'sea')], [text('So far: sea.'), look('2', 'sky')]],
      on(1),
    )
    const { answer, stream } = await spent(server)
    await answer({ option: 'summarise' })
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(server.model.requests).toHaveLength(2)
    const last = server.model.requests[1]!
    expect(last.parameters).toMatchObject({ toolChoice: 'none' })
    expect(last.system.join()).toContain('sum up')
    expect(server.looked).toEqual(['sea'])
    expect(await governor(server)).toMatchObject({ actionsUsed: 2, remaining: 0, total: 2 })
    const next = await spent(server)
    expect(next.asked.kind).toBe('budget')
    expect(server.model.requests).toHaveLength(2)
  })

  test('a cheaper model goes on for the run, until the budget is set again', async () => {
    const cheaper = { ...scriptedModel([[look('2', 'sky')], [text('Cheap.')]]), name: 'cheap' }
    const server = await story([[look('1', 'sea')], [text('Dear.')]], on(1), { cheaper })
    const first = await spent(server)
    expect(first.input.options).toContainEqual(
      expect.objectContaining({ option: 'cheaper', model: 'cheap' }),
    )
    await first.answer({ option: 'cheaper', newLimit: 2 })
    expect(status(await first.stream.rest())).toBe('COMPLETED')
    expect(cheaper.requests).toHaveLength(2)
    expect(server.model.requests).toHaveLength(1)
    const second = await spent(server)
    await second.answer({ newLimit: 5 })
    await second.stream.rest()
    expect(server.model.requests).toHaveLength(2)
    expect((await reserved(server)).map(({ name }) => name)).toEqual([
      ...['scripted', 'cheap', 'cheap', 'scripted'],
    ])
  })

  describe('without anybody there', () => {
    const alone = (rule: string) => on(1, { HANDRAIL_UNATTENDED: rule })
    const run = async (rule: string, query = '?unattended=true') => {
      const server = await story(steps, alone(rule))
      const frames = await (await server.start('c', 'the sea?', query)).rest()
      return { server, frames }
    }

    test('stop: the run fails with a code of its own, and can be tried again', async () => {
      const { server, frames } = await run('stop')
      expect(find(frames, 'error')).toMatchObject({ code: 'budget_spent' })
      expect(server.model.requests).toHaveLength(1)
      const [interaction] = (await server.chat('c')).interactions
      await put(server, { actionLimit: 9 })
      const path = `/chats/c/interactions/${interaction.id}/retry`
      expect(status(await (await server.open('POST', path)).rest())).toBe('COMPLETED')
      expect(server.model.requests).toHaveLength(3)
    })

    test('summarise: one call more, and it is complete', async () => {
      const { server, frames } = await run('summarise')
      expect(status(frames)).toBe('COMPLETED')
      expect(server.model.requests).toHaveLength(2)
    })

    test('continue: the same budget once more, then it stops', async () => {
      const { server, frames } = await run('continue')
      expect(find(frames, 'error')).toMatchObject({ code: 'budget_spent' })
      expect(server.model.requests).toHaveLength(2)
    })

    test('ask is what happens to all others', async () => {
      const server = await story(steps, alone('stop'))
      expect((await spent(server)).asked.kind).toBe('budget')
      const asking = await story(steps, alone('ask'))
      expect((await spent(asking, 'c', '?unattended=true')).asked.kind).toBe('budget')
    })
  })
})

describe('limits in tokens and money', () => {
  const usage = (inputTokens: number, outputTokens: number): ModelEvent => ({
    type: 'usage',
    usage: { inputTokens, outputTokens },
  })
  const priced: Settings = {
    maxOutput: { scripted: 100 },
    prices: { scripted: { input: 1_000, output: 2_000 } },
  }

  test('the worst case is reserved before a call, and settled after it', async () => {
    const server = await story(
      [
        [look('1', 'sea'), usage(50, 10)],
        [text('Blue.'), usage(60, 20)],
      ],
      on(10, { HANDRAIL_TOKEN_LIMIT: '1000', HANDRAIL_MONEY_LIMIT: '100' }),
      priced,
    )
    await (await server.start('c', 'the sea?')).rest()
    const made = await reserved(server)
    expect(made[0]!.reserve!.tokens).toBeGreaterThan(100)
    expect(made[0]!.reserve!.money).toBeGreaterThan(0.2)
    expect(server.model.requests[0]!.parameters).toMatchObject({ maxOutputTokens: 100 })
    expect(await governor(server)).toMatchObject({
      tokens: { limit: 1000, used: 140, total: 140 },
      money: { limit: 100, used: 0.17, total: 0.17 },
    })
  })

  test('a limit is reported as best-effort, because the tokens of a request are estimated', async () => {
    const limits = { HANDRAIL_TOKEN_LIMIT: '1000', HANDRAIL_MONEY_LIMIT: '100' }
    const server = await story([[text('Blue.'), usage(900, 20)]], on(10, limits), priced)
    await (await server.start('c', '1 2 3 4 5 6 7 8 9')).rest()
    const soft = { hard: false, why: expect.stringContaining('estimated') }
    expect(await governor(server)).toMatchObject({ tokens: { used: 920, ...soft }, money: soft })
    expect(server.server.runtime.softLimits()).toMatchObject([
      { limit: 'tokens', why: soft.why },
      { limit: 'money', why: soft.why },
    ])
  })

  test('a message that seems too long by the estimate is sent; the provider decides', async () => {
    const long = 'word '.repeat(2_000)
    const settings = { windows: { scripted: 500 }, retry: { attempts: 1 } }
    const answered = await story([[text('Blue.')]], {}, settings)
    expect(status(await (await answered.start('c', long)).rest())).toBe('COMPLETED')
    const refused = await story([[new RuntimeError('context_too_long')]], {}, settings)
    const frames = await (await refused.start('c', long)).rest()
    expect(find(frames, 'error')).toMatchObject({ code: 'context_too_long' })
    expect(refused.model.requests).toHaveLength(1) // it cannot be made shorter
  })

  test('a call that may pass the limit is not sent; the answer must cover it', async () => {
    const server = await story(
      [
        [look('1', 'sea'), usage(150, 90)],
        [text('Blue.'), usage(60, 20)],
      ],
      on(10, { HANDRAIL_TOKEN_LIMIT: '300' }),
      priced,
    )
    const { input, answer, stream } = await spent(server)
    expect(input).toMatchObject({ spent: 'tokens', tokens: { limit: 300, used: 240 } })
    expect(input.tokens.needs).toBeGreaterThan(100)
    expect(server.model.requests).toHaveLength(1)
    expect(await problem(await answer({ newTokenLimit: 50 }))).toMatchObject({
      field: 'body.newTokenLimit',
    })
    const more = input.options.find((one: { option: string }) => one.option === 'more')
    const { label: _, ...chosen } = more
    expect((await answer(chosen)).status).toBe(200)
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(await governor(server)).toMatchObject({ tokens: { used: 80, total: 320 } })
  })

  test('what was cut keeps its reserve; what nothing came back from does not', async () => {
    const refused = new Error('no')
    const server = await story([[refused]], on(10, { HANDRAIL_TOKEN_LIMIT: '900' }), {
      ...priced,
      retry: { attempts: 1 },
    })
    await (await server.start('c', 'the sea?')).rest()
    expect(await governor(server)).toMatchObject({ tokens: { used: 0 }, actionsUsed: 1 })
    const cut = await story([[text('Bl'), refused]], on(10, { HANDRAIL_TOKEN_LIMIT: '900' }), {
      ...priced,
      retry: { attempts: 1 },
    })
    await (await cut.start('c', 'the sea?')).rest()
    const [made] = await reserved(cut)
    expect(await governor(cut)).toMatchObject({ tokens: { used: made!.reserve!.tokens } })
  })

  test('without a price or a most output the limit says that it is not hard', async () => {
    const limits = { HANDRAIL_TOKEN_LIMIT: '90000', HANDRAIL_MONEY_LIMIT: '5' }
    const server = await story(steps, on(10, limits))
    await (await server.start('c', 'the sea?')).rest()
    expect(await governor(server)).toMatchObject({
      tokens: { hard: false, why: 'no maxOutput is set for scripted' },
      money: { hard: false, why: 'no price is set for scripted' },
    })
    const agents = server.server.runtime.agents().map(({ agent }) => agent.name)
    expect(agents).toContain('assistant')
    expect(server.server.runtime.softLimits()).toEqual([
      { limit: 'tokens', why: 'no maxOutput is set for scripted', agents },
      { limit: 'money', why: 'no price is set for scripted', agents },
    ])
  })
})

describe('an agent with branches', () => {
  const branches = (path: boolean): Agent => ({
    name: 'fan',
    async *run(ctx) {
      const ask = (n: number) =>
        ctx.model({
          messages: [userText(`q${n}`, `question ${n}`)],
          ...(path && { path: `branch ${n}` }),
        })
      await Promise.all(Array.from({ length: 10 }, (_, n) => ask(n)))
    },
  })

  test.for([
    ['with names', true],
    ['without', false],
  ] as const)(
    'that has three calls left for ten makes three, asks once, and makes the other seven (%s)',
    async ([, path]) => {
      const asked: string[] = []
      const model = scriptedModel(async function* (request) {
        asked.push(said(request).at(-1)!)
        await new Promise((resolve) => setTimeout(resolve, 20))
        yield text(`answer to ${said(request).at(-1)}`)
      })
      const server = await serve({ agents: [branches(path)], model, builtIns: false }, on(3))
      const { answer, stream } = await spent(server)
      await expect
        .poll(async () => (await server.chat('c')).interactions[0].status)
        .toBe('WAITING_APPROVAL')
      expect(asked).toHaveLength(3)
      await answer({ newLimit: 100 })
      expect(status(await stream.rest())).toBe('COMPLETED')
      expect(asked).toHaveLength(10)
      expect(new Set(asked).size).toBe(10)
      expect((await kinds(server)).filter((kind) => kind === 'ask.raised')).toHaveLength(1)
      expect(await reserved(server)).toHaveLength(10)
      expect((await kinds(server)).filter((kind) => kind === 'effect.unknown')).toEqual([])
    },
  )

  test('that is told to sum up makes one call more, whichever branch it is', async () => {
    const model = scriptedModel(() => [text('ok')])
    const server = await serve({ agents: [branches(true)], model, builtIns: false }, on(3))
    const { answer, stream } = await spent(server)
    await answer({ option: 'summarise' })
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(model.requests).toHaveLength(4)
  })
})

describe('an agent elsewhere', () => {
  const remote = (calls: number): Agent => ({
    name: 'remote',
    async *run(ctx) {
      if (ctx.messages().at(-1)?.role === 'assistant') return
      const message = { id: ctx.newId('msg'), role: 'assistant' as const }
      yield* ctx.remote('crew').leg({
        ...{ title: 'Let the crew work', input: {}, timeout: 60_000 },
        async *work() {
          if (calls > 0) yield { type: 'event', name: remoteCalls, value: { calls, usage: [] } }
          yield {
            type: 'message',
            message: { ...message, parts: [{ type: 'text', text: 'done' }] },
          }
          return 'done'
        },
      })
    },
  })

  test('counts one for each leg, and what it reports stops its next one', async () => {
    const server = await serve({ agents: [remote(4)], builtIns: false }, on(3))
    expect(status(await (await server.start('c', 'go')).rest())).toBe('COMPLETED')
    expect(await governor(server)).toMatchObject({
      ...{ actionsUsed: 5, remaining: 0, total: 5, remote: { legs: 1, reported: true } },
    })
    const { answer, stream, input } = await spent(server)
    expect(input.pending).toMatchObject({ model: 'crew' })
    await answer({ newLimit: 9 })
    expect(status(await stream.rest())).toBe('COMPLETED')
    expect(await governor(server)).toMatchObject({ actionsUsed: 5, total: 10 })
  })

  test('that reports nothing is said to', async () => {
    const server = await serve({ agents: [remote(0)], builtIns: false }, on(3))
    await (await server.start('c', 'go')).rest()
    expect(await governor(server)).toMatchObject({
      ...{ total: 1, remote: { legs: 1, reported: false } },
    })
  })
})

test('an answer that says two things, or gives less than the call needs, is refused and the question stays', async () => {
  const server = await story(steps, on(1))
  const { answer, stream } = await spent(server)
  const bad = async (said: object) => (await problem(await answer(said))).field
  expect(await bad({ newTokenLimit: 1 })).toBe('body.newTokenLimit')
  expect(await bad({ option: 'unlimited', newStatus: true })).toBe('body.newStatus')
  expect(await bad({ option: 'more', newStatus: false })).toBe('body.newStatus')
  expect(await bad({ approved: false, newLimit: 5 })).toBe('body.newLimit')
  expect(await bad({ option: 'stop', newLimit: 5 })).toBe('body.newLimit')
  expect(await bad({ approved: true, stop: true })).toBe('body.approved')
  expect(await bad({ approved: true, edited_input: { newLimit: 5 } })).toBe('body.edited_input')
  // Where a budget is set and not answered for, fields have the names of that address.
  const set = async (body: object) => await problem(await put(server, body))
  expect((await set({ tokenLimit: 1 })).field).toBe('body.tokenLimit')
  expect((await set({ actionLimit: 0 })).message).toMatch(/isHitlEnabled false/)
  await answer({ newLimit: 5 })
  expect(status(await stream.rest())).toBe('COMPLETED')
})
