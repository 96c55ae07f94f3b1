import { describe, expect, test } from 'vitest'
import { RuntimeError } from '../../src/core/errors.ts'
import { text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { look, story } from '../support/story.ts'
import { shape } from './judge.ts'
import { type Client, clients, ending } from './support.ts'

const think = (words: string) => ({ type: 'reasoning', text: words }) as const
const writing = (callId: string, words: string) =>
  ({ type: 'input', callId, name: 'look', text: words }) as const

describe.for(clients)('$name', ({ open }) => {
  /** A fresh client that connects has what the one that was there has. */
  async function same(client: Client, url: string) {
    const fresh = await open(url, client.agent.threadId)
    await fresh.connect()
    expect(fresh.agent.messages).toEqual(client.agent.messages)
    expect([...client.errors, ...fresh.errors]).toEqual([])
  }

  test('reads an answer piece by piece, and a connect shows the same', async () => {
    const server = await story([[text('The sea '), text('is blue.')]])
    const client = await open(server.url, 't')
    const stream = await client.say('the sea?')
    expect(shape(stream.events)).toEqual([
      ...['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
      'RUN_FINISHED',
    ])
    expect(ending(stream)).toMatchObject({ threadId: 't', runId: stream.request.runId })
    expect(client.shown()).toEqual(['user: the sea?', 'assistant: The sea is blue.'])
    await same(client, server.url)
  })

  test('is shown what the agent thinks before what it says', async () => {
    const server = await story([[think('Blue? '), think('Green?'), text('Blue.')]])
    const client = await open(server.url, 't')
    const stream = await client.say('the sea?')
    expect(shape(stream.events)).toEqual([
      ...['RUN_STARTED', 'REASONING_START', 'REASONING_MESSAGE_START'],
      ...['REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END', 'REASONING_END'],
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'],
    ])
    const shown = ['user: the sea?', 'reasoning: Blue? Green?', 'assistant: Blue.']
    expect(client.shown()).toEqual(shown)
    await same(client, server.url)
  })

  test('sees a call of the server, its arguments as they are written, and its result', async () => {
    const server = await story([
      [text('Let me look.'), writing('1', '{"at":'), writing('1', '"sea"}'), look('1', 'sea')],
      [text('Blue.')],
    ])
    const client = await open(server.url, 't')
    const { events } = await client.say('the sea?')
    expect(shape(events)).toEqual([
      ...['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT'],
      ...shape(events).slice(3, -5), // the text may end before or after its call begins
      ...['TOOL_CALL_RESULT', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
      'RUN_FINISHED',
    ])
    const args = events.filter(({ type }) => type === 'TOOL_CALL_ARGS').map(({ delta }) => delta)
    expect(args.join('')).toBe('{"at":"sea"}')
    expect(client.shown()).toEqual([
      'user: the sea?',
      'assistant: Let me look. look({"at":"sea"})',
      'tool: saw sea',
      'assistant: Blue.',
    ])
    expect(server.looked).toEqual(['sea'])
    await same(client, server.url)
  })

  test('sees several calls at once, each with the result that is its own', async () => {
    const server = await story([
      [look('1', 'sea'), look('2', 'sky'), look('3', 'sun')],
      [text('All seen.')],
    ])
    const client = await open(server.url, 't')
    await client.say('look around')
    const results = client.agent.messages.flatMap((one) =>
      one.role === 'tool' ? [[one.toolCallId, one.content]] : [],
    )
    expect(results.toSorted()).toEqual([
      ['1', 'saw sea'],
      ['2', 'saw sky'],
      ['3', 'saw sun'],
    ])
    expect(client.shown().at(-1)).toBe('assistant: All seen.')
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown().toSorted()).toEqual(client.shown().toSorted())
  })

  test('is told by its code why a run failed; nothing stays open, and the next one runs', async () => {
    const failing = new RuntimeError('authentication')
    const server = await story([[text('I was '), failing], [text('Here I am.')]])
    const client = await open(server.url, 't')
    const stream = await client.say('hello?')
    expect(ending(stream)).toMatchObject({ type: 'RUN_ERROR', code: 'authentication' })
    expect(client.errors).toEqual(['authentication'])
    client.errors.length = 0
    const again = await client.say('are you there?')
    expect(ending(again).type).toBe('RUN_FINISHED')
    expect(client.shown().slice(-2)).toEqual(['user: are you there?', 'assistant: Here I am.'])
    await same(client, server.url)
  })

  test('watches a model whose stream is cut: what was shown is taken back and said again', async () => {
    const seen = gate()
    const server = await story(
      async function* (_request, n, signal) {
        yield text(n === 0 ? 'It is gr' : 'It is ')
        if (n > 0) return yield text('blue.')
        await seen.pass(signal)
        yield new RuntimeError('stream_cut')
      },
      { retry: { first: 0 } },
    )
    const client = await open(server.url, 't')
    const saying = client.say('the sea?')
    await seen.reached
    const joined = await open(server.url, 't')
    const joining = joined.connect()
    while (!joined.streams[0]?.events.some(({ type }) => type === 'TEXT_MESSAGE_START'))
      await new Promise((resolve) => setImmediate(resolve))
    seen.open()
    await Promise.all([saying, joining])
    const shown = ['user: the sea?', 'assistant: It is blue.']
    expect(client.shown()).toEqual(shown)
    expect(joined.shown()).toEqual(shown)
    expect(server.model.requests).toHaveLength(2)
    await same(client, server.url)
  })
})
