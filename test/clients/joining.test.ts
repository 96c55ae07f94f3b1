import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/core/model.ts'
import { text } from '../../src/models/scripted.ts'
import { type Gate, gate } from '../support/gate.ts'
import { look, story } from '../support/story.ts'
import { types } from './judge.ts'
import { type Client, clients, coreClient, ending, httpClient, poster, runBody } from './support.ts'

const think = (words: string): ModelEvent => ({ type: 'reasoning', text: words })
const writing = (words: string): ModelEvent => ({
  ...{ type: 'input', callId: '1', name: 'look' },
  text: words,
})

/** Waits until a client has this on its screen. */
async function sees(client: Client, words: string) {
  while (!client.shown().some((line) => line.includes(words)))
    await new Promise((resolve) => setImmediate(resolve))
}

describe.for(clients)('$name', ({ open }) => {
  test('connects to a thread nobody knows: an empty answer, and no error', async () => {
    const server = await story([])
    const client = await open(server.url, 'nowhere')
    const stream = await client.connect()
    expect(stream.response.status).toBe(200)
    expect(stream.events).toEqual([])
    expect(client.shown()).toEqual([])
    expect(client.errors).toEqual([])
    expect(client.agent.isRunning).toBe(false)
  })

  test('connects to a finished thread by a snapshot, as often as it likes: nothing twice', async () => {
    const server = await story([[text('One.')], [look('1', 'sea')], [text('Two.')]])
    const first = await open(server.url, 't')
    await first.say('one')
    await first.say('two')
    const client = await open(server.url, 't')
    const stream = await client.connect()
    expect(types(stream.events)).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED'])
    const shown = [
      ...['user: one', 'assistant: One.', 'user: two', 'assistant: look({"at":"sea"})'],
      ...['tool: saw sea', 'assistant: Two.'],
    ]
    expect(client.shown()).toEqual(shown)
    await client.connect()
    await client.connect()
    await first.connect()
    expect([client.shown(), first.shown()]).toEqual([shown, shown])
    expect(server.looked).toEqual(['sea'])
  })

  test('is not told again of an old failure', async () => {
    const server = await story([[new Error('no')], [text('Yes.')]])
    const post = poster(server.url)
    await post('/agent/default/run', runBody('t', [{ id: 'u', role: 'user', content: 'go' }]))
    const client = await open(server.url, 't')
    expect(ending(await client.connect()).type).toBe('RUN_FINISHED')
    expect(client.errors).toEqual([])
  })

  const stories: [string, (stand: () => Promise<void>) => AsyncIterable<ModelEvent>, string[]][] = [
    [
      'a text',
      async function* (stand) {
        yield text('It is ')
        await stand()
        yield text('blue.')
      },
      ['assistant: It is blue.'],
    ],
    [
      'the arguments of a call',
      async function* (stand) {
        yield text('I look.')
        yield writing('{"at":')
        await stand()
        yield writing('"sea"}')
        yield look('1', 'sea')
      },
      ['assistant: I look. look({"at":"sea"})', 'tool: saw sea', 'assistant: End.'],
    ],
    [
      'a thought',
      async function* (stand) {
        yield think('Blue ')
        await stand()
        yield think('or green?')
        yield text('Blue.')
      },
      ['reasoning: Blue or green?', 'assistant: Blue.'],
    ],
  ]

  test.for(stories)('joins in the middle of %s: no gap, no repeat', async ([, play, shown]) => {
    const stands: Gate = gate()
    const server = await story((_request, n, signal) =>
      n === 0 ? play(() => stands.pass(signal)) : [text('End.')],
    )
    const runner = await open(server.url, 't')
    const running = runner.say('go')
    await stands.reached
    const joiners = [await open(server.url, 't'), httpClient(server.url, 't')]
    joiners.push(await coreClient(server.url, 't'))
    const joining = joiners.map((one) => one.connect())
    const begun = shown[0]!.split(' ')[1]!
    for (const one of [runner, ...joiners]) await sees(one, begun)
    stands.open()
    await Promise.all([running, ...joining])
    for (const one of [runner, ...joiners]) {
      expect(one.shown()).toEqual(['user: go', ...shown])
      expect(ending(one.streams.at(-1)!).type).toBe('RUN_FINISHED')
      expect(one.errors).toEqual([])
    }
    const [first] = joiners
    await first!.connect()
    expect(first!.shown()).toEqual(['user: go', ...shown])
  })

  test('leaves in the middle: the run goes on, and is whole for who comes later', async () => {
    const stands = gate()
    const server = await story(async function* (_request, _n, signal) {
      yield text('It is ')
      await stands.pass(signal)
      yield text('blue.')
    })
    const leaver = httpClient(server.url, 't')
    const leaving = leaver.say('go').catch(() => undefined)
    await sees(leaver, 'It is')
    leaver.agent.abortRun()
    await leaving
    stands.open()
    await server.recorded('t', 'run.completed')
    const client = await open(server.url, 't')
    await client.connect()
    expect(client.shown()).toEqual(['user: go', 'assistant: It is blue.'])
  })

  test('sends the same run again while it works: it joins, and nothing is said twice', async () => {
    const stands = gate()
    const server = await story(async function* (_request, _n, signal) {
      yield text('It is ')
      await stands.pass(signal)
      yield text('blue.')
    })
    const client = await open(server.url, 't')
    const running = client.say('go', { runId: 'the-same' })
    await stands.reached
    await sees(client, 'It is')
    const again = await open(server.url, 't')
    again.agent.setMessages(client.agent.messages.slice(0, 1))
    const joining = again.run({ runId: 'the-same' })
    await sees(again, 'It is')
    stands.open()
    await Promise.all([running, joining])
    const shown = ['user: go', 'assistant: It is blue.']
    expect([client.shown(), again.shown()]).toEqual([shown, shown])
    // And once more after its end: no second run under the id of the first.
    again.agent.setMessages(client.agent.messages.slice(0, 1))
    await again.run({ runId: 'the-same' })
    expect(again.shown()).toEqual(shown)
    expect(server.model.requests).toHaveLength(1)
  })
})
