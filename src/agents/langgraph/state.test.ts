import { AIMessage } from '@langchain/core/messages'
import { Annotation, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agui } from '../../../test/support/agui.ts'
import { converse, sayingModel, stateOf } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { temporaryDirectory } from '../../../test/support/server.ts'
import { langgraph } from './agent.ts'
import { governed } from './governed.ts'

const notes = Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] })
const State = Annotation.Root({ ...MessagesAnnotation.spec, notes, topic: Annotation<string> })

/** Notes what was said last. */
const noting = () =>
  new StateGraph(State)
    .addNode('note', ({ messages, topic }) => ({
      notes: [messages.at(-1)!.text],
      messages: [new AIMessage(`${messages.length} messages, about ${topic ?? 'nothing'}`)],
    }))
    .addEdge(START, 'note')

const user = (id: string) => ({ id, role: 'user', content: id })

describe('the state of a graph', () => {
  test('goes on from run to run and over a restart, and every wire reads it', async () => {
    const { path, remove } = await temporaryDirectory()
    const first = await serve({ agents: [langgraph(noting(), { name: 'graph' })] }, { data: path })
    await (await first.start('c', 'one')).rest()
    await first.close()
    const second = await serve({ agents: [langgraph(noting(), { name: 'graph' })] }, { data: path })
    const read = await fetch(`${second.url}/copilotkit/threads/c/state`)
    expect(await read.json()).toEqual({ state: { notes: ['one'] } })
    const frames = await (await second.start('c', 'two')).rest()
    expect(await stateOf(second, 'c')).toEqual({ notes: ['one', 'two'] })
    expect(frames.find(({ event }) => event === 'answer')!.data.content).toBe(
      '3 messages, about nothing',
    )
    await second.close()
    await remove()
  })

  test('an edit goes on from the checkpoint before what it replaces, again and again', async () => {
    const server = await serve({ agents: [langgraph(noting(), { name: 'graph' })] })
    await (await server.start('c', 'one')).rest()
    const two = await server.start('c', 'two')
    await two.rest()
    const id = two.response.headers.get('x-interaction-id')!
    await (await server.start('c', 'three')).rest()
    expect(await stateOf(server, 'c')).toEqual({ notes: ['one', 'two', 'three'] })
    const edited = await server.edit('c', id, 'other')
    const frames = await edited.rest()
    expect(await stateOf(server, 'c')).toEqual({ notes: ['one', 'other'] })
    expect(frames.find(({ event }) => event === 'answer')!.data.content).toBe(
      '3 messages, about nothing',
    )
    await (await server.start('c', 'four')).rest()
    expect(await stateOf(server, 'c')).toEqual({ notes: ['one', 'other', 'four'] })
  })

  test('an edit while the graph waits for an answer leaves the question behind', async () => {
    const graph = new StateGraph(State)
      .addNode('ask', ({ messages }) => {
        const last = messages.at(-1)!.text
        return { notes: [last === 'plain' ? last : `${last} ${interrupt('sure?')}`] }
      })
      .addEdge(START, 'ask')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const stream = await server.start('c', 'hard')
    await stream.until('approval_required')
    const id = stream.response.headers.get('x-interaction-id')!
    await server.cancel('c', id)
    const frames = await (await server.edit('c', id, 'plain')).rest()
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(await stateOf(server, 'c')).toEqual({ notes: ['plain'] })
  })

  test('regenerating says it again from where it was', async () => {
    const server = await serve({ agents: [langgraph(noting(), { name: 'graph' })] })
    const one = [user('one')]
    const first = await agui(server.url, { runId: 'r1', messages: one })
    const said = first.find(({ type }) => type === 'TEXT_MESSAGE_START')
    await agui(server.url, {
      runId: 'r2',
      messages: [...one, { id: said.messageId, role: 'assistant' }, user('two')],
    })
    expect(await stateOf(server, 'c')).toEqual({ notes: ['one', 'two'] })
    const again = [...one, { id: said.messageId, role: 'assistant', content: 'x' }, user('two')]
    await agui(server.url, { runId: 'r3', messages: again })
    expect(await stateOf(server, 'c')).toEqual({ notes: ['one', 'two'] })
    const snapshots = await fetch(`${server.url}/copilotkit/threads/c/messages`)
    expect((await snapshots.json()).messages.length).toBe(4)
  })

  test('what a client brings is taken by the graph’s own reducers, once', async () => {
    const server = await serve({ agents: [langgraph(noting(), { name: 'graph' })] })
    const first = await agui(server.url, {
      messages: [user('one')],
      state: { topic: 'cats', alien: 1 },
    })
    const text = first.find(({ type }) => type === 'TEXT_MESSAGE_CONTENT').delta
    expect(text).toBe('1 messages, about cats')
    expect(
      first.findLast(({ type }) => type === 'STATE_SNAPSHOT' || type === 'STATE_DELTA'),
    ).toBeTruthy()
    expect(await stateOf(server, 'c')).toEqual({ topic: 'cats', notes: ['one'] })
    // The list has a reducer that appends: what the client changed is appended, and only that key.
    const state = { topic: 'cats', notes: ['more'] }
    await agui(server.url, { runId: 'r2', messages: [user('two')], state })
    expect(await stateOf(server, 'c')).toEqual({ topic: 'cats', notes: ['one', 'more', 'two'] })
  })

  test('comes with an answer too, in the middle of a node', async () => {
    const graph = new StateGraph(State)
      .addNode('ask', () => ({ notes: [String(interrupt('well?'))] }))
      .addNode('after', ({ topic }) => ({ notes: [`about ${topic}`] }))
      .addEdge(START, 'ask')
      .addEdge('ask', 'after')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const first = await agui(server.url, { messages: [user('one')] })
    const [asked] = first.at(-1).outcome.interrupts
    const resume = [{ interruptId: asked.id, status: 'resolved', payload: 'yes' }]
    const second = await agui(server.url, {
      messages: [user('one')],
      resume,
      state: { topic: 'dogs' },
    })
    expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(await stateOf(server, 'c')).toEqual({ topic: 'dogs', notes: ['yes', 'about dogs'] })
  })

  test('is shown as far as the schema says', async () => {
    const options = { name: 'graph', stateSchema: z.object({ topic: z.string() }) }
    const server = await serve({ agents: [langgraph(noting(), options)] })
    await agui(server.url, { messages: [user('one')], state: { topic: 'cats', notes: ['no'] } })
    expect(await stateOf(server, 'c')).toEqual({ topic: 'cats' })
  })

  test('a run that was cancelled in the middle leaves the next one a sound history', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const model = sayingModel((_messages, n) => `answer ${n}`)
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('model', async ({ messages }) => ({
        messages: [await governed(model).invoke(messages)],
      }))
      .addNode('slow', async ({ messages }) => {
        if (messages.length < 3) await held
        return {}
      })
      .addEdge(START, 'model')
      .addEdge('model', 'slow')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const stream = await server.start('c', 'one')
    await stream.until('answer')
    await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
    expect((await stream.rest()).at(-1)!.data.status).toBe('CANCELLED')
    release()
    const { status } = await converse(server, 'c', 'two', () => undefined)
    expect(status).toBe('COMPLETED')
    expect(model.asked[1]!.map(({ text }) => text)).toEqual(['one', 'answer 0', 'two'])
  })
})
