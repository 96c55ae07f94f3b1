import { describe, expect, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { asked, look, send, story } from '../support/story.ts'
import { find, names, problem, said, seedFrames } from '../support/tools.ts'

describe('without approval', () => {
  test('streams started, thinking, call, result, answer, complete, in this order (seed 5.1)', async () => {
    const server = await story([
      [{ type: 'reasoning', text: 'hm, ' }, text('let me '), text('look'), look('1', 'sea')],
      [text('It is '), text('blue.')],
    ])
    const stream = await server.start('c', 'what colour is the sea?')
    expect(stream.response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(stream.response.headers.get('cache-control')).toBe('no-cache, no-store')
    expect(stream.response.headers.get('x-accel-buffering')).toBe('no')
    const frames = await stream.rest()
    expect(names(seedFrames(frames))).toEqual([
      'interaction_started',
      'thinking',
      'thinking',
      'tool_call',
      'tool_result',
      'answer',
      'interaction_complete',
    ])
    expect(names(frames).filter((name) => name.endsWith('_delta'))).toHaveLength(5)
    expect(find(frames, 'tool_call')).toEqual({
      type: 'TOOL_CALL',
      id: '1',
      tool_name: 'look',
      tool_input: '{"at":"sea"}',
    })
    expect(find(frames, 'tool_result')).toEqual({
      type: 'TOOL_RESULT',
      id: '1',
      tool_name: 'look',
      tool_output: 'saw sea',
    })
    expect(find(frames, 'answer')).toMatchObject({ type: 'ANSWER', content: 'It is blue.' })
    const { interaction_id } = find(frames, 'interaction_started')
    expect(stream.response.headers.get('x-interaction-id')).toBe(interaction_id)
    expect(find(frames, 'interaction_complete')).toEqual({ interaction_id, status: 'COMPLETED' })
    expect(server.looked).toEqual(['sea'])
  })

  test('keeps the chat: events, final state in the OpenAI format, and the next run hears it', async () => {
    const server = await story([[look('1', 'sea')], [text('Blue.')], [text('Still blue.')]])
    await (await server.start('c', 'the sea?')).rest()
    const chat = await server.chat('c')
    expect(chat).toMatchObject({ id: 'c', interactions: [{ status: 'COMPLETED' }] })
    const [interaction] = chat.interactions
    expect(interaction.user_message).toBe('the sea?')
    expect(interaction.agent_events.map((event: { type: string }) => event.type)).toEqual([
      'TOOL_CALL',
      'TOOL_RESULT',
      'ANSWER',
    ])
    expect(interaction.completed_at >= interaction.created_at).toBe(true)
    const fn = { name: 'look', arguments: '{"at":"sea"}' }
    expect(interaction.final_agent_state.messages).toEqual([
      { role: 'user', content: 'the sea?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: '1', type: 'function', function: fn }],
      },
      { role: 'tool', tool_call_id: '1', content: 'saw sea' },
      { role: 'assistant', content: 'Blue.' },
    ])
    await (await server.start('c', 'and now?')).rest()
    expect(said(server.model.requests[2])).toEqual([
      'user: the sea?',
      'assistant: look({"at":"sea"})',
      'tool: saw sea',
      'assistant: Blue.',
      'user: and now?',
    ])
  })
})

describe('with approval', () => {
  test('stops at the approval and goes on with it (seed 5.2)', async () => {
    const server = await story([[text('Paying. '), send('1')], [text('Paid.')]])
    const { stream, before, interaction_id, approval_id } = await asked(server)
    expect(names(seedFrames(before))).toEqual([
      'interaction_started',
      'thinking',
      'approval_required',
    ])
    expect(find(before, 'approval_required')).toMatchObject({
      action: 'send',
      kind: 'approval',
      tool_name: 'send',
      tool_input: '{"to":"ann","amount":5}',
      timeout_at: expect.stringMatching(/^\d{4}-.*Z$/),
      card: { title: 'Send 5 to “ann”', at_timeout: 'reject' },
    })
    await server.recorded('c', 'run.waiting')
    expect(await server.chat('c')).toMatchObject({
      interactions: [
        {
          status: 'WAITING_APPROVAL',
          kind: 'approval',
          approvals: [{ approval_id }],
          final_agent_state: null,
          completed_at: null,
        },
      ],
    })
    expect(server.sent).toEqual([])
    const response = await server.approve('c', interaction_id, { approval_id, approved: true })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      status: 'processed',
      approval_id,
      approved: true,
      state: 'approved',
      by: 'local',
    })
    const after = await stream.rest()
    expect(names(seedFrames(after))).toEqual([
      'approved',
      'tool_call',
      'tool_result',
      'answer',
      'interaction_complete',
    ])
    expect(find(after, 'approved')).toMatchObject({ approval_id, approved: true })
    expect(server.sent).toEqual([{ to: 'ann', amount: 5 }])
    expect(server.model.requests).toHaveLength(2)
  })

  test('tells the model of a rejection and its reason, and goes on', async () => {
    const server = await story([[send('1')], [text('Then not.')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    const said_no = { approval_id, approved: false, reason: 'too much' }
    const response = await server.approve('c', interaction_id, said_no)
    expect(await response.json()).toMatchObject({ approved: false, state: 'rejected' })
    const after = await stream.rest()
    expect(names(seedFrames(after))).toEqual([
      'rejected',
      'tool_result',
      'answer',
      'interaction_complete',
    ])
    expect(find(after, 'rejected')).toMatchObject({ approval_id, reason: 'too much' })
    expect(find(after, 'tool_result')).toMatchObject({ not_run: true })
    expect(find(after, 'interaction_complete').status).toBe('COMPLETED')
    expect(said(server.model.requests[1]).at(-1)).toBe(
      'tool: The user rejected this call: too much',
    )
    expect(server.sent).toEqual([])
  })

  test('ends the run when the decision says stop', async () => {
    const server = await story([[send('1')], [text('never')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    const response = await server.approve('c', interaction_id, { approval_id, stop: true })
    expect(response.status).toBe(200)
    const after = await stream.rest()
    expect(names(after)).toEqual(['rejected', 'cancelled', 'interaction_complete'])
    expect(find(after, 'interaction_complete').status).toBe('CANCELLED')
    expect(server.model.requests).toHaveLength(1)
    expect(server.sent).toEqual([])
  })

  test('runs the edited input, which is what was decided (I11)', async () => {
    const server = await story([[send('1')], [text('Paid.')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    const edited_input = { to: 'bob', amount: 7 }
    await server.approve('c', interaction_id, { approval_id, approved: true, edited_input })
    const after = await stream.rest()
    expect(find(after, 'approved')).toMatchObject({ edited_input })
    expect(JSON.parse(find(after, 'tool_call').tool_input)).toEqual(edited_input)
    expect(server.sent).toEqual([edited_input])
    const entries = await server.journal('c')
    const answer = entries.find(({ kind }) => kind === 'ask.answered')!.body as { digest: string }
    const ask = entries.find(({ kind }) => kind === 'ask.raised')!.body as {
      ask: { digest: string }
    }
    const tool = entries.find(
      (entry) => entry.kind === 'effect.intended' && entry.body.effect === 'tool',
    )!.body as { digest: string; askId: string }
    expect(tool).toMatchObject({ digest: answer.digest, askId: approval_id })
    expect(answer.digest).not.toBe(ask.ask.digest)
  })

  test.each([
    ['a wrong type', { to: 'bob', amount: 'many' }, 'body.edited_input.amount'],
    ['too much', { to: 'bob', amount: 101 }, 'body.edited_input.amount'],
    ['an empty name', { to: '', amount: 1 }, 'body.edited_input.to'],
    ['a missing field', { to: 'bob' }, 'body.edited_input.amount'],
  ])('refuses an edit with %s, names the field and changes nothing', async (_, edit, field) => {
    const server = await story([[send('1')], [text('Paid.')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    await server.recorded('c', 'run.waiting')
    const before = (await server.journal('c')).length
    const body = { approval_id, approved: true, edited_input: edit }
    const response = await server.approve('c', interaction_id, body)
    expect(await problem(response)).toMatchObject({ http: 400, code: 'invalid_request', field })
    expect(await server.journal('c')).toHaveLength(before)
    await server.approve('c', interaction_id, { approval_id, approved: true })
    await stream.rest()
    expect(server.sent).toEqual([{ to: 'ann', amount: 5 }])
  })

  test('answers in place of the tool', async () => {
    const server = await story([[send('1')], [text('Good.')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    const body = { approval_id, answer: 'I paid in cash' }
    expect(await (await server.approve('c', interaction_id, body)).json()).toMatchObject({
      state: 'answered',
    })
    const after = await stream.rest()
    expect(names(seedFrames(after))).toEqual([
      'approved',
      'tool_result',
      'answer',
      'interaction_complete',
    ])
    expect(said(server.model.requests[1]).at(-1)).toBe('tool: I paid in cash')
    expect(server.sent).toEqual([])
  })

  test('answers a second decision with 400 and the recorded one; other ids with 404', async () => {
    const server = await story([[send('1')], [text('Paid.')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    await server.approve('c', interaction_id, { approval_id, approved: true, reason: 'fine' })
    await stream.rest()
    for (const approved of [true, false]) {
      const again = await server.approve('c', interaction_id, { approval_id, approved })
      expect(await problem(again)).toMatchObject({
        http: 400,
        code: 'ask_settled',
        approval_id,
        decision: { approved: true, state: 'approved', by: 'local', reason: 'fine' },
      })
    }
    const other = await server.approve('c', interaction_id, {
      approval_id: 'ask_x',
      approved: true,
    })
    expect(await problem(other)).toMatchObject({ http: 404, code: 'ask_not_found' })
    expect(server.sent).toHaveLength(1)
  })

  test('gives the first response again for the same Idempotency-Key', async () => {
    const server = await story([[send('1')], [text('Paid.')]])
    const { stream, interaction_id, approval_id } = await asked(server)
    const key = { 'idempotency-key': 'k1' }
    const decide = (approved: boolean) =>
      server.approve('c', interaction_id, { approval_id, approved }, key)
    const first = await (await decide(true)).json()
    await stream.rest()
    const again = await decide(true)
    expect(again.status).toBe(200)
    expect(await again.json()).toEqual(first)
    const other = await decide(false)
    expect(await problem(other)).toMatchObject({ http: 422, code: 'idempotency_mismatch' })
  })
})

describe('several calls in one step', () => {
  test('asks for all at once, runs the allowed one meanwhile, goes on when each is settled', async () => {
    const server = await story([
      [send('1', 1), look('2', 'sea'), send('3', 3)],
      [text('One of two.')],
    ])
    const stream = await server.start('c', 'pay both')
    const before = [...(await stream.until('approval_required'))]
    before.push(...(await stream.until('approval_required')))
    const interaction = stream.response.headers.get('x-interaction-id')!
    const asks = before.filter(({ event }) => event === 'approval_required').map(({ data }) => data)
    expect(asks.map((ask) => ask.card.call_id)).toEqual(['1', '3'])
    if (!names(before).includes('tool_result')) await stream.until('tool_result')
    expect(server.looked).toEqual(['sea'])

    const [one, three] = asks.map((ask) => ask.approval_id)
    await server.approve('c', interaction, { approval_id: three, approved: false })
    await stream.until('rejected')
    await server.recorded('c', 'run.waiting')
    expect(server.model.requests).toHaveLength(1)
    expect(await server.chat('c')).toMatchObject({
      interactions: [{ status: 'WAITING_APPROVAL', approvals: [{ approval_id: one }] }],
    })
    await server.approve('c', interaction, { approval_id: one, approved: true })
    const after = await stream.rest()
    expect(names(after)).toContain('approved')
    expect(after.at(-1)?.data.status).toBe('COMPLETED')
    expect(server.sent).toEqual([{ to: 'ann', amount: 1 }])
    expect(server.looked).toEqual(['sea'])
    expect(said(server.model.requests[1]).slice(-3)).toEqual([
      'tool: sent 1 to ann',
      'tool: saw sea',
      'tool: The user rejected this call.',
    ])
  })
})
