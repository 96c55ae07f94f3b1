import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph'
import { expect, test } from 'vitest'
import { langgraph } from '../../src/agents/langgraph/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { converse, stateOf } from '../support/graphs.ts'
import { serve } from '../support/serve.ts'

const list = Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] })

test('one graph in two steps at once: each has its own state, and its own question answered', async () => {
  let before = 0
  const graph = new StateGraph(Annotation.Root({ words: list }))
    .addNode('first', () => ({ words: [`first ${++before > 0}`] }))
    .addNode('ask', () => ({ words: [String(interrupt({ question: 'which?' }))] }))
    .addEdge(START, 'first')
    .addEdge('first', 'ask')
  const agent = langgraph(graph, { name: 'graph' })
  const parallel = [
    { agent: 'graph', outputKey: 'a' },
    { agent: 'graph', outputKey: 'b' },
  ]
  const flow = workflow({ name: 'flow', steps: [{ parallel }] })
  const server = await serve({ agents: [flow, agent] })
  let n = 0
  const { status, asked } = await converse(server, 'c', 'go', () => ({ answer: `answer ${++n}` }))
  expect(status).toBe('COMPLETED')
  expect(asked.length).toBe(2)
  expect(before, 'a node that was done is not run again').toBe(2)
  const { a, b } = (await stateOf(server, 'c')) as Record<'a' | 'b', { words: string[] }>
  expect([a.words, b.words].map((words) => words[1]).sort()).toEqual(['answer 1', 'answer 2'])
  expect(a.words[0]).toBe('first true')
})

test('a workflow is a step of another', async () => {
  const leaf = {
    name: 'leaf',
    async *run() {
      yield { type: 'event' as const, name: 'leaf', value: {} }
    },
  }
  const inner = workflow({
    name: 'inner',
    steps: [{ agent: leaf, outputKey: 'x', output: () => 7 }],
  })
  const flow = workflow({ name: 'flow', steps: [{ agent: 'inner', outputKey: 'in' }] })
  const server = await serve({ agents: [flow, inner] })
  const { status } = await converse(server, 'c', 'go', () => undefined)
  expect(status).toBe('COMPLETED')
  const journal = await server.journal('c')
  const told = journal.flatMap((one) => (one.kind === 'event' ? [one.body] : []))
  const ends = told.filter(({ name }) => name === 'workflow.completed')
  expect(ends.length, 'the end of a part is not the end of the run').toBe(1)
  const moves = told.filter(({ name }) => name === 'workflow.agent')
  const paths = moves.map(({ value }) => (value as { path: string }).path)
  expect(paths).toEqual(['in', 'in/x', 'in/x', 'in'])
  const session = await (await server.request('GET', '/copilotkit/status?session_id=c')).json()
  expect(session).toMatchObject({
    agents: {
      flow: { status: 'completed' },
      inner: { status: 'completed', outputs: [{ results: { x: 7 } }] },
      leaf: { status: 'completed', outputs: [7] },
    },
    shared_context: { leaf_output: 7 },
  })
  const last = journal.findLast((one) => one.kind === 'state.patched' && one.body.agent === 'flow')
  expect(last).toMatchObject({
    body: { value: { in: { status: 'completed', results: { x: 7 } } } },
  })
})
