import { describe, expect, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { type Gate, gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { find, names, problem, said, seedFrames, tools } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

const send = (id: string) => call(id, 'send', { to: 'ann', amount: 5 })
const look = (id: string, at: string) => call(id, 'look', { at })
const ended = ['cancelled', 'interaction_complete']

/** A run that was cancelled while a tool that does not listen is at work; the model then goes on with these. */
async function cancelledInside(steps: readonly (readonly ReturnType<typeof text>[])[]) {
  const inside = gate()
  const deaf = { ...tools().look, run: () => inside.pass().then(() => 'at last') }
  const clock = warpClock()
  const model = scriptedModel([[look('1', 'sea')], ...steps])
  const env = { HANDRAIL_LEASE_MS: '3600000' }
  const server = await serve({ model, tools: [deaf], builtIns: false }, { clock, env })
  const stream = await server.start('c', 'look')
  await inside.reached
  await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
  clock.advance(2_000)
  return { server, model, inside, stream }
}

describe('cancel (seed 5.3)', () => {
  test('while streaming keeps the partial text and ends the stream', async () => {
    const model = scriptedModel([[text('Half of '), text('it'), 'wait'], [text('Yes?')]])
    const server = await serve({ model, builtIns: false })
    const stream = await server.start('c', 'tell me')
    await stream.until('answer_delta')
    const id = stream.response.headers.get('x-interaction-id')!
    const response = await server.cancel('c', id)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      status: 'cancelling',
      interaction_id: id,
      message: 'Interaction will stop at next checkpoint',
    })
    const frames = seedFrames(await stream.rest())
    expect(names(frames)).toEqual(['answer', ...ended])
    expect(find(frames, 'answer')).toMatchObject({ content: 'Half of it', partial: true })
    expect(find(frames, 'interaction_complete')).toEqual({
      interaction_id: id,
      status: 'CANCELLED',
    })
    const chat = await server.chat('c')
    expect(chat.interactions).toMatchObject([
      {
        status: 'CANCELLED',
        agent_events: [{ type: 'ANSWER', content: 'Half of it', partial: true }],
        final_agent_state: { messages: [{ role: 'user' }, { content: 'Half of it' }] },
      },
    ])
    expect(await problem(await server.cancel('c', id))).toMatchObject({
      http: 409,
      code: 'run_ended',
    })
    await (await server.start('c', 'go on')).rest()
    expect(said(model.requests[1])).toEqual([
      'user: tell me',
      'assistant: Half of it',
      'user: go on',
    ])
  })

  test('before anything was said leaves no empty message behind', async () => {
    const model = scriptedModel([['wait'], [text('Yes?')]])
    const server = await serve({ model, builtIns: false })
    const stream = await server.start('c', 'tell me')
    await stream.until('interaction_started')
    await server.recorded('c', 'effect.intended')
    await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
    expect(names(await stream.rest())).toEqual(ended)
    await (await server.start('c', 'go on')).rest()
    expect(said(model.requests.at(-1))).toEqual(['user: tell me', 'user: go on'])
  })

  test('while a tool runs fires its signal', async () => {
    const box = tools()
    const inside = gate()
    let reason: unknown
    const slow = {
      ...box.look,
      run: (_: unknown, { signal }: { signal: AbortSignal }) =>
        inside.pass(signal).catch((error: unknown) => {
          reason = error
          throw error
        }),
    }
    const model = scriptedModel([[look('1', 'sea')], [text('never')]])
    const server = await serve({ model, tools: [slow], builtIns: false })
    const stream = await server.start('c', 'look')
    await inside.reached
    await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
    const frames = await stream.rest()
    expect(names(frames).slice(-3)).toEqual(['tool_call', ...ended])
    expect(reason).toBeDefined()
    expect(model.requests).toHaveLength(1)
  })

  test('ends the run though a tool does not listen; its late outcome is recorded, nothing else (I7)', async () => {
    const { server, model, inside, stream } = await cancelledInside([[text('never')]])
    expect(names(await stream.rest()).slice(-2)).toEqual(ended)
    const before = await server.journal('c')
    expect(before.at(-1)?.kind).toBe('run.cancelled')

    inside.open()
    await expect.poll(async () => (await server.journal('c')).length).toBe(before.length + 1)
    await (await server.start('d', 'x')).rest()
    const after = (await server.journal('c')).slice(before.length)
    expect(after).toMatchObject([{ kind: 'effect.done', body: { output: 'at last' } }])
    expect(model.requests.map(said)).toEqual([['user: look'], ['user: x']])
  })

  test('while a tool is under way leaves no doubt that it began: the next run is told what is known (I4)', async () => {
    const { server, model, inside, stream } = await cancelledInside([
      [text('Hm.')],
      [text('Well.')],
    ])
    await stream.rest()
    const told = (n: number) => said(model.requests[n]).find((line) => line.startsWith('tool: '))
    await (await server.start('c', 'and?')).rest()
    expect(told(1)).toMatch(/was under way: it may have been carried out/)
    inside.open()
    await server.recorded('c', 'effect.done')
    await expect.poll(async () => (await server.journal('c')).at(-1)?.kind).toBe('effect.done')
    await (await server.start('c', 'and now?')).rest()
    expect(told(2)).toBe('tool: at last')
  })

  test('while waiting for approval settles the approval too, and no tool runs', async () => {
    const box = tools()
    const model = scriptedModel([[send('1')], [text('never')]])
    const server = await serve({ model, tools: box.all, builtIns: false })
    const stream = await server.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const id = stream.response.headers.get('x-interaction-id')!
    await server.recorded('c', 'run.waiting')
    await server.cancel('c', id)
    expect(names(await stream.rest())).toEqual(ended)
    const late = await server.approve('c', id, { approval_id, approved: true })
    expect(await problem(late)).toMatchObject({
      http: 400,
      code: 'ask_settled',
      decision: { approved: false, state: 'cancelled' },
    })
    expect(box.sent).toEqual([])
    expect(model.requests).toHaveLength(1)
  })

  test('while queued takes it out of the line; the others go on in order', async () => {
    const model = scriptedModel((request) =>
      said(request).at(-1) === 'user: first' ? [text('hm'), 'wait'] : [text('ok')],
    )
    const server = await serve({ model, builtIns: false })
    const first = await server.start('c', 'first')
    await first.until('answer_delta')
    const second = await server.start('c', 'second', '?when_busy=queue')
    const third = await server.start('c', 'third', '?when_busy=queue')
    const id = second.response.headers.get('x-interaction-id')!
    const one = await (await server.request('GET', `/chats/c/interactions/${id}`)).json()
    expect(one).toMatchObject({ status: 'RUNNING', queued: true })
    await server.cancel('c', id)
    expect(names(await second.rest())).toEqual(['interaction_started', ...ended])
    const statuses = async () =>
      (await server.chat('c')).interactions.map(
        (one: { user_message: string; status: string; superseded?: boolean }) =>
          `${one.user_message} ${one.status}${one.superseded ? ' superseded' : ''}`,
      )
    expect(await statuses()).toEqual(['first RUNNING', 'second CANCELLED', 'third RUNNING'])
    await server.cancel('c', first.response.headers.get('x-interaction-id')!)
    expect((await third.rest()).at(-1)?.data.status).toBe('COMPLETED')
    expect(model.requests.map((request) => said(request).at(-1))).toEqual([
      'user: first',
      'user: third',
    ])
    await first.rest()
    expect(await statuses()).toEqual(['first CANCELLED', 'second CANCELLED', 'third COMPLETED'])
    const edited = await server.edit('c', id, 'fourth')
    expect((await edited.rest()).at(-1)?.data.status).toBe('COMPLETED')
    expect(await statuses()).toEqual(['first CANCELLED', 'fourth COMPLETED'])
  })

  test('before its first leg keeps the interaction in the chat, where it can be edited', async () => {
    const model = scriptedModel((request) =>
      said(request).at(-1) === 'user: hang' ? ['wait'] : [text('ok')],
    )
    const env = { HANDRAIL_MAX_LEGS: '1' }
    const server = await serve({ model, builtIns: false }, { env })
    const hangs = await server.start('other', 'hang')
    await server.recorded('other', 'effect.intended')
    const stream = await server.start('c', 'one')
    const id = stream.response.headers.get('x-interaction-id')!
    await server.cancel('c', id)
    expect(names(await stream.rest())).toEqual(['interaction_started', ...ended])
    const [interaction] = (await server.chat('c')).interactions
    expect(interaction).toMatchObject({ id, status: 'CANCELLED', parent_id: null })
    expect(interaction).not.toHaveProperty('superseded')
    await server.cancel('other', hangs.response.headers.get('x-interaction-id')!)
    await hangs.rest()
    const frames = await (await server.edit('c', id, 'two')).rest()
    expect(frames.at(-1)?.data.status).toBe('COMPLETED')
    expect(said(model.requests.at(-1))).toEqual(['user: two'])
    expect((await server.chat('c')).interactions).toMatchObject([{ user_message: 'two' }])
  })

  test('leaving does not cancel; ?on_disconnect=cancel does', async () => {
    const inside: Gate[] = [gate(), gate()]
    const model = scriptedModel(async function* (_request, n, signal) {
      yield text('one ')
      await inside[n]!.pass(signal)
      yield text('two')
    })
    const server = await serve({ model, builtIns: false })
    const stays = await server.start('stays', 'go')
    await stays.until('answer_delta')
    stays.leave()
    const leaves = await server.start('leaves', 'go', '?on_disconnect=cancel')
    await leaves.until('answer_delta')
    leaves.leave()
    await server.recorded('leaves', 'run.cancelled')
    inside[0]!.open()
    await server.recorded('stays', 'run.completed')
    const events = (await server.chat('stays')).interactions[0].agent_events
    expect(events).toMatchObject([{ type: 'ANSWER', content: 'one two' }])
  })
})

