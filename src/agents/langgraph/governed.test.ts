import { LLMock } from '@copilotkit/aimock'
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ChatOpenAI } from '@langchain/openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { transcript } from '../../../test/support/chats.ts'
import { converse } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { langgraph } from './agent.ts'
import { governed } from './governed.ts'
import { offeredTools, toolNode } from './tools.ts'

const mock = new LLMock({ port: 0, chunkSize: 8 })
beforeAll(async () => {
  const args = { text: 'tea' }
  mock.on(
    { userMessage: 'use', hasToolResult: false },
    {
      content: 'I echo. ',
      toolCalls: [{ id: 'c1', name: 'echo', arguments: args }],
    },
  )
  mock.on({ userMessage: 'use', hasToolResult: true }, { content: 'It said tea.' })
  mock.on(
    { userMessage: 'limited', sequenceIndex: 0 },
    {
      error: { message: 'slow down', type: 'rate_limit_error' },
      status: 429,
      retryAfter: 0.01,
    },
  )
  mock.on({ userMessage: 'limited' }, { content: 'second try' })
  mock.on(
    { userMessage: 'shape' },
    {
      toolCalls: [{ id: 's1', name: 'extract', arguments: { city: 'Paris' } }],
    },
  )
  await mock.start()
})
afterAll(() => mock.stop())

const openai = () => {
  const configuration = { baseURL: `${mock.url}/v1` }
  return governed(new ChatOpenAI({ model: 'gpt-4o', apiKey: 'k', configuration }))
}

describe('a real chat model, governed', () => {
  test('with tools of the server: bound, called by the policy, heard', async () => {
    const model = openai()
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('model', async ({ messages }) => {
        const bound = model.bindTools(offeredTools({ server: true }))
        return { messages: [await bound.invoke(messages)] }
      })
      .addNode('tools', toolNode)
      .addEdge(START, 'model')
      .addConditionalEdges('model', ({ messages }) =>
        (Object(messages.at(-1)).tool_calls ?? []).length > 0 ? 'tools' : '__end__',
      )
      .addEdge('tools', 'model')
    const echo = {
      ...{ name: 'echo', description: 'Echoes', schema: z.object({ text: z.string() }) },
      run: async (input: unknown) => JSON.stringify(input),
    }
    const agents = [{ agent: langgraph(graph, { name: 'graph' }), tools: [echo] }]
    const server = await serve({ agents })
    const { frames, asked, status } = await converse(server, 'c', 'use it', () => ({
      approved: true,
    }))
    expect(frames.filter(({ event }) => event === 'error')).toEqual([])
    expect(status).toBe('COMPLETED')
    expect(asked.map(({ tool_name }) => tool_name)).toEqual(['echo'])
    expect([...transcript(frames).values()].at(-1)).toBe('It said tea.')
    const journal = await server.journal('c')
    const intents = journal.filter((one) => one.kind === 'effect.intended')
    expect(intents.map(({ body }) => body.name)).toEqual(['openai/gpt-4o', 'echo', 'openai/gpt-4o'])
  })

  test('is retried by our table, and its structured output is governed too', async () => {
    const seen: unknown[] = []
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('node', async ({ messages }) => {
        if (messages.at(-1)!.text === 'limited')
          return { messages: [await openai().invoke(messages)] }
        const schema = z.object({ city: z.string() })
        const shaped = openai().withStructuredOutput(schema, {
          name: 'extract',
          method: 'functionCalling',
        })
        seen.push(await shaped.invoke(messages))
        return {}
      })
      .addEdge(START, 'node')
    const server = await serve({
      agents: [langgraph(graph, { name: 'graph' })],
      retry: { first: 5 },
    })
    const limited = await (await server.start('a', 'limited')).rest()
    expect(limited.some(({ event }) => event === 'retrying')).toBe(true)
    expect([...transcript(limited).values()]).toEqual(['second try'])
    const shaped = await (await server.start('b', 'shape')).rest()
    expect(shaped.at(-1)!.data.status).toBe('COMPLETED')
    expect(seen).toEqual([{ city: 'Paris' }])
    const intents = (await server.journal('b')).filter((one) => one.kind === 'effect.intended')
    expect(intents.length).toBe(1)
  })
})
