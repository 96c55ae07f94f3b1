import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { gate } from '../../../test/support/gate.ts'
import { converse, stateOf } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { temporaryDirectory } from '../../../test/support/server.ts'
import { said, tools } from '../../../test/support/tools.ts'
import { warpClock } from '../../../test/support/warp-clock.ts'
import type { Agent, AgentContext, AgentEvent } from '../../core/agent.ts'
import { RuntimeError } from '../../core/errors.ts'
import { textOf } from '../../core/messages.ts'
import { defineTool, type Tool } from '../../core/tool.ts'
import { readFenced } from '../../lib/fenced.ts'
import { call, scriptedModel, text } from '../../models/scripted.ts'
import { toolLoop } from '../tool-loop/agent.ts'
import { workflow } from './agent.ts'
import type { Stage } from './options.ts'
import type { SharedState } from './state.ts'

/** An agent of its own that gives what it makes of its input, and counts how often it is run. */
function giver(name: string, make: (input: Record<string, unknown>, run: number) => unknown) {
  return {
    name,
    runs: 0,
    async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
      const input = readFenced(textOf(ctx.messages()[0]!)) as Record<string, unknown>
      const output = make(input, ++this.runs)
      const message = { id: ctx.newId('msg'), role: 'assistant' as const, parts: [] }
      yield { type: 'message', message: { ...message, meta: { output } } }
    },
  } satisfies Agent & { runs: number }
}

const flow = (...steps: Stage[]) => workflow({ name: 'flow', steps })
const never = () => undefined
const approve = () => ({ approved: true })
const shared = async (server: Parameters<typeof stateOf>[0]) =>
  (await stateOf(server, 'c')) as SharedState

const circle: { in?: unknown } = {}
circle.in = circle
const throwing = {
  toJSON(): string {
    throw new Error('no')
  },
}

