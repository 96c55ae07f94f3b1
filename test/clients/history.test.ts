import { describe, expect, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { look, story } from '../support/story.ts'
import { said } from '../support/tools.ts'
import { types } from './judge.ts'
import { clients, coreClient, ending, httpClient, poster, runBody, userMessage } from './support.ts'

const numbered: Parameters<typeof story>[0] = (_request, n) => [text(`Answer ${n}.`)]
const run = '/agent/default/run'

describe.for(clients)('$name', ({ open }) => {
  test('lets the last answer be made again: a new branch, and the model sees the question once', async () => {
    const server = await story(numbered)
    const client = await open(server.url, 't')
    await client.say('one')
    await client.say('two')
    client.agent.setMessages(client.agent.messages.slice(0, 3))
    await client.run()
    expect(client.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(said(server.model.requests[2])).toEqual([
      ...['user: one', 'assistant: Answer 0.', 'user: two'],
    ])
    const fresh = await open(server.url, 't')
    await fresh.connect()
    const shown = ['user: one', 'assistant: Answer 0.', 'user: two', 'assistant: Answer 2.']
    expect(fresh.shown()).toEqual(shown)
    expect(client.shown()).toEqual(shown)
    await client.connect()
    expect(client.shown()).toEqual(shown)
    const { interactions } = await server.chat('t', '?include=superseded')
    expect(interactions).toHaveLength(3) // the branch that was left is kept
  })

  test('edits an earlier message: the chat goes on from there', async () => {
    const server = await story(numbered)
    const client = await open(server.url, 't')
    await client.say('one')
    const [first] = client.agent.messages
    await client.say('two')
    client.agent.setMessages([])
    const forwardedProps = { handrail: { branchFrom: first!.id } }
    await client.say('uno', { forwardedProps })
    expect(said(server.model.requests[2])).toEqual(['user: uno'])
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(['user: uno', 'assistant: Answer 2.'])
    await client.say('dos')
    expect(said(server.model.requests[3])).toEqual([
      ...['user: uno', 'assistant: Answer 2.', 'user: dos'],
    ])
  })

  test('with an old page destroys nothing: what it does not know stays', async () => {
    const server = await story(numbered)
    const stale = await open(server.url, 't')
    await stale.say('one')
    const other = await open(server.url, 't')
    await other.connect()
    await other.say('two')
    await stale.say('three')
    const words = [
      ...['user: one', 'assistant: Answer 0.', 'user: two', 'assistant: Answer 1.'],
      ...['user: three', 'assistant: Answer 2.'],
    ]
    expect(said(server.model.requests[2])).toEqual(words.slice(0, -1))
    await stale.connect()
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(words)
    expect(stale.shown().toSorted()).toEqual(words.toSorted())
  })

  test('left in the middle of an answer and says more: it is shown the whole of it', async () => {
    const server = await story(numbered)
    const client = await open(server.url, 't')
    await client.say('one')
    const [asked, answer] = client.agent.messages
    client.agent.setMessages([asked!, { ...answer!, content: 'Ans' } as typeof answer & object])
    await client.say('two')
    const shown = ['user: one', 'assistant: Answer 0.', 'user: two', 'assistant: Answer 1.']
    expect(client.shown()).toEqual(shown)
    expect(said(server.model.requests[1])).toEqual(shown.slice(0, -1))
  })

  test('sends nothing new: it is shown what there is, and nothing runs', async () => {
    const server = await story(numbered)
    const client = await open(server.url, 't')
    await client.say('one')
    const stream = await client.run()
    expect(types(stream.events)).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED'])
    client.agent.setMessages([])
    await client.run()
    expect(client.shown()).toEqual(['user: one', 'assistant: Answer 0.'])
    expect(server.model.requests).toHaveLength(1)
  })

  test('starts a thread with a history of its own, which the model is given', async () => {
    const server = await story(numbered)
    const client = await open(server.url, 't')
    const before = [
      { id: 'h1', role: 'user', content: 'Who are you?' },
      { id: 'h2', role: 'assistant', content: 'A helper.' },
    ] as const
    client.agent.setMessages([...before])
    await client.say('and now?')
    expect(said(server.model.requests[0])).toEqual([
      ...['user: Who are you?', 'assistant: A helper.', 'user: and now?'],
    ])
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(client.shown())
    await client.say('more')
    expect(said(server.model.requests[1])).toHaveLength(5)
  })
})

test('a history of a new thread with calls nobody answered leaves the model a valid request (I8)', async () => {
  const server = await story(numbered)
  const post = poster(server.url)
  const toolCalls = [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }]
  const list = [
    { id: 'h1', role: 'user', content: 'look' },
    { id: 'h2', role: 'assistant', toolCalls },
    userMessage('never mind', 'h3'),
  ]
  expect(ending(await post(run, runBody('t', list))).type).toBe('RUN_FINISHED')
  const [request] = server.model.requests
  expect(request!.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  expect(server.looked).toEqual([])
})

test('context and system messages instruct the model, and are no part of the history', async () => {
  const server = await story(numbered)
  const client = await coreClient(server.url, 't')
  client.core.addContext({ description: 'Current page', value: '/orders' })
  client.agent.setMessages([
    { id: 's1', role: 'system', content: 'Speak like a pirate.' },
    { id: 'd1', role: 'developer', content: 'Be brief.' },
  ])
  await client.say('hello')
  const [request] = server.model.requests
  expect(request!.system.join('\n')).toContain('Speak like a pirate.')
  expect(request!.system.join('\n')).toContain('Be brief.')
  expect(request!.system.join('\n')).toContain('Current page: /orders')
  expect(said(request)).toEqual(['user: hello'])
  const fresh = httpClient(server.url, 't')
  await fresh.connect()
  expect(fresh.shown()).toEqual(['user: hello', 'assistant: Answer 0.'])
  // The next run, without them, is not under their instructions.
  await fresh.say('again')
  expect(server.model.requests[1]!.system).toEqual([])
})

test('a list that is only a tail, as a filter of the page may send, adds just what is new', async () => {
  const server = await story([[look('1', 'sea')], [text('Blue.')], [text('Still.')]])
  const client = httpClient(server.url, 't')
  await client.say('the sea?')
  const post = poster(server.url)
  const { events } = await post(run, runBody('t', [userMessage('sure?')]))
  expect(ending({ events }).type).toBe('RUN_FINISHED')
  expect(said(server.model.requests[2])).toEqual([
    ...['user: the sea?', 'assistant: look({"at":"sea"})', 'tool: saw sea', 'assistant: Blue.'],
    'user: sure?',
  ])
})

test('a result whose call was cut off the list that a thread began with is no reason to refuse what comes next', async () => {
  const server = await story(numbered)
  const client = httpClient(server.url, 't')
  const cut = [{ id: 'r1', role: 'tool', toolCallId: 'gone', content: '42' }, userMessage('hi')]
  client.agent.setMessages(cut as never)
  await client.run()
  expect(ending(await client.say('again')).type).toBe('RUN_FINISHED')
  expect(client.shown().at(-1)).toBe('assistant: Answer 1.')
})
