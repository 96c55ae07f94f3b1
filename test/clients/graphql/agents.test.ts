import { describe, expect, test } from 'vitest'
import type { Agent } from '../../../src/core/agent.ts'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { serve } from '../../support/serve.ts'
import { story } from '../../support/story.ts'
import {
  dataOf,
  generate,
  openPage,
  type Seen,
  succeeded,
  textInput,
  userMessage,
} from './support.ts'

/** Counts in its state, in two steps, and says the number. */
const counter: Agent = {
  name: 'counter',
  description: 'Counts.',
  async *run(ctx) {
    const { count = 0 } = (ctx.state() ?? {}) as { count?: number }
    yield { type: 'step', name: 'count', done: false }
    yield { type: 'state', value: { count: count + 1 } }
    yield { type: 'step', name: 'count', done: true }
    yield { type: 'step', name: 'tell', done: false }
    const parts = [{ type: 'text' as const, text: `That is ${count + 1}.` }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
    yield { type: 'state', value: { count: count + 1, told: true } }
    yield { type: 'step', name: 'tell', done: true }
  },
}

const says = (name: string): Agent => ({
  name,
  description: `Is ${name}.`,
  async *run(ctx) {
    const parts = [{ type: 'text' as const, text: `I am ${name}.` }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
})

const statesOf = ({ messages }: Seen): Seen[] =>
  messages.filter((one: Seen) => one.__typename === 'AgentStateMessageOutput')

describe('an agent with a state', () => {
  test('tells it in messages of their own, each with the whole', async () => {
    const server = await serve({ agents: [says('first'), counter] })
    const page = openPage(server.url, { agent: 'counter' })
    const heard = await page.say('count')
    succeeded(heard)
    const states = statesOf(heard.last)
    expect(states.length).toBeGreaterThanOrEqual(3)
    for (const one of states)
      expect(one).toMatchObject({
        ...{ agentName: 'counter', threadId: 't', role: 'assistant' },
        ...{ runId: expect.stringMatching(/\S/), status: { code: 'Success' } },
      })
    const told = states.map(({ nodeName, active, state }) => [nodeName, active, JSON.parse(state)])
    expect(told).toContainEqual(['count', true, { count: 1 }])
    expect(told).toContainEqual(['tell', true, { count: 1, told: true }])
    // The last one decides on the page: the work is over, and the state is what the agent has.
    expect(states.at(-1)).toMatchObject({ active: false, nodeName: 'tell' })
    expect(page.states.counter).toEqual({ count: 1, told: true })
    expect(page.shown()).toEqual(['user: count', 'assistant: That is 1.'])
    // No state goes back in time: the page would flicker.
    const counts = told.map(([, , state]) => (state as { count?: number }).count)
    expect(counts.filter((one) => one !== 1 && one !== undefined)).toEqual([])
    expect(new Set(states.map(({ id }) => id)).size).toBe(states.length)
  })

  test('goes on from what it has, request after request', async () => {
    const server = await serve({ agents: [says('first'), counter] })
    const page = openPage(server.url, { agent: 'counter' })
    await page.say('count')
    await page.say('count')
    const third = await page.say('count')
    expect(page.states.counter).toEqual({ count: 3, told: true })
    expect(page.shown().at(-1)).toBe('assistant: That is 3.')
    // Never less than what the page has shown already.
    for (const { state } of statesOf(third.last))
      expect(JSON.parse(state).count ?? 2).toBeGreaterThanOrEqual(2)
  })

  test('works on the page’s copy when it has another', async () => {
    const server = await serve({ agents: [counter] })
    const page = openPage(server.url, { agent: 'counter' })
    page.states.counter = { count: 41 }
    succeeded(await page.say('count'))
    expect(page.states.counter).toEqual({ count: 42, told: true })
    page.states.counter = { count: 0 }
    succeeded(await page.say('count'))
    expect(page.states.counter).toEqual({ count: 1, told: true })
  })

  test('is loaded with its state', async () => {
    const server = await serve({ agents: [counter] })
    await openPage(server.url, { agent: 'counter' }).say('count')
    const page = openPage(server.url, { agent: 'counter' })
    expect(await page.load()).toMatchObject({ exists: true, state: { count: 1, told: true } })
    expect(page.shown()).toEqual(['user: count', 'assistant: That is 1.'])
    await page.say('count')
    expect(page.states.counter).toEqual({ count: 2, told: true })
  })

  test('never tells an older state after a newer one', async () => {
    const quick: Agent = {
      name: 'quick',
      async *run() {
        yield { type: 'step', name: 'run', done: false }
        for (let n = 1; n <= 5; n++) yield { type: 'state', value: { n } }
        yield { type: 'step', name: 'run', done: true }
      },
    }
    const server = await serve({ agents: [quick] })
    const page = openPage(server.url, { agent: 'quick' })
    const told = statesOf((await page.say('run')).last).map(({ state }) => JSON.parse(state).n ?? 0)
    expect(told).toEqual(told.toSorted((a: number, b: number) => a - b))
    expect(told.at(-1)).toBe(5)
  })

  test('says things in the order in which the agent does', async () => {
    const talker: Agent = {
      name: 'talker',
      async *run(ctx) {
        for (const words of ['One.', 'Two.', 'Three.']) {
          const id = ctx.newId('msg')
          if (words !== 'One.') yield { type: 'piece', piece: { kind: 'text', id, text: words } }
          const parts = [{ type: 'text' as const, text: words }]
          yield { type: 'message', message: { id, role: 'assistant', parts } }
        }
      },
    }
    const server = await serve({ agents: [talker] })
    const page = openPage(server.url)
    succeeded(await page.say('talk'))
    expect(page.shown()).toEqual([
      ...['user: talk', 'assistant: One.', 'assistant: Two.', 'assistant: Three.'],
    ])
  })

  test('is seen at work: a step is on the page before it ends', async () => {
    const stands = gate()
    const slow: Agent = {
      name: 'slow',
      async *run(ctx) {
        yield { type: 'step', name: 'dig', done: false }
        yield { type: 'state', value: { depth: 1 } }
        await stands.pass(ctx.signal)
        yield { type: 'state', value: { depth: 2 } }
        yield { type: 'step', name: 'dig', done: true }
      },
    }
    const server = await serve({ agents: [slow] })
    const page = openPage(server.url, { agent: 'slow' })
    page.add(userMessage('dig'))
    const watching = page.begin()
    await stands.reached
    const deep = () => statesOf(watching.seen.at(-1) ?? { messages: [] }).at(-1)
    while (deep()?.state !== '{"depth":1}') await new Promise((resolve) => setImmediate(resolve))
    expect(deep()).toMatchObject({ nodeName: 'dig', active: true, running: true })
    stands.open()
    succeeded(await watching.done)
    expect(page.states.slow).toEqual({ depth: 2 })
  })
})

describe('agents', () => {
  test('are all listed, each with words', async () => {
    const server = await serve({ agents: [says('first'), counter] })
    const { data, error } = await openPage(server.url).agents()
    expect(error).toBeUndefined()
    const { agents } = data.availableAgents as { agents: Seen[] }
    expect(agents.map(({ name }) => name)).toEqual(expect.arrayContaining(['first', 'counter']))
    for (const one of agents)
      expect(one).toMatchObject({
        ...{ id: expect.stringMatching(/\S/), name: expect.any(String) },
        description: expect.any(String),
      })
    const names = new Set(agents.map(({ name }) => name))
    expect(names.has('default')).toBe(true) // a page that names it must not be warned
  })

  test('are reached by the session, and the first one without', async () => {
    const server = await serve({ agents: [says('first'), says('second')] })
    const reach = async (agent: string | undefined, threadId: string) => {
      const page = openPage(server.url, { threadId, ...(agent && { agent }) })
      succeeded(await page.say('who?'))
      return page.shown().at(-1)
    }
    expect(await reach(undefined, 'a')).toBe('assistant: I am first.')
    expect(await reach('default', 'b')).toBe('assistant: I am first.')
    expect(await reach('first', 'c')).toBe('assistant: I am first.')
    expect(await reach('second', 'd')).toBe('assistant: I am second.')
  })

  test('that nobody knows are an error that React can show, and nothing else breaks', async () => {
    const server = await serve({ agents: [says('first'), says('second')] })
    const page = openPage(server.url, { agent: 'nobody' })
    const { error } = await page.say('who?')
    expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'AGENT_NOT_FOUND' } }] })
    expect(error!.message).toContain('nobody')
    expect(page.errors).toHaveLength(1)
    expect((await page.load('nobody')).error).toMatchObject({
      graphQLErrors: [{ extensions: { code: 'AGENT_NOT_FOUND' } }],
    })
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
    const other = openPage(server.url, { agent: 'second' })
    succeeded(await other.say('who?'))
    expect(other.shown().at(-1)).toBe('assistant: I am second.')
  })

  test('have no state of a thread that was never there', async () => {
    const server = await serve({ agents: [counter] })
    const page = openPage(server.url, { threadId: 'never', agent: 'counter' })
    expect(await page.load()).toMatchObject({ error: undefined, exists: false, state: {} })
    expect(page.shown()).toEqual([])
    expect((await server.request('GET', '/chats/never')).status).toBe(404) // looking makes nothing
  })

  test('the thread of the request wins over the one of the session', async () => {
    const server = await story([[text('Hi.')], [text('Again.')]])
    const agentSession = { agentName: 'default', threadId: 'other', nodeName: 'somewhere' }
    const first = await generate(server.url, dataOf([textInput('hi', 'u1')], { agentSession }))
    expect(first.response.threadId).toBe('t')
    const { response } = await generate(server.url, {
      ...dataOf([textInput('hi', 'u2')], { agentSession }),
      threadId: undefined,
    })
    expect(response.threadId).toBe('other')
    expect((await server.journal('other')).length).toBeGreaterThan(0)
  })

  test('take nothing from agentState and from messages of states', async () => {
    const model = scriptedModel([[text('Hi.')]])
    const server = await serve({ model, builtIns: false })
    const state = { agentName: 'default', state: '{"a":1}', config: '{"configurable":{}}' }
    const message = {
      ...{ id: 's1', createdAt: '2025-01-01T00:00:00.000Z' },
      agentStateMessage: {
        ...{ threadId: 't', agentName: 'default', nodeName: '', runId: 'r', role: 'assistant' },
        ...{ state: '{}', running: true, active: false },
      },
    }
    const more = { agentState: state, agentStates: [state] }
    const data = dataOf([textInput('hi', 'u1'), message, { id: 'x', createdAt: at }], more)
    const { response } = await generate(server.url, data)
    expect(response.status.code).toBe('Success')
    expect(model.requests[0]!.messages).toHaveLength(1)
  })
})

const at = '2025-01-01T00:00:00.000Z'
