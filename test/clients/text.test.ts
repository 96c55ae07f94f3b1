import { describe, expect, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { story } from '../support/story.ts'
import { shape } from './judge.ts'
import { clients, ending } from './support.ts'

describe.for(clients)('$name', ({ open }) => {
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
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.agent.messages).toEqual(client.agent.messages)
    expect([...client.errors, ...fresh.errors]).toEqual([])
  })
})