describe('a workflow', () => {
  test('hands on what its steps give, and keeps what they say apart', async () => {
    const model = scriptedModel([[text('{"sky":"blue"}')], [text('fine')]])
    const first = toolLoop({ name: 'first' })
    const second = giver('second', ({ a, step }) => ({ a, step }))
    const steps = [
      { agent: 'first', outputKey: 'a', task: 'Look up.' },
      { agent: second, inputKeys: ['a'], outputKey: 'b' },
    ]
    const server = await serve({ model, agents: [flow(...steps), first, toolLoop({ name: 'x' })] })
    const { status } = await converse(server, 'c', 'how is it?', never)
    expect(status).toBe('COMPLETED')
    const state = await shared(server)
    expect(state).toMatchObject({ a: { sky: 'blue' }, b: { a: { sky: 'blue' }, step: 2 } })
    expect(state).toMatchObject({ status: 'completed', agents_completed: ['first', 'second'] })
    expect(said(model.requests[0])[0]).toContain('Look up.')
    expect(said(model.requests[0])[0]).toContain('how is it?')
    const thread = await server.server.runtime.thread('c')
    const path = [...thread.state.messages.values()].map((one) => one.path)
    expect(path).toEqual([undefined, 'a', 'b', undefined])
    // The next run of another agent hears the workflow's own words only.
    const body = { user_message: 'and now?', agent: 'x' }
    await (await server.open('POST', '/chats/c/interactions', body)).rest()
    expect(said(model.requests[1]).map((line) => line.split(':')[0])).toEqual([
      'user',
      'assistant',
      'user',
    ])
  })

  test('goes on without an optional step, and ends with what there is without a required one', async () => {
    const good = giver('good', () => 'good')
    const bad = giver('bad', (_, run) => {
      if (run === 1) throw new RuntimeError('agent_failed', 'no luck')
      return 'luck'
    })
    const worse = giver('worse', (_, run) => {
      if (run === 1) throw new RuntimeError('agent_failed', 'worse luck')
      return 'well'
    })
    const steps = [
      { agent: good, outputKey: 'a' },
      { agent: bad, outputKey: 'b', required: false },
      { agent: worse, outputKey: 'c' },
    ]
    const server = await serve({ agents: [flow(...steps)] })
    const { status, id, frames } = await converse(server, 'c', 'go', never)
    expect(status).toBe('FAILED')
    const error = frames.find(({ event }) => event === 'error')!
    expect(error.data.error).toBe('Critical agent worse failed: worse luck')
    expect(await shared(server)).toMatchObject({
      status: 'error',
      a: 'good',
      agents_completed: ['good'],
      failed_agents: ['bad', 'worse'],
      errors: [
        { agent: 'bad', error: 'no luck', critical: false },
        { agent: 'worse', error: 'worse luck', critical: true },
      ],
    })
    // Tried again, it goes on where it failed.
    await (await server.open('POST', `/chats/c/interactions/${id}/retry`)).rest()
    const state = await shared(server)
    expect(state).toMatchObject({ status: 'completed', c: 'well', failed_agents: ['bad'] })
    expect([good.runs, bad.runs, worse.runs]).toEqual([1, 1, 2])
  })

  test('does a group side by side, raises all that its agents ask, and runs none again that is done', async () => {
    const box = tools()
    const plain = giver('plain', () => 'plain')
    const payer = (name: string, to: string) => ({
      agent: toolLoop({ name }),
      model: scriptedModel([
        [call(`call_${name}`, 'send', { to, amount: 1 })],
        [text(`paid ${to}`)],
      ]),
      tools: box.all,
    })
    const [ann, bob] = [payer('ann', 'Ann'), payer('bob', 'Bob')]
    const parallel = [
      { agent: 'ann', outputKey: 'a' },
      { agent: 'bob', outputKey: 'b' },
      { agent: plain, outputKey: 'c' },
    ]
    const server = await serve({ agents: [flow({ parallel }), ann, bob] })
    const { status, asked } = await converse(server, 'c', 'go', approve)
    expect(status).toBe('COMPLETED')
    expect(asked.length).toBe(2)
    expect(box.sent.length).toBe(2)
    expect(await shared(server)).toMatchObject({ a: 'paid Ann', b: 'paid Bob', c: 'plain' })
    expect(plain.runs).toBe(1)
    expect([ann.model.requests.length, bob.model.requests.length]).toEqual([2, 2])
    const journal = await server.journal('c')
    const asks = journal.flatMap((one) => (one.kind === 'ask.raised' ? [one.body.ask] : []))
    expect(asks.map(({ path, agent }) => `${path} ${agent}`).sort()).toEqual(['a ann', 'b bob'])
    const waiting = journal.filter(({ kind }) => kind === 'run.waiting')
    expect(waiting.length, 'the leg ends when both wait').toBe(1)
  })

  test.for([
    ['the same', () => 'rent'],
    ['other', (who: string) => who],
  ] as const)(
    'takes no answer to one agent for one to another whose call has the same id, with %s arguments',
    async (row) => {
      const [, to] = row
      const box = tools()
      const payer = (name: string) => ({
        agent: toolLoop({ name }),
        model: scriptedModel(({ messages }) => {
          const last = messages.at(-1)!
          if (last.role === 'tool') return [text(`heard: ${textOf(last)}`)]
          return [call('call_0', 'send', { to: to(name), amount: 5 })]
        }),
        tools: box.all,
      })
      const parallel = ['ann', 'bob'].map((agent) => ({ agent, outputKey: agent }))
      const server = await serve({ agents: [flow({ parallel }), payer('ann'), payer('bob')] })
      const raised = async () =>
        (await server.journal('c')).flatMap((one) =>
          one.kind === 'ask.raised' ? [one.body.ask] : [],
        )
      const stream = await server.start('c', 'go')
      const id = stream.response.headers.get('x-interaction-id')!
      await stream.until('approval_required')
      await expect.poll(async () => (await raised()).length).toBe(2)
      for (const { askId, agent } of await raised()) {
        const approved = agent === 'ann'
        await server.approve('c', id, { approval_id: askId, approved })
      }
      expect((await stream.rest()).at(-1)!.data.status).toBe('COMPLETED')
      expect(box.sent).toEqual([{ to: to('ann'), amount: 5 }])
      const state = await shared(server)
      expect(state.ann).toBe(`heard: sent 5 to ${to('ann')}`)
      expect(state.bob).toBe('heard: The user rejected this call.')
      const calls = (await raised()).map(({ callId }) => callId)
      expect(new Set(calls).size, 'clients tell them apart').toBe(2)
    },
  )

  test.for([
    ['a big number', (): unknown => 10n],
    ['a circle', (): unknown => circle],
    ['what throws', (): unknown => throwing],
  ] as const)('a step that gives what is not JSON has failed, once: %s', async ([, output]) => {
    const odd = giver('odd', () => 'fine')
    const last = giver('last', () => 'well')
    const steps = (required: boolean): Stage[] => [
      { agent: odd, outputKey: 'x', output, required },
      { agent: last, outputKey: 'y' },
    ]
    const optional = await serve({ agents: [flow(...steps(false))] })
    expect((await converse(optional, 'c', 'go', never)).status).toBe('COMPLETED')
    expect(await shared(optional)).toMatchObject({ failed_agents: ['odd'], y: 'well' })
    const required = await serve({ agents: [flow(...steps(true))] })
    const { status, frames } = await converse(required, 'c', 'go', never)
    expect(status).toBe('FAILED')
    expect(frames.find(({ event }) => event === 'error')!.data.error).toContain('as JSON')
    expect([odd.runs, last.runs]).toEqual([2, 1])
  })

  test.for([
    ['run_id', /the output run_id is the workflow's own/],
    ['status', /the output status is the workflow's own/],
    ['agents', /the output agents is the workflow's own/],
    ['metrics', /the output metrics is the workflow's own/],
    ['constructor', /the output constructor is the workflow's own/],
    ['__proto__', /the output __proto__ is the workflow's own/],
    ['a/b', /has a slash/],
    ['', /a step without an output/],
  ] as const)(
    'does not begin with an output that would be taken for its own state: %s',
    ([key, why]) => {
      expect(() => flow({ agent: 'a', outputKey: key })).toThrow(why)
    },
  )

  test('does not begin with no agents at work at once', () => {
    const steps = [{ agent: 'a', outputKey: 'x' }]
    for (const maxConcurrentAgents of [0, -1, 1.5, Number.NaN])
      expect(() => workflow({ name: 'flow', steps, maxConcurrentAgents })).toThrow(
        /maxConcurrentAgents is a whole number of 1 or more/,
      )
  })

  test('tries a step again by its rule, and gives up on one that takes too long', async () => {
    const clock = warpClock()
    const shaky = giver('shaky', (_, run) => {
      if (run < 3) throw new Error('not yet')
      return run
    })
    const slow: Agent = {
      name: 'slow',
      async *run(ctx) {
        setTimeout(() => clock.advance(60_000), 50)
        await ctx.clock.sleep(3_600_000, ctx.signal)
      },
    }
    const steps = [
      { agent: shaky, outputKey: 'a', retry: { first: 1 } },
      { agent: slow, outputKey: 'b', required: false, timeout: 30_000 },
    ]
    const server = await serve({ agents: [flow(...steps)] }, { clock })
    const { status } = await converse(server, 'c', 'go', never)
    expect(status).toBe('COMPLETED')
    const state = await shared(server)
    expect(state).toMatchObject({ a: 3, agents: { a: { failures: 2 } } })
    expect(state.errors).toEqual([
      {
        agent: 'slow',
        error: 'slow was not done after 30 s.',
        code: 'agent_timeout',
        critical: false,
      },
    ])
  })

  /** A workflow whose optional step exceeds its time of 5 s while its agent pays. */
  async function exceeded(
    pay: Pick<Tool, 'run' | 'check'>,
    agent: Agent = toolLoop({ name: 'payer' }),
  ) {
    const clock = warpClock()
    const inside = gate()
    let runs = 0
    const tool = defineTool({
      ...{ name: 'pay', description: 'Pays', schema: z.strictObject({}) },
      ...pay,
      async run(input, use) {
        runs++
        void inside.pass()
        return await pay.run(input, use)
      },
    })
    const model = scriptedModel((request) =>
      request.messages.at(-1)!.role === 'tool' ? [text('done')] : [call('1', 'pay', {})],
    )
    const payer = { agent: 'payer', outputKey: 'x', required: false, timeout: 5_000 }
    const policy = [{ decision: 'allow' as const }]
    const agents = [flow(payer), agent]
    const settings = { model, agents, tools: [tool], builtIns: false, policy }
    const server = await serve(settings, { clock })
    const stream = await server.start('c', 'go')
    await inside.reached
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(5_001)
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(2_001) // for tools that do not listen
    await server.recorded('c', 'effect.unknown')
    return { server, stream, clock, runs: () => runs }
  }

  test('asks about a call of an optional step that was under way when its time was over', async () => {
    const { server, stream, clock, runs } = await exceeded({ run: () => new Promise(() => {}) })
    clock.advance(30_001)
    const asked = (await stream.until('approval_required')).at(-1)!.data
    expect(asked).toMatchObject({ kind: 'in_doubt', tool_name: 'pay', card: { path: 'x' } })
    const answer = { approval_id: asked.approval_id, outcome: 'happened', result: 'Receipt 17' }
    await server.approve('c', stream.response.headers.get('x-interaction-id')!, answer)
    const frames = await stream.rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(await shared(server)).toMatchObject({
      agents: { x: { status: 'completed' } },
      x: 'done',
    })
    expect(runs()).toBe(1)
  })

  test.each([
    [true, 'paid'],
    [false, 'The call was interrupted. It did not happen.'],
  ])(
    'goes on without an optional step when check() says whether its call happened (%s)',
    async (happened, result) => {
      const { server, stream, clock, runs } = await exceeded({
        run: (_, { signal }) => gate().pass(signal),
        check: async () => (happened ? { happened, output: 'paid' } : { happened }),
      })
      clock.advance(30_001)
      const frames = await stream.rest()
      expect(frames.at(-1)!.data.status).toBe('COMPLETED')
      expect(frames.find(({ event }) => event === 'tool_result')!.data.tool_output).toBe(result)
      const { errors } = await shared(server)
      expect(errors).toMatchObject([{ agent: 'payer', code: 'agent_timeout', critical: false }])
      const journal = await server.journal('c')
      expect(journal.some(({ kind }) => kind === 'ask.raised')).toBe(false)
      expect(runs()).toBe(1)
    },
  )

  test('goes on without an optional step whose agent hangs while its calls are settled', async () => {
    const hangs = gate()
    let legs = 0
    const loop = toolLoop({ name: 'payer' })
    const agent: Agent = {
      ...loop,
      async *run(ctx) {
        if (++legs > 1) await hangs.pass()
        yield* loop.run(ctx)
      },
    }
    const { server, stream, clock } = await exceeded({ run: () => new Promise(() => {}) }, agent)
    await hangs.reached
    clock.advance(60 * 60_000)
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(2_001) // for agents that do not listen
    const frames = await stream.rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    const { errors } = await shared(server)
    expect(errors).toMatchObject([{ agent: 'payer', code: 'agent_timeout', critical: false }])
  })

  test('has one budget for all its agents', async () => {
    const model = scriptedModel([[text('one')], [text('two')]])
    const steps = [
      { agent: toolLoop({ name: 'first' }), outputKey: 'a' },
      { agent: toolLoop({ name: 'second' }), outputKey: 'b' },
    ]
    const governor = { isHitlEnabled: true, actionLimit: 1 }
    const server = await serve({ model, agents: [{ agent: flow(...steps), governor }] })
    const { status, asked } = await converse(server, 'c', 'go', () => ({ newLimit: 5 }))
    expect(status).toBe('COMPLETED')
    expect(asked.map(({ kind }) => kind)).toEqual(['budget'])
    expect(model.requests.length).toBe(2)
    const raised = (await server.journal('c')).find(({ kind }) => kind === 'ask.raised')
    expect(raised).toMatchObject({
      body: { ask: { path: 'b', agent: 'second', input: { pending: { path: 'b' } } } },
    })
  })

  test('cancelled in the middle of a step, does no more', async () => {
    const stand = gate()
    const model = scriptedModel(async function* (_request, _call, signal) {
      await stand.pass(signal)
      yield text('late')
    })
    const last = giver('last', () => 1)
    const steps = [
      { agent: toolLoop({ name: 'first' }), outputKey: 'a', required: false },
      { agent: last, outputKey: 'b' },
    ]
    const server = await serve({ model, agents: [flow(...steps)] })
    const stream = await server.start('c', 'go')
    await stand.reached
    await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
    expect((await stream.rest()).at(-1)!.data.status).toBe('CANCELLED')
    expect(last.runs).toBe(0)
    const session = await (await server.request('GET', '/copilotkit/status?session_id=c')).json()
    expect(session).toMatchObject({
      agents: { first: { status: 'failed', end_time: expect.any(String) } },
    })
  })
})

describe('an approval', () => {
  const ideas = [
    { recommendation_id: 'r1', do: 'call' },
    { recommendation_id: 'r2', do: 'write' },
  ]
  const setting = () => {
    const author = giver('author', () => ideas)
    const after = giver('after', () => 'after')
    const steps = [
      { agent: author, outputKey: 'ideas' },
      { approve: 'ideas', timeout: 60_000 },
      { agent: after, outputKey: 'after' },
    ]
    return { author, after, settings: { agents: [flow(...steps)] } }
  }

  test('given, lets the workflow go on', async () => {
    const { author, after, settings } = setting()
    const server = await serve(settings)
    const { status, asked } = await converse(server, 'c', 'go', approve)
    expect(status).toBe('COMPLETED')
    expect(JSON.parse(asked[0]!.tool_input!)).toEqual({
      recommendation: ideas[0],
      recommendations: ideas,
    })
    const { approval } = await shared(server)
    expect(approval).toMatchObject({
      status: 'approved',
      recommendation_id: 'r1',
      approved_by: 'local',
      rejected_by: null,
    })
    expect([author.runs, after.runs]).toEqual([1, 1])
  })

  test('given with changes that its schema allows, hands on what was approved', async () => {
    const author = giver('author', () => ideas)
    const after = giver('after', ({ ideas: given }) => given)
    const schema = {
      type: 'object',
      properties: { do: { type: 'string', minLength: 2 } },
      additionalProperties: false,
    }
    const steps = [
      { agent: author, outputKey: 'ideas' },
      { approve: 'ideas', schema },
      { agent: after, inputKeys: ['ideas'], outputKey: 'after' },
    ]
    const server = await serve({ agents: [flow(...steps)] })
    await (await server.start('c', 'go')).until('approval_required')
    const { asks } = (await server.server.runtime.thread('c')).state
    const [askId] = asks.keys()
    const decide = (edited_input: object) =>
      server.request('POST', `/approvals/${askId}`, { approved: true, edited_input })
    const { card } = (await (await server.request('GET', `/approvals/${askId}`)).json()) as {
      card: object
    }
    expect(card).toMatchObject({ editable: true, risk: { level: 'medium' } })
    const other = await decide({ recommendation: { recommendation_id: 'r9' } })
    expect([other.status, await other.text()]).toEqual([
      400,
      expect.stringContaining('edited_input'),
    ])
    expect((await decide({ recommendation: { do: 'x' } })).status).toBe(400)
    expect((await decide({ recommendation: { do: 'visit' } })).status).toBe(200)
    await server.recorded('c', 'run.completed')
    const expected = [{ recommendation_id: 'r1', do: 'visit' }, ideas[1]]
    const approval = { status: 'approved', edited: true, original: ideas[0] }
    expect(await shared(server)).toMatchObject({ after: expected, ideas: expected, approval })
    const edit = await server.request('GET', `/approvals/${askId}`)
    expect(await edit.json()).toMatchObject({
      ...{ edited: true, input: { recommendation: expected[0], recommendations: expected } },
      original_input: { recommendation: ideas[0], recommendations: ideas },
    })
  })

  test.for([
    ['a length that it names itself', { action: 'pay', length: 0 }, 1],
    ['nothing', null, 0],
    ['an empty list', [], 0],
  ] as const)('is asked for by what there is: %s', async ([, draft, times]) => {
    const writer = giver('writer', () => draft)
    const publisher = giver('publisher', () => 'published')
    const server = await serve({
      agents: [
        flow(
          { agent: writer, outputKey: 'draft' },
          { approve: 'draft' },
          {
            agent: publisher,
            outputKey: 'out',
          },
        ),
      ],
    })
    const { asked } = await converse(server, 'c', 'go', () => ({ approved: false }))
    expect(asked).toHaveLength(times)
    expect(publisher.runs).toBe(1 - times)
  })

  test('without a schema is given as it is', async () => {
    const { settings } = setting()
    const server = await serve(settings)
    await (await server.start('c', 'go')).until('approval_required')
    const { asks } = (await server.server.runtime.thread('c')).state
    const body = { approved: true, edited_input: { recommendation: { do: 'visit' } } }
    const response = await server.request('POST', `/approvals/${[...asks.keys()][0]}`, body)
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('approved as it is'),
    ])
  })

  test('refused, leaves out what comes after it', async () => {
    const { after, settings } = setting()
    const server = await serve(settings)
    const { status } = await converse(server, 'c', 'go', () => ({ approved: false }))
    expect(status).toBe('COMPLETED')
    const { approval } = await shared(server)
    expect(approval).toMatchObject({ status: 'rejected', reason: 'No reason provided' })
    expect(after.runs).toBe(0)
  })

  test('ends in time while the server is down', async () => {
    const { path, remove } = await temporaryDirectory()
    const { author, after, settings } = setting()
    const first = await serve(settings, { data: path })
    await (await first.start('c', 'go')).until('approval_required')
    await first.recorded('c', 'run.waiting')
    await first.close()
    const clock = warpClock()
    clock.advance(61_000)
    const second = await serve(settings, { data: path, clock })
    await second.recorded('c', 'run.completed')
    const { approval } = await shared(second)
    expect(approval).toMatchObject({ status: 'timeout', reason: 'Approval request timed out' })
    expect([author.runs, after.runs]).toEqual([1, 0])
    await second.close()
    await remove()
  })
})

describe('a restart', () => {
  test('in the middle of the second step begins neither the first nor what was called again', async () => {
    const { path, remove } = await temporaryDirectory()
    const first = giver('first', () => 'first')
    const stand = gate()
    let calls = 0
    const model = scriptedModel(async function* (request, _call, signal) {
      calls++
      if (request.messages.length === 1) yield call('look1', 'look', { at: 'it' })
      else if (calls === 2) await stand.pass(signal)
      else yield text('seen')
    })
    const box = tools()
    const steps = [
      { agent: first, outputKey: 'a' },
      { agent: toolLoop({ name: 'second' }), outputKey: 'b' },
    ]
    const settings = { model, tools: box.all, agents: [flow(...steps)] }
    const before = await serve(settings, { data: path })
    void (await before.start('c', 'go')).rest().catch(() => {})
    await stand.reached
    await before.close()
    const after = await serve(settings, { data: path })
    await after.recorded('c', 'run.completed')
    expect(await shared(after)).toMatchObject({ a: 'first', b: 'seen', status: 'completed' })
    expect(first.runs).toBe(1)
    expect(box.looked).toEqual(['it'])
    expect(calls, 'the one that was cut is made again').toBe(3)
    await after.close()
    await remove()
  })
})

test('what is behind a failure is for the operator, without secrets; people are told what there is to tell', async () => {
  const key = 'sk-very-secret-0123'
  const behind = new Error(`refused: Authorization: Bearer ${key}, user ann-token-1`)
  const bad = giver('bad', () => {
    throw new Error('no luck', { cause: Object.assign(behind, { request: { key } }) })
  })
  const steps = [
    { agent: bad, outputKey: 'a', required: false, retry: { attempts: 2, first: 1 } },
    { agent: giver('worse', () => 1), outputKey: 'b', output: () => fail() },
  ]
  const fail = () => {
    throw new RuntimeError('tool_failed', 'the press is jammed', { cause: behind })
  }
  const lines: { message: string; agent?: string }[] = []
  const warn = (about: object, message: string) => lines.push({ message, ...about })
  const log = { info: () => {}, warn, error: warn }
  const server = await serve({ agents: [flow(...steps)] }, { log })
  const headers = { 'x-api-token': 'ann-token-1' }
  await (await server.start('c', 'go', '', headers)).rest()
  const told = (message: string) => lines.filter((one) => one.message === message)
  expect(told('a step failed, and is tried again')).toMatchObject([{ agent: 'bad', failures: 1 }])
  expect(told('an optional step failed')).toMatchObject([
    {
      ...{ threadId: 'c', agent: 'bad', path: 'a', step: 1, code: 'agent_failed' },
      error: 'The agent failed.',
      causes: ['Error: no luck', 'Error: refused: Authorization: ***, user ***'],
      at: expect.arrayContaining([expect.stringContaining('agent.test.ts')]),
    },
  ])
  expect(told('run failed')).toMatchObject([
    {
      agent: 'flow',
      code: 'tool_failed',
      error: 'Critical agent worse failed: the press is jammed',
    },
  ])
  for (const secret of [key, 'ann-token-1']) expect(JSON.stringify(lines)).not.toContain(secret)
  expect((await shared(server)).errors).toEqual([
    { agent: 'bad', code: 'agent_failed', error: 'The agent failed.', critical: false },
    { agent: 'worse', code: 'tool_failed', error: 'the press is jammed', critical: true },
  ])
})
