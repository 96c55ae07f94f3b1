import { AIMessage } from '@langchain/core/messages'
import { Annotation, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { describe, expect, test } from 'vitest'
import { agui } from '../../../test/support/agui.ts'
import { converse, sayingModel } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { langgraph } from './agent.ts'
import { governed } from './governed.ts'

const Count = Annotation.Root({ ...MessagesAnnotation.spec, n: Annotation<number> })

describe('limits of a graph', () => {
  test('steps are counted over the whole run', async () => {
    let runs = 0
    const graph = new StateGraph(Count)
      .addNode('round', ({ n = 0 }) => {
        runs++
        return { n: n + 1 }
      })
      .addEdge(START, 'round')
      .addConditionalEdges('round', () => 'round')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph', maxIterations: 4 })] })
    const frames = await (await server.start('c', 'go')).rest()
    expect(frames.find(({ event }) => event === 'error')!.data.code).toBe('too_many_steps')
    expect(runs).toBeLessThanOrEqual(5)
  })

  test('a leg that takes too long fails, and says so', async () => {
    const graph = new StateGraph(Count)
      .addNode('slow', async () => await new Promise<never>(() => {}))
      .addEdge(START, 'slow')
    const options = { name: 'graph', timeoutSeconds: 0.2 }
    const server = await serve({ agents: [langgraph(graph, options)] })
    const frames = await (await server.start('c', 'go')).rest()
    expect(frames.find(({ event }) => event === 'error')!.data.code).toBe('agent_timeout')
  })

  test('a graph that throws is run again from its last checkpoint, as often as it says', async () => {
    let first = 0
    let second = 0
    const model = sayingModel(() => 'once')
    const graph = new StateGraph(Count)
      .addNode('first', async ({ messages }) => {
        first++
        return { messages: [await governed(model).invoke(messages)] }
      })
      .addNode('second', async ({ messages }) => {
        await governed(model).invoke(messages)
        if (++second < 3) throw new Error('a bug')
        return { messages: [new AIMessage('There.')] }
      })
      .addEdge(START, 'first')
      .addEdge('first', 'second')
    const agents = [langgraph(graph, { name: 'graph', retry: { maxRetries: 3 } })]
    const server = await serve({ agents, retry: { first: 5 } })
    const frames = await (await server.start('c', 'go')).rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect([first, second]).toEqual([1, 3])
    expect(model.asked.length, 'recorded answers are given again, not asked for').toBe(2)
    const once = await serve({
      agents: [langgraph(graph, { name: 'graph', retry: { maxRetries: 1 } })],
    })
    second = 0
    expect((await (await once.start('c', 'go')).rest()).at(-1)!.data.status).toBe('FAILED')
    expect(second).toBe(1)
  })

  test('the governor stops before the call, inside of the node, and the very call is made after', async () => {
    const model = sayingModel((_messages, n) => `answer ${n}`)
    let runs = 0
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('node', async ({ messages }) => {
        runs++
        const first = await governed(model).invoke(messages)
        const second = await governed(model).invoke([...messages, first])
        return { messages: [first, second] }
      })
      .addEdge(START, 'node')
    const env = { HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: '1' }
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] }, { env })
    const stream = await server.start('c', 'go')
    await stream.until('approval_required')
    expect(model.asked.length).toBe(1)
    const id = stream.response.headers.get('x-interaction-id')!
    const { approvals } = (await server.chat('c')).interactions[0]
    const { approval_id } = approvals[0]
    const said = await server.approve('c', id, { approval_id, approved: true, newLimit: 5 })
    expect(said.status).toBe(200)
    const frames = await stream.rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(model.asked.length).toBe(2)
    expect(runs).toBe(2)
    const journal = await server.journal('c')
    expect(journal.filter(({ kind }) => kind === 'effect.intended').length).toBe(2)
  })

  test('requests may set what is allowed, and nothing else', async () => {
    const Context = Annotation.Root({ tone: Annotation<string> })
    let seen: unknown
    const graph = new StateGraph(Count, Context)
      .addNode('node', (_state, config) => {
        const { user_id, secret, fixed } = Object(config.configurable)
        seen = { user_id, secret, fixed, context: config.context }
        return {}
      })
      .addEdge(START, 'node')
    const configurable = { allow: ['user_id', 'fixed'], values: { fixed: 1 } }
    const options = { name: 'graph', configurable, context: { allow: ['tone'] } }
    const server = await serve({ agents: [langgraph(graph, options)] })
    const config = { configurable: { user_id: 'ann', secret: 'x' } }
    const forwardedProps = { config, tone: 'dry', fixed: 2, thread_id: 'other' }
    await agui(server.url, { messages: [{ id: 'u', role: 'user', content: 'go' }], forwardedProps })
    expect(seen).toEqual({ user_id: 'ann', secret: undefined, fixed: 1, context: { tone: 'dry' } })
  })

  test('a node that LangGraph itself runs again gets the answers it had', async () => {
    const model = sayingModel(() => 'once')
    let runs = 0
    const graph = new StateGraph(MessagesAnnotation)
      .addNode(
        'node',
        async ({ messages }) => {
          const answer = await governed(model).invoke(messages)
          if (++runs < 2) throw new Error('a hiccup')
          return { messages: [answer] }
        },
        { retryPolicy: { initialInterval: 1, jitter: false, logWarning: false } },
      )
      .addEdge(START, 'node')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { status } = await converse(server, 'c', 'go', () => undefined)
    expect(status).toBe('COMPLETED')
    expect(runs).toBe(2)
    expect(model.asked.length).toBe(1)
  })
})
