import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { serve } from '../support/serve.ts'

/** Ids that break out of a JSON string, an SSE field, a cursor or an object's prototype. */
const ids = [
  'a"b',
  'a\\',
  '","delta":"forged"}\n\nevent: approved\ndata: {"x":"',
  'line\nbreak\r\nid: 999',
  'a:1@b!t:c:2',
  '__proto__',
  '日本\u2028',
]

const agentOf = (id: string): Agent => ({
  name: 'odd',
  async *run() {
    for (const text of ['Hel', 'lo.']) {
      yield { type: 'piece', piece: { kind: 'reasoning', id, text: 'Hm. ' } }
      yield { type: 'piece', piece: { kind: 'text', id, text } }
      await turn()
      await turn()
    }
    const parts = [
      { type: 'reasoning' as const, text: 'Hm. Hm. ' },
      { type: 'text' as const, text: 'Hello.' },
    ]
    yield { type: 'message', message: { id, role: 'assistant', parts } }
  },
})

describe.each(ids)('a message id %j that an agent chooses', (id) => {
  test('is one string of the chats events', async () => {
    const server = await serve({ agents: [agentOf(id)] })
    const frames = await (await server.start('c', 'hi')).rest()
    const names = frames.map(({ event }) => event)
    expect(names).not.toContain('approved')
    const named = frames.filter(({ event }) => /delta|answer|thinking/.test(event))
    expect(named.length).toBeGreaterThan(0)
    for (const { data } of named) expect(data.message_id).toBe(id)
    expect(names.at(-1)).toBe('interaction_complete')
    const [run] = (await server.chat('c')).interactions
    const again = await (await server.join('c', run.id, frames[0]!.id)).rest()
    expect(again.at(-1)?.event).toBe('interaction_complete')
  })

  test('is one string of the AG-UI events', async () => {
    const server = await serve({ agents: [agentOf(id)] })
    const events = await agui(server.url, { messages: [{ id: 'm', role: 'user', content: 'hi' }] })
    const text = events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    expect(text.map(({ delta }) => delta).join('')).toBe('Hello.')
    for (const { messageId } of text) expect(messageId).toBe(id)
    expect(events.at(-1).type).toBe('RUN_FINISHED')
  })

  test('is one string of the workflow events and the GraphQL response', async () => {
    const server = await serve({ agents: [agentOf(id)] })
    const body = { messages: [{ role: 'user', content: 'hi' }], session_id: 's' }
    const frames = await (await server.open('POST', '/copilotkit/chat', body)).rest()
    const text = frames.filter(({ data }) => data.message_id !== undefined)
    for (const { data } of text) expect(data.message_id).toBe(id)
    expect(frames.map(({ event }) => event)).not.toContain('approved')
    const { messages } = await generate(server.url, 'm', 'hi', { threadId: 'g' })
    expect(messages.at(-1).content.join('')).toBe('Hello.')
  })
})
