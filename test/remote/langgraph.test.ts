import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type LangGraphPlatformOptions,
  langGraphPlatform,
} from '../../src/agents/remote/langgraph-platform/agents.ts'
import { serve } from '../support/serve.ts'
import { find, names } from '../support/tools.ts'
import { wireTo } from './cut.ts'
import { type LangGraphServer, startLangGraph } from './langgraph.ts'
import { ask, interactionOf, remote } from './support.ts'

let far: LangGraphServer
beforeAll(async () => {
  far = await startLangGraph()
}, 120_000)
afterAll(() => far?.close())

const served = (more: Partial<LangGraphPlatformOptions> = {}) =>
  serve({ agents: langGraphPlatform({ deploymentUrl: far.url, agents: ['clerk'], ...more }) })

describe('a graph on a real LangGraph server', () => {
  test('streams its tokens, and goes on with its own thread', async () => {
    const server = await served()
    const frames = await ask(server, 'c', 'hello there')
    const deltas = frames.filter(({ event }) => event === 'answer_delta')
    expect(deltas.length).toBeGreaterThan(5)
    expect(find(frames, 'answer').content).toBe('You said 1: hello there')
    const more = await ask(server, 'c', 'and again')
    expect(find(more, 'answer').content).toBe('You said 2: and again')
    const { state } = await server.server.runtime.thread('c')
    expect(state.states.get('clerk')).toEqual({ topic: 'and again', notes: [] })
    expect(state.governor.total, 'two legs, and a model call in each').toBe(4)
    const events = (await server.journal('c')).filter(({ kind }) => kind === 'event')
    const told = events.map(({ body }) => (body as { name: string }).name)
    expect(told).toContain('mood')
    expect(told).toContain('step.started')
    expect(told).toContain('remote.calls')
  })

  test('only the agents that are named are there', async () => {
    const server = await served()
    const agents = server.server.runtime.agents().map(({ agent }) => agent.name)
    expect(agents).toEqual(['clerk'])
  })

  test('its own tool calls and results are shown', async () => {
    const server = await served()
    const frames = await ask(server, 'c', 'use it')
    expect(find(frames, 'tool_call')).toMatchObject({
      tool_name: 'peek',
      tool_input: '{"at":"sea"}',
    })
    expect(find(frames, 'tool_result').tool_output).toBe('waves')
    expect(find(frames, 'answer').content).toBe('You said 1: use it')
  })

  test('an interrupt is an ask here, and the answer goes back as its resume', async () => {
    const server = await served()
    const stream = await server.start('c', 'ask the boss')
    const { approval_id, card, kind } = find(
      await stream.until('approval_required'),
      'approval_required',
    )
    expect([kind, card.title]).toEqual(['input', 'May I ask the boss?'])
    const answer = { approval_id, answer: { colour: 'red' } }
    await server.approve('c', interactionOf(stream.response), answer)
    const frames = await stream.rest()
    expect(find(frames, 'answer').content).toBe('You answered {"colour":"red"}.')
    expect(far.marks().filter((one) => one === 'confirmed {"colour":"red"}')).toHaveLength(1)
  })

  test('two branches ask at once, and each hears its own answer', async () => {
    const server = await served()
    const stream = await server.start('c', 'two')
    await stream.until('approval_required')
    await stream.until('approval_required')
    const { state } = await server.server.runtime.thread('c')
    for (const { ask: one } of state.asks.values()) {
      const answer = { approval_id: one.askId, answer: `yes to ${one.title}` }
      await server.approve('c', interactionOf(stream.response), answer)
    }
    const frames = await stream.rest()
    expect(find(frames, 'answer').content).toBe('first: "yes to first" second: "yes to second"')
  })

  test('a tool of the page ends the leg, and its result goes on there', async () => {
    const server = await served()
    const { httpClient } = await import('../clients/support.ts')
    const client = httpClient(server.url, 't')
    const tools = [{ name: 'pick_colour', description: 'Asks', parameters: { type: 'object' } }]
    await client.say('page', { tools })
    const call = client.agent.messages.at(-1) as { toolCalls: { id: string }[] }
    const [{ id: toolCallId }] = call.toolCalls as [{ id: string }]
    client.agent.addMessage({ id: 'res', role: 'tool', toolCallId, content: 'blue' })
    await client.run({ tools })
    expect(client.shown().at(-1)).toContain('The page says blue.')
  })

  test('an edit forks from the checkpoint before it, with what the graph knew then', async () => {
    const server = await served()
    await ask(server, 'c', 'one')
    const stream = await server.start('c', '1.5')
    await stream.rest()
    await ask(server, 'c', 'three')
    const edited = await server.edit('c', interactionOf(stream.response), 'other')
    expect(find(await edited.rest(), 'answer').content).toBe('You said 2: other')
    const after = await ask(server, 'c', 'next')
    expect(find(after, 'answer').content).toBe('You said 3: next')
  })

  test('what it throws is a typed error, and the chat goes on', async () => {
    const server = await served()
    const frames = await ask(server, 'c', 'fail')
    expect(find(frames, 'error')).toMatchObject({
      code: 'remote_failed',
      error: expect.stringContaining('The graph is broken.'),
    })
    const more = await ask(server, 'c', 'still there')
    expect(find(more, 'answer').content).toMatch(/^You said \d: still there$/)
  })

  test('cancel reaches it', async () => {
    const server = await served()
    const before = far.marks().filter((one) => one === 'slow began').length
    const stream = await server.start('c', 'slow 3000')
    await expect
      .poll(() => far.marks().filter((one) => one === 'slow began').length, { timeout: 10_000 })
      .toBe(before + 1)
    await server.cancel('c', interactionOf(stream.response))
    expect(names(await stream.rest())).toContain('cancelled')
    const { Client } = await import('@langchain/langgraph-sdk')
    const client = new Client({ apiUrl: far.url, apiKey: null })
    const threads = await client.threads.search({
      limit: 1,
      sortBy: 'updated_at',
      sortOrder: 'desc',
    })
    const status = async () => (await client.runs.list(threads[0]!.thread_id))[0]?.status
    await expect.poll(status, { timeout: 10_000 }).not.toBe('running')
    const more = await ask(server, 'c', 'hello')
    expect(find(more, 'answer').content).toContain('hello')
  })

  test('a connection that is lost in the middle is no failure: the run is joined again', async () => {
    const wire = await wireTo(far.url)
    const server = await served({ deploymentUrl: wire.url })
    const before = far.marks().filter((one) => one === 'slow began').length
    const began = () => far.marks().filter((one) => one === 'slow began').length
    const stream = await server.start('c', 'slow 2500')
    await expect.poll(began, { timeout: 20_000 }).toBe(before + 1)
    wire.cut()
    const frames = await stream.rest()
    expect(find(frames, 'answer').content).toBe('Slowly done.')
    expect(began()).toBe(before + 1)
  }, 120_000)

  test('a connection that is lost before anything began is tried again', async () => {
    const wire = await wireTo(far.url)
    const server = await served({ deploymentUrl: wire.url })
    wire.cutNext(1)
    const frames = await ask(server, 'c', 'hello again')
    expect(names(frames)).toContain('retrying')
    expect(find(frames, 'answer').content).toBe('You said 1: hello again')
    wire.cutNext(3)
    expect(find(await ask(server, 'd', 'hi'), 'error').code).toBe('remote_unavailable')
  })

  test('only the key of the configuration is sent, and none of the environment', async () => {
    const door = await remote((_, response) => {
      response.writeHead(401).end('No.')
    })
    const keyed = { deploymentUrl: door.url, langsmithApiKey: 'lsv2-ours' }
    const names = ['LANGGRAPH_API_KEY', 'LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY']
    for (const name of names) process.env[name] = 'of-the-environment'
    onTestFinished(() => {
      for (const name of names) delete process.env[name]
    })
    const server = await served(keyed)
    expect(find(await ask(server, 'c', 'hi'), 'error').code).toBe('remote_refused')
    const bare = await served({ deploymentUrl: door.url })
    await ask(bare, 'c', 'hi')
    expect(door.asked.map(({ headers }) => headers['x-api-key'])).toEqual(['lsv2-ours', undefined])
  })
})
