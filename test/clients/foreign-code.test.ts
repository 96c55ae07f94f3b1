import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { call, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { send, story } from '../support/story.ts'
import { said } from '../support/tools.ts'
import {
  clients,
  coreClient,
  ending,
  httpClient,
  interruptsOf,
  poster,
  refusal,
  runBody,
  toolMessage,
  userMessage,
} from './support.ts'

const run = '/agent/default/run'

const circle: { in?: unknown } = {}
circle.in = circle

/** An agent that says what no agent should, then words that are right. */
const saying = (event: unknown): Agent => ({
  name: 'odd',
  async *run(ctx) {
    yield event as never
    const parts = [{ type: 'text' as const, text: 'Well.' }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
})

describe('an agent that says what cannot be recorded', () => {
  test.for([
    ['a message without parts', { type: 'message', message: { id: 'm', role: 'assistant' } }],
    [
      'a message without an id',
      { type: 'message', message: { id: '', role: 'assistant', parts: [] } },
    ],
    ['an event of models', { type: 'text', text: 'hello' }],
    ['nothing', undefined],
    ['an activity that is a list', { type: 'activity', id: 'a', activity: 'card', content: [1] }],
    ['an activity without a name', { type: 'activity', id: 'a', content: {} }],
    ['an event without a name', { type: 'event', name: 5, value: 1 }],
    ['a state that is not JSON', { type: 'state', value: { a: 10n } }],
    ['an event that is not JSON', { type: 'event', name: 'x', value: circle }],
    [
      'words with what is not JSON',
      { type: 'message', message: { id: 'm', role: 'assistant', parts: [], meta: { a: 10n } } },
    ],
    ['a move of no agent', { type: 'event', name: 'workflow.agent', value: null }],
    ['an end of nothing', { type: 'event', name: 'workflow.completed', value: 'x' }],
    ['a step without a name', { type: 'step', done: false }],
    ['a piece without an id', { type: 'piece', piece: { kind: 'text', text: 'x' } }],
    ['a piece of no text', { type: 'piece', piece: { kind: 'text', id: 'm', text: 5 } }],
  ] as const)('fails its run once, and leaves the thread as it was: %s', async ([, event]) => {
    const server = await serve({ agents: [saying(event)] })
    const client = await coreClient(server.url, 't')
    const stream = await client.say('hi')
    expect(ending(stream)).toMatchObject({ type: 'RUN_ERROR', code: 'agent_failed' })
    const kinds = (await server.journal('t')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'run.failed')).toHaveLength(1)
    const fresh = httpClient(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(['user: hi'])
  })
})

test.for([
  'toString',
  'constructor',
  '__proto__',
  'context',
  'guardrail',
  'policy',
  'activity',
  'step.started',
  'returned',
])('an event of an agent is its own, whatever it is called: %s', async (name) => {
  const value = { from: 'm', messageId: 'm', id: 'a', type: 'card', content: {}, name: 'step' }
  const server = await serve({ agents: [saying({ type: 'event', name, value })] })
  const client = httpClient(server.url, 't')
  await client.say('hi')
  expect(client.shown()).toEqual(['user: hi', 'assistant: Well.'])
  const told = client.streams[0]!.events.filter(({ type }) => type === 'CUSTOM')
  expect(told.filter(({ value: of }) => of?.id === 'a')).toMatchObject([{ value }])
  const run = (await server.journal('t')).find(({ kind }) => kind === 'run.queued')!.runId
  const frames = await (await server.open('GET', `/chats/t/interactions/${run}/events`)).rest()
  expect(frames.map(({ event }) => event)).toEqual([
    'interaction_started',
    'answer',
    'interaction_complete',
  ])
  const { state } = await server.server.runtime.thread('t')
  expect([...state.cuts, ...state.refused, ...state.activities.keys()]).toEqual([])
})

test.for([
  ['empty', ''],
  ['too long', 'c'.repeat(250)],
] as const)('a call whose id is %s gets one that clients can send back', async ([, id]) => {
  const server = await story([[call(id, 'look', { at: 'sea' })], [text('Blue.')], [text('Still.')]])
  const client = httpClient(server.url, 't')
  await client.say('the sea?')
  await client.say('sure?')
  expect(client.shown().at(-1)).toBe('assistant: Still.')
  expect(server.looked).toEqual(['sea'])
})

describe.for(clients)('history that a thread began with, with $name', ({ open }) => {
  const list = [
    userMessage('one', 'u1'),
    { id: 'a1', role: 'assistant', content: 'First.' },
    userMessage('two', 'u2'),
  ]
  const begun = ['user: one', 'assistant: First.']

  test('stays when its answer is asked for again', async () => {
    const server = await story([[text('Second.')], [text('Other.')]])
    const client = await open(server.url, 't')
    client.agent.setMessages(list as never)
    await client.run()
    client.agent.setMessages(list as never)
    await client.run()
    expect(said(server.model.requests[1])).toEqual([...begun, 'user: two'])
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual([...begun, 'user: two', 'assistant: Other.'])
  })

  test('stays when what was said after it is edited', async () => {
    const server = await story([[text('Second.')], [text('Other.')]])
    const client = await open(server.url, 't')
    client.agent.setMessages(list as never)
    await client.run()
    const forwardedProps = { handrail: { branchFrom: 'u2' } }
    await client.say('due', { forwardedProps })
    expect(said(server.model.requests[1])).toEqual([...begun, 'user: due'])
  })
})

test('an approval that comes with words that are refused does not count', async () => {
  const guardrails = { input: [{ decision: 'deny' as const, words: ['forbidden'] }] }
  const server = await story([[send('1')], [text('Done.')]], { guardrails })
  const post = poster(server.url)
  const hello = userMessage('pay ann', 'u1')
  const [interrupt] = interruptsOf(await post(run, runBody('t', [hello])))
  const resume = [{ interruptId: interrupt!.id, status: 'resolved', payload: { approved: true } }]
  const list = [hello, userMessage('forbidden words')]
  expect(refusal(await post(run, runBody('t', list, { resume })))).toMatchObject({
    ...{ type: 'RUN_ERROR', code: 'guardrail' },
  })
  expect(server.sent).toEqual([])
  expect((await server.journal('t')).some(({ kind }) => kind === 'ask.answered')).toBe(false)
  expect(ending(await post(run, runBody('t', [hello], { resume }))).type).toBe('RUN_FINISHED')
  expect(server.sent).toHaveLength(1)
})

describe('a call of the page beside other questions', () => {
  const paint = { name: 'paint', description: 'Paints', parameters: { type: 'object' } }
  const tools = { tools: [paint] }
  const hello = userMessage('go', 'u1')

  test('keeps its result while the others are open', async () => {
    const server = await story([[call('k', 'paint', {}), send('1')], [text('Done.')]])
    const post = poster(server.url)
    await post(run, runBody('t', [hello], tools))
    await post(run, runBody('t', [hello, toolMessage('k', 'teal')], tools))
    const fresh = httpClient(server.url, 't')
    await fresh.connect(tools)
    expect(fresh.shown().at(-1)).toBe('tool: teal')
    expect(fresh.agent.pendingInterrupts).toHaveLength(1)
  })

  test('is answered by a result that comes with a message in line', async () => {
    const server = await story([[call('k', 'paint', {})], [text('Painted.')], [text('More.')]])
    const post = poster(server.url)
    await post(run, runBody('t', [hello], tools))
    const forwardedProps = { handrail: { whenBusy: 'queue' } }
    const list = [hello, toolMessage('k', 'teal'), userMessage('and more')]
    const { events } = await post(run, runBody('t', list, { ...tools, forwardedProps }))
    expect(ending({ events }).type).toBe('RUN_FINISHED')
    expect(said(server.model.requests[1]).at(-1)).toBe('tool: teal')
    expect(said(server.model.requests[2]).slice(-2)).toEqual([
      'assistant: Painted.',
      'user: and more',
    ])
  })

  test('is told to whom gets in line behind a question', async () => {
    const server = await story([[send('1')], [text('Done.')]])
    const post = poster(server.url)
    await post(run, runBody('t', [hello]))
    const forwardedProps = { handrail: { whenBusy: 'queue' } }
    const list = [hello, userMessage('and more')]
    const stream = await post(run, runBody('t', list, { forwardedProps }))
    expect(interruptsOf(stream)).toHaveLength(1)
  })
})
