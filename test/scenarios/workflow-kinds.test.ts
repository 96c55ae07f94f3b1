import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph'
import { expect, test } from 'vitest'
import { langgraph } from '../../src/agents/langgraph/agent.ts'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import type { Agent } from '../../src/core/agent.ts'
import { RuntimeError } from '../../src/core/errors.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { converse, stateOf } from '../support/graphs.ts'
import { serve } from '../support/serve.ts'
import { tools } from '../support/tools.ts'

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

test('questions that ended with a run that failed are asked again when it is taken up again', async () => {
  const box = tools()
  const payer = toolLoop({ name: 'payer' })
  let failures = 0
  const asker: Agent = {
    name: 'asker',
    async *run(ctx) {
      const { state } = await ctx.ask({ key: 'q', kind: 'approval', title: 'Well?' })
      yield { type: 'event', name: 'heard', value: state }
    },
  }
  const failing: Agent = {
    name: 'failing',
    async *run({ clock, signal }) {
      await clock.sleep(200, signal) // the others ask meanwhile
      if (failures++ < 2) throw new RuntimeError('agent_failed', 'no')
      yield { type: 'event', name: 'fine', value: {} }
    },
  }
  const parallel = [payer, asker, failing].map((agent) => ({ agent, outputKey: agent.name }))
  const flow = workflow({ name: 'flow', steps: [{ parallel }] })
  const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })], [text('Paid.')]])
  const server = await serve({ model, agents: [flow], tools: box.all, builtIns: false })
  const first = await server.start('c', 'go')
  const id = first.response.headers.get('x-interaction-id')!
  expect((await first.rest()).at(-1)!.data.status).toBe('FAILED')
  const retry = () => server.open('POST', `/chats/c/interactions/${id}/retry`)
  expect((await (await retry()).rest()).at(-1)!.data.status).toBe('FAILED')
  const third = await retry()
  for (const _ of ['payer', 'asker']) {
    const { approval_id } = (await third.until('approval_required')).at(-1)!.data
    const answer = { approval_id, approved: true }
    expect((await server.approve('c', id, answer)).status).toBe(200)
  }
  expect((await third.rest()).at(-1)!.data.status).toBe('COMPLETED')
  expect(box.sent).toEqual([{ to: 'ann', amount: 5 }])
  const journal = await server.journal('c')
  const of = (kind: string) => journal.filter((one) => one.kind === kind)
  expect(of('ask.raised')).toHaveLength(6)
  const answers = of('ask.answered').map(({ body }) => (body as { state: string }).state)
  expect(answers).toEqual([...Array(4).fill('cancelled'), 'approved', 'approved'])
  const heard = journal.flatMap((one) => (one.kind === 'event' ? [one.body] : []))
  expect(heard.find(({ name }) => name === 'heard')?.value).toBe('approved')
})