describe('cancel at every point', () => {
  /** Stops at each gate in turn: in the model, in a tool, at an approval, at the end. */
  const points = ['model 1', 'allowed tool', 'approval', 'approved tool', 'model 2'] as const

  test.each(points)(
    '%s: nothing happens afterwards, the next run is clean (I7, I8)',
    async (at) => {
      const gates = new Map<string, Gate>(points.map((point) => [point, gate()]))
      const stand = async (point: string, signal: AbortSignal) => {
        if (point !== at) return
        await gates.get(point)!.pass(signal)
      }
      const did: string[] = []
      const box = tools()
      const tool = (name: 'look' | 'send', point: string) => ({
        ...box[name],
        run: async (_: unknown, { signal }: { signal: AbortSignal }) => {
          did.push(name)
          await stand(point, signal)
          return 'done'
        },
      })
      const model = scriptedModel(async function* (_request, n, signal) {
        did.push(`model ${n + 1}`)
        yield text(`words ${n + 1} `)
        if (n === 0) {
          await stand('model 1', signal)
          yield look('1', 'sea')
          yield send('2')
        }
        if (n === 1) await stand('model 2', signal)
      })
      const kit = [tool('look', 'allowed tool'), tool('send', 'approved tool')]
      const server = await serve({ model, tools: kit, builtIns: false })
      const stream = await server.start('c', 'go')
      const id = stream.response.headers.get('x-interaction-id')!
      if (at !== 'model 1') {
        const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
        if (at === 'approved tool' || at === 'model 2')
          await server.approve('c', id, { approval_id, approved: true })
      }
      if (at !== 'approval') await gates.get(at)!.reached
      await server.cancel('c', id)
      const frames = await stream.rest()
      expect(names(frames).slice(-2)).toEqual(ended)
      const before = { did: [...did], entries: (await server.journal('c')).length }
      for (const one of gates.values()) one.open()

      const next = await (await server.start('c', 'and now')).rest()
      expect(next.at(-1)?.data.status).toBe('COMPLETED')
      expect(did.slice(before.did.length)).toEqual([`model ${model.requests.length}`])
      const old = (await server.journal('c')).slice(before.entries)
      expect(old.filter((entry) => entry.runId === id)).toEqual([])
      const { messages } = model.requests.at(-1)!
      const open = messages.flatMap((message) =>
        message.parts.flatMap((part) => (part.type === 'call' ? part.callId : [])),
      )
      const results = messages.flatMap((message) => (message.role === 'tool' ? message.callId : []))
      expect(results).toEqual(open)
      expect(messages.at(-1)?.role).toBe('user')
      expect(open).toEqual(at === 'model 1' ? [] : ['1', '2'])
    },
  )
})
