import { describe, expect, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { serve } from '../support/serve.ts'
import { find, names } from '../support/tools.ts'
import {
  ask,
  callEvents,
  finished,
  interactionOf,
  interrupted,
  remote,
  sse,
  started,
  textEvents,
} from './support.ts'

describe('an AG-UI agent over HTTP', () => {
  test('is told the history, and what it says is ours: pieces, then a message', async () => {
    const far = await remote((_, response) =>
      sse(response, [
        started,
        { type: 'REASONING_START', messageId: 'th' },
        { type: 'REASONING_MESSAGE_START', messageId: 'th', role: 'reasoning' },
        { type: 'REASONING_MESSAGE_CONTENT', messageId: 'th', delta: 'hmm' },
        { type: 'REASONING_MESSAGE_END', messageId: 'th' },
        { type: 'REASONING_END', messageId: 'th' },
        ...textEvents('m1', 'It is ', 'sunny.'),
        { ...finished, usage: [{ model: 'x', inputTokens: 3, outputTokens: 4 }] },
      ]),
    )
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const frames = await ask(server, 'c', 'How is the weather?')
    const deltas = frames.filter(({ event }) => event === 'answer_delta')
    expect(deltas.map(({ data }) => data.delta)).toEqual(['It is ', 'sunny.'])
    expect(find(frames, 'thinking').content).toBe('hmm')
    expect(find(frames, 'answer').content).toBe('It is sunny.')
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    await ask(server, 'c', 'And tomorrow?')
    const [first, second] = far.asked
    expect(first!.body.messages).toMatchObject([{ role: 'user', content: 'How is the weather?' }])
    // The remote's own messages go back under its own ids, on the same thread of it.
    expect(
      second!.body.messages.map(({ id, role }: { id: string; role: string }) => [role, id]),
    ).toEqual([
      ['user', first!.body.messages[0].id],
      ['assistant', 'm1'],
      ['user', expect.any(String)],
    ])
    expect(second!.body.threadId).toBe(first!.body.threadId)
    const journal = await server.journal('c')
    const kinds = journal.map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind.startsWith('effect'))).toEqual([
      ...['effect.intended', 'effect.done', 'effect.intended', 'effect.done'],
    ])
    const intent = journal.find(({ kind }) => kind === 'effect.intended')!
    expect(intent.body).toMatchObject({ effect: 'remote', name: 'far', idempotent: false })
    expect(first!.headers['idempotency-key']).toBe((intent.body as { effectId: string }).effectId)
    const calls = journal.find(({ body }) => (body as { name?: string }).name === 'remote.calls')
    expect(calls?.body).toMatchObject({ value: { calls: 1 } })
  })

  test('calls, results, steps, state, activities and events become ours', async () => {
    const far = await remote((_, response) =>
      sse(response, [
        started,
        { type: 'STEP_STARTED', stepName: 'look' },
        { type: 'STATE_SNAPSHOT', snapshot: { seen: 0 } },
        ...textEvents('m1', 'I look.'),
        { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'peek', parentMessageId: 'm1' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"at":"sea"}' },
        { type: 'TOOL_CALL_END', toolCallId: 'c1' },
        { type: 'TOOL_CALL_RESULT', messageId: 'r1', toolCallId: 'c1', content: 'waves' },
        { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/seen', value: 1 }] },
        { type: 'ACTIVITY_SNAPSHOT', messageId: 'a1', activityType: 'PLAN', content: { done: 1 } },
        {
          type: 'ACTIVITY_DELTA',
          messageId: 'a1',
          activityType: 'PLAN',
          patch: [{ op: 'replace', path: '/done', value: 2 }],
        },
        { type: 'CUSTOM', name: 'weather', value: { sky: 'grey' } },
        { type: 'CUSTOM', name: 'context', value: { from: 'nowhere' } },
        { type: 'STEP_FINISHED', stepName: 'look' },
        { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm2', delta: 'Done' },
        { type: 'TEXT_MESSAGE_CHUNK', delta: '.' },
        { type: 'SOMETHING_NEW', what: 1 },
        {
          type: 'MESSAGES_SNAPSHOT',
          messages: [
            { id: 'x', role: 'user', content: 'go' },
            { id: 'm9', role: 'assistant', content: 'And one more.' },
          ],
        },
        finished,
      ]),
    )
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const frames = await ask(server, 'c', 'go')
    const spoken = ['tool_call', 'tool_result', 'answer']
    const said = frames.filter(({ event }) => spoken.includes(event))
    expect(
      said.map(({ event, data }) => [event, data.content ?? data.tool_output ?? data.tool_input]),
    ).toEqual([
      ['tool_call', '{"at":"sea"}'],
      ['tool_result', 'waves'],
      ['answer', 'Done.'],
      ['answer', 'And one more.'],
    ])
    const { state } = await server.server.runtime.thread('c')
    expect(state.states.get('far')).toEqual({ seen: 1 })
    expect([...state.activities.values()]).toMatchObject([{ type: 'PLAN', content: { done: 2 } }])
    expect(state.cuts).toEqual([])
    const events = (await server.journal('c')).filter(({ kind }) => kind === 'event')
    expect(events.map(({ body }) => (body as { name: string }).name)).toEqual([
      ...['step.started', 'activity', 'activity', 'weather', 'remote:context', 'step.finished'],
    ])
  })

  test('a call of a client tool ends the leg, and its result goes back under the id it knows', async () => {
    const far = await remote(({ body }, response) => {
      const result = body.messages.find(({ role }: { role: string }) => role === 'tool')
      if (result)
        return sse(response, [started, ...textEvents('m2', `It is ${result.content}.`), finished])
      sse(response, [started, ...callEvents('far-call', 'pick_colour', { of: 'sea' }), finished])
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const { httpClient } = await import('../clients/support.ts')
    const client = httpClient(server.url, 't')
    const tools = [
      { name: 'pick_colour', description: 'Asks the user', parameters: { type: 'object' } },
    ]
    await client.say('Which?', { tools })
    expect(far.asked[0]!.body.tools).toMatchObject([{ name: 'pick_colour' }])
    const call = client.agent.messages.at(-1) as { toolCalls: { id: string }[] }
    const [{ id: toolCallId }] = call.toolCalls as [{ id: string }]
    expect(toolCallId).not.toBe('far-call')
    client.agent.addMessage({ id: 'res', role: 'tool', toolCallId, content: 'blue' })
    await client.run({ tools })
    expect(client.shown().at(-1)).toContain('It is blue.')
    const back = far.asked[1]!.body.messages.find(({ role }: { role: string }) => role === 'tool')
    expect(back).toMatchObject({ toolCallId: 'far-call', content: 'blue' })
  })

  test('its questions are asks here, together, and the answers go back as its resume', async () => {
    const far = await remote(({ body }, response) => {
      if (!body.resume)
        return sse(response, [
          started,
          ...textEvents('m1', 'I need two things.'),
          interrupted(
            {
              id: 'i1',
              reason: 'confirmation',
              message: 'Delete 3 rows?',
              metadata: { input: { rows: 3 } },
            },
            {
              id: 'i2',
              reason: 'input_required',
              message: 'Whose?',
              responseSchema: {
                type: 'object',
                properties: { name: { type: 'string' } },
                required: ['name'],
              },
            },
          ),
        ])
      sse(response, [started, ...textEvents('m2', 'Thank you.'), finished])
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const stream = await server.start('c', 'go')
    const run = interactionOf(stream.response)
    await stream.until('approval_required')
    const [second] = (await stream.until('approval_required')).slice(-1)
    const pending = (await server.chat('c')).interactions[0].pending_approvals ?? []
    const { state } = await server.server.runtime.thread('c')
    const asks = [...state.asks.values()].map(({ ask: one }) => one)
    expect(asks).toMatchObject([
      { kind: 'approval', title: 'Delete 3 rows?', input: { rows: 3 } },
      { kind: 'input', title: 'Whose?' },
    ])
    expect(pending).toBeDefined()
    expect(second!.data.kind).toBe('input')
    const wrong = await server.approve('c', run, {
      approval_id: asks[1]!.askId,
      answer: { name: 3 },
    })
    expect(wrong.status).toBe(400)
    await server.approve('c', run, {
      approval_id: asks[0]!.askId,
      approved: false,
      reason: 'not those',
    })
    await server.approve('c', run, { approval_id: asks[1]!.askId, answer: { name: 'ann' } })
    const frames = await stream.rest()
    expect(find(frames, 'answer').content).toBe('Thank you.')
    expect(far.asked[1]!.body.resume).toEqual([
      { interruptId: 'i1', status: 'resolved', payload: { approved: false, reason: 'not those' } },
      { interruptId: 'i2', status: 'resolved', payload: { name: 'ann' } },
    ])
    expect(far.asked[1]!.body.threadId).toBe(far.asked[0]!.body.threadId)
  })

  test('the older way to ask: an event, and the answer as a command', async () => {
    const far = await remote(({ body }, response) => {
      const { command } = body.forwardedProps
      if (command)
        return sse(response, [
          started,
          ...textEvents('m2', `You said ${command.resume}.`),
          finished,
        ])
      sse(response, [
        started,
        { type: 'CUSTOM', name: 'on_interrupt', value: '{"question":"Which one?"}' },
        finished,
      ])
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const stream = await server.start('c', 'go')
    const { approval_id, card } = find(await stream.until('approval_required'), 'approval_required')
    expect(card.title).toBe('Which one?')
    await server.approve('c', interactionOf(stream.response), { approval_id, answer: 'the red' })
    expect(find(await stream.rest(), 'answer').content).toBe('You said the red.')
    expect(far.asked[1]!.body.forwardedProps.command.interruptEvent).toEqual({
      question: 'Which one?',
    })
  })

  test('cancel closes the connection, and what was shown stays', async () => {
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents('m1', 'I begin and').slice(0, 2)], false),
    )
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const stream = await server.start('c', 'go')
    await stream.until('answer_delta')
    await server.cancel('c', interactionOf(stream.response))
    const frames = await stream.rest()
    expect(names(frames)).toContain('cancelled')
    await expect.poll(() => far.left).toBe(1)
    const journal = await server.journal('c')
    const [partial] = journal.filter(({ kind }) => kind === 'message.added').slice(-1)
    expect(partial!.body).toMatchObject({
      message: { partial: true, parts: [{ text: 'I begin and' }] },
    })
    expect(journal.some(({ kind }) => kind === 'effect.failed')).toBe(true)
  })

  test('an edit goes to another thread of the remote, which is told all of the branch', async () => {
    let count = 0
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents(`m${++count}`, `answer ${count}`), finished]),
    )
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    await ask(server, 'c', 'one')
    const stream = await server.start('c', 'two')
    await stream.rest()
    await (await server.edit('c', interactionOf(stream.response), 'other')).rest()
    await ask(server, 'c', 'three')
    const [, , edited, after] = far.asked.map(({ body }) => body)
    expect(edited.threadId).not.toBe(far.asked[0]!.body.threadId)
    expect(after.threadId).toBe(edited.threadId)
    const texts = edited.messages.map(({ content }: { content: string }) => content)
    expect(texts).toEqual(['one', 'answer 1', 'other'])
  })

  test('counts as one of the budget for each leg, and the leg beyond it is not begun', async () => {
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents(`m${far.asked.length}`, 'yes'), finished]),
    )
    const env = { HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: '1' }
    const server = await serve(
      { agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] },
      { env },
    )
    await ask(server, 'c', 'one')
    const stream = await server.start('c', 'two')
    const frames = await stream.until('approval_required')
    const { approval_id, kind } = find(frames, 'approval_required')
    expect(kind).toBe('budget')
    expect(far.asked).toHaveLength(1)
    await server.approve('c', interactionOf(stream.response), { approval_id, approved: true })
    await stream.rest()
    expect(far.asked).toHaveLength(2)
  })

  test('what the client brings is handed on by name, and nothing else', async () => {
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents('m', 'ok'), finished]),
    )
    const agent = aguiAgent({
      name: 'far',
      url: `${far.url}/run`,
      forward: { headers: ['x-vendor-token'], properties: ['userId'] },
      headers: ({ headers }) => ({ authorization: `Bearer ${headers['x-vendor-token']}` }),
    })
    const server = await serve(
      { agents: [agent] },
      { env: { HANDRAIL_API_KEYS: 'open-sesame-open=ann' } },
    )
    const { httpClient } = await import('../clients/support.ts')
    const headers = {
      authorization: 'Bearer open-sesame-open',
      'x-vendor-token': 'v1',
      'x-other': 'o',
    }
    const client = httpClient(server.url, 't', { headers })
    await client.say('go', { forwardedProps: { userId: 'u1', password: 'p' } })
    const [asked] = far.asked
    expect(asked!.headers).toMatchObject({ authorization: 'Bearer v1', 'x-vendor-token': 'v1' })
    expect(asked!.headers).not.toHaveProperty('x-other')
    expect(JSON.stringify(asked)).not.toContain('sesame')
    expect(asked!.body.forwardedProps).toEqual({ userId: 'u1' })
  })

  test('on AG-UI its question is an interrupt again, and the resume is handed on', async () => {
    const far = await remote(({ body }, response) => {
      if (body.resume) return sse(response, [started, ...textEvents('m2', 'It is gone.'), finished])
      const question = { id: 'i1', reason: 'confirmation', message: 'Delete it?' }
      sse(response, [started, ...textEvents('m1', 'One moment.'), interrupted(question)])
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const { httpClient } = await import('../clients/support.ts')
    const client = httpClient(server.url, 't')
    await client.say('delete')
    const [pending] = client.agent.pendingInterrupts
    expect(pending).toMatchObject({ reason: 'confirmation', message: 'Delete it?' })
    const payload = { approved: true }
    await client.run({ resume: [{ interruptId: pending!.id, status: 'resolved', payload }] })
    expect(client.shown().at(-1)).toContain('It is gone.')
    expect(far.asked[1]!.body.resume).toEqual([
      { interruptId: 'i1', status: 'resolved', payload: { approved: true } },
    ])
  })
})
