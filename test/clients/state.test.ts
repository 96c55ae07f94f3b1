import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { serve } from '../support/serve.ts'
import { types } from './judge.ts'
import { clients, httpClient } from './support.ts'

/** What does not change, and is not told again. */
const about = 'all that it keeps besides, so that the whole is longer than what changes. '.repeat(5)

/** Counts in its state what it was asked, in two steps, and says the number. */
const counter: Agent = {
  name: 'counter',
  async *run(ctx) {
    const { count = 0, items = [] } = (ctx.state() ?? {}) as { count?: number; items?: string[] }
    yield { type: 'state', value: { about, count: count + 1, items } }
    const more = [...items, `item ${count + 1}`]
    yield { type: 'state', value: { about, count: count + 1, items: more } }
    const parts = [{ type: 'text' as const, text: `That is ${count + 1}.` }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
}

describe.for(clients)('$name', ({ open }) => {
  test('is told the state whole, then what changed, and ends with what the agent has', async () => {
    const server = await serve({ agents: [counter] })
    const client = await open(server.url, 't')
    const { events } = await client.say('count')
    expect(types(events).filter((type) => type.startsWith('STATE'))).toEqual([
      ...['STATE_SNAPSHOT', 'STATE_DELTA'],
    ])
    expect(client.agent.state).toEqual({ about, count: 1, items: ['item 1'] })
    await client.say('count')
    expect(client.agent.state).toEqual({ about, count: 2, items: ['item 1', 'item 2'] })
    expect(client.shown().at(-1)).toBe('assistant: That is 2.')
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.agent.state).toEqual(client.agent.state)
    expect(client.errors).toEqual([])
  })

  test('sends its own copy of the state, and the agent works on that', async () => {
    const server = await serve({ agents: [counter] })
    const client = await open(server.url, 't')
    client.agent.setState({ about, count: 41, items: [] })
    await client.say('count')
    expect(client.agent.state).toEqual({ about, count: 42, items: ['item 42'] })
    client.agent.setState({ about, count: 0, items: [] })
    await client.say('again')
    expect(client.agent.state).toEqual({ about, count: 1, items: ['item 1'] })
    const answer = await server.request('GET', '/copilotkit/threads/t/state')
    expect(await answer.json()).toEqual({ state: { about, count: 1, items: ['item 1'] } })
  })

  test('with an empty copy changes nothing: a page that just loaded knows no state', async () => {
    const server = await serve({ agents: [counter] })
    const client = await open(server.url, 't')
    await client.say('count')
    const page = await open(server.url, 't')
    await page.say('count on')
    expect(page.agent.state).toEqual({ about, count: 2, items: ['item 1', 'item 2'] })
  })
})

test('a state that was not changed is not written again', async () => {
  const server = await serve({ agents: [counter] })
  const client = httpClient(server.url, 't')
  await client.say('count')
  await client.say('count')
  const written = (await server.journal('t')).filter(({ kind }) => kind === 'state.patched')
  expect(written).toHaveLength(4)
})
