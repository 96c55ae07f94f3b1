import { Annotation, Command, interrupt, Send, START, StateGraph } from '@langchain/langgraph'
import { describe, expect, test } from 'vitest'
import { converse, stateOf } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { temporaryDirectory } from '../../../test/support/server.ts'
import { langgraph } from './agent.ts'

const list = Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] })
const State = Annotation.Root({ answers: list })
type Update = { answers: string[] }

const asks = (question: string) => (): Update => ({ answers: [String(interrupt({ question }))] })

describe('interrupts', () => {
  test('of several branches are asked together, and each gets its own answer', async () => {
    let done = 0
    const graph = new StateGraph(State)
      .addNode('red', asks('red?'))
      .addNode('blue', asks('blue?'))
      .addNode('plain', () => {
        done++
        return { answers: ['plain'] }
      })
      .addEdge(START, 'red')
      .addEdge(START, 'blue')
      .addEdge(START, 'plain')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { status, asked } = await converse(server, 'c', 'go', ({ card }) => {
      return { answer: card.title === 'red?' ? 'rose' : 'sky' }
    })
    expect(asked.map(({ card }) => card.title).sort()).toEqual(['blue?', 'red?'])
    expect(status).toBe('COMPLETED')
    const { answers } = (await stateOf(server, 'c')) as Update
    expect(answers.sort()).toEqual(['plain', 'rose', 'sky'])
    expect(done, 'a branch that was done is not run again').toBe(1)
    const raised = (await server.journal('c')).filter(({ kind }) => kind === 'ask.raised')
    expect(new Set(raised.map(({ tx }) => tx)).size, 'one transition').toBe(1)
  })

  test('of one node come one after the other, also when they ask the same', async () => {
    const graph = new StateGraph(State)
      .addNode('node', () => ({
        answers: [interrupt({ question: 'n?' }), interrupt({ question: 'n?' })],
      }))
      .addEdge(START, 'node')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    let n = 0
    const { status, asked } = await converse(server, 'c', 'go', () => ({ answer: `${++n}` }))
    expect(status).toBe('COMPLETED')
    expect(asked.length).toBe(2)
    expect(await stateOf(server, 'c')).toEqual({ answers: ['1', '2'] })
  })

  test('of a subgraph are asked too, several at once and twice by one node', async () => {
    const inner = new StateGraph(State)
      .addNode('left', () => ({ answers: [`${interrupt('left?')}-${interrupt('left again?')}`] }))
      .addNode('right', asks('right?'))
      .addEdge(START, 'left')
      .addEdge(START, 'right')
      .compile()
    const graph = new StateGraph(State).addNode('inner', inner).addEdge(START, 'inner')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { status, asked, frames } = await converse(server, 'c', 'go', ({ card }) => {
      return { answer: card.title.split(' ').at(-1)! }
    })
    expect(frames.filter(({ event }) => event === 'error')).toEqual([])
    expect(status).toBe('COMPLETED')
    expect(asked.map(({ card }) => card.title).sort()).toEqual(['left again?', 'left?', 'right?'])
    const { answers } = (await stateOf(server, 'c')) as Update
    expect(answers.sort()).toEqual(['left?-again?', 'right?'])
  })

  test('survive a restart between question and answer', async () => {
    const { path, remove } = await temporaryDirectory()
    let runs = 0
    const graph = () =>
      new StateGraph(State)
        .addNode('before', () => {
          runs++
          return { answers: ['before'] }
        })
        .addNode('node', asks('well?'))
        .addEdge(START, 'before')
        .addEdge('before', 'node')
    const first = await serve({ agents: [langgraph(graph(), { name: 'graph' })] }, { data: path })
    const stream = await first.start('c', 'go')
    const asked = (await stream.until('approval_required')).at(-1)!.data
    await first.close()
    const second = await serve({ agents: [langgraph(graph(), { name: 'graph' })] }, { data: path })
    const id = stream.response.headers.get('x-interaction-id')!
    await second.approve('c', id, { approval_id: asked.approval_id, answer: 'yes' })
    const frames = await (await second.join('c', id)).rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(await stateOf(second, 'c')).toEqual({ answers: ['before', 'yes'] })
    expect(runs).toBe(1)
    await second.close()
    await remove()
  })

  test('that want a yes or no are approvals, LangChain middleware included', async () => {
    const graph = new StateGraph(State)
      .addNode('plain', () => ({
        answers: [JSON.stringify(interrupt({ kind: 'approval', title: 'Send it?' }))],
      }))
      .addNode('middleware', () => {
        const actionRequests = [{ name: 'send', args: { to: 'ann' } }]
        return { answers: [JSON.stringify(interrupt({ actionRequests, reviewConfigs: [] }))] }
      })
      .addEdge(START, 'plain')
      .addEdge('plain', 'middleware')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { asked } = await converse(server, 'c', 'go', ({ card }) => {
      return card.title === 'Send it?' ? { approved: true } : { approved: false, reason: 'late' }
    })
    expect(asked.map(({ kind, card }) => [kind, card.title])).toEqual([
      ['approval', 'Send it?'],
      ['approval', 'Run send'],
    ])
    const decisions = [{ type: 'reject', message: 'late' }]
    expect(await stateOf(server, 'c')).toEqual({
      answers: ['{"approved":true}', JSON.stringify({ decisions })],
    })
  })

  test('with a schema take no other answer', async () => {
    const { z } = await import('zod')
    const responseSchema = z.object({ count: z.number() })
    const graph = new StateGraph(State)
      .addNode('node', () => ({
        answers: [String(interrupt({ question: 'how many?' }, { responseSchema }).count)],
      }))
      .addEdge(START, 'node')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const stream = await server.start('c', 'go')
    const { approval_id } = (await stream.until('approval_required')).at(-1)!.data
    const id = stream.response.headers.get('x-interaction-id')!
    const wrong = await server.approve('c', id, { approval_id, answer: { count: 'many' } })
    expect(wrong.status).toBe(400)
    await server.approve('c', id, { approval_id, answer: { count: 3 } })
    await stream.rest()
    expect(await stateOf(server, 'c')).toEqual({ answers: ['3'] })
  })

  test('nodes may send to many and say where to go: each of them asks', async () => {
    const graph = new StateGraph(State)
      .addNode('plan', () => new Command({ goto: ['a', 'b'].map((n) => new Send('one', { n })) }), {
        ends: ['one'],
      })
      .addNode('one', ({ n }: { n?: string } & Update) => ({
        answers: [`${n}${interrupt(`${n}?`)}`],
      }))
      .addEdge(START, 'plan')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { status, asked } = await converse(server, 'c', 'go', ({ card }) => {
      return { answer: card.title === 'a?' ? '1' : '2' }
    })
    expect(status).toBe('COMPLETED')
    expect(asked.length).toBe(2)
    const { answers } = (await stateOf(server, 'c')) as Update
    expect(answers.sort()).toEqual(['a1', 'b2'])
  })

  test('a graph that is told to stop before or after a node asks whether to go on', async () => {
    const graph = (options: object) =>
      new StateGraph(State)
        .addNode('one', () => ({ answers: ['one'] }))
        .addNode('two', () => ({ answers: ['two'] }))
        .addEdge(START, 'one')
        .addEdge('one', 'two')
        .compile(options)
    const before = langgraph(graph({ interruptBefore: ['two'] }), { name: 'before' })
    const after = langgraph(graph({ interruptAfter: ['one'] }), { name: 'after' })
    const server = await serve({ agents: [before] })
    const yes = await converse(server, 'yes', 'go', () => ({ approved: true }))
    expect(yes.asked.map(({ card }) => card.title)).toEqual(['Go on with two?'])
    expect(await stateOf(server, 'yes')).toEqual({ answers: ['one', 'two'] })
    const no = await converse(server, 'no', 'go', () => ({ approved: false }))
    expect(no.status).toBe('COMPLETED')
    expect(await stateOf(server, 'no')).toEqual({ answers: ['one'] })
    const other = await serve({ agents: [after] })
    const gone = await converse(other, 'c', 'go', () => ({ approved: true }))
    expect(gone.asked.map(({ card }) => card.title)).toEqual(['Go on after one?'])
    expect(await stateOf(other, 'c')).toEqual({ answers: ['one', 'two'] })
  })
})
