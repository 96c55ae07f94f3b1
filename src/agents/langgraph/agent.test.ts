import { HumanMessage } from '@langchain/core/messages'
import { Annotation, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { describe, expect, test } from 'vitest'
import { transcript } from '../../../test/support/chats.ts'
import { sayingModel } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { langgraph } from './agent.ts'
import { governed } from './governed.ts'

describe('a graph with a governed model', () => {
  test('says what the model says, word by word, and what it keeps survives', async () => {
    const model = sayingModel((messages) => `You said ${messages.at(-1)!.text} here.`)
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('answer', async ({ messages }) => ({
        messages: [await governed(model).invoke(messages)],
      }))
      .addEdge(START, 'answer')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const frames = await (await server.start('c', 'hello')).rest()
    expect([...transcript(frames).values()]).toEqual(['You said hello here.'])
    expect(frames.filter(({ event }) => event === 'answer_delta').length).toBe(4)
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    await (await server.start('c', 'again')).rest()
    expect(model.asked[1]!.map(({ text }) => text)).toEqual([
      'hello',
      'You said hello here.',
      'again',
    ])
    const kinds = (await server.journal('c')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'effect.intended').length).toBe(2)
    expect(kinds.filter((kind) => kind === 'message.added').length).toBe(4)
  })

  test('interrupts are asks, and the answer is what interrupt() gives', async () => {
    const state = Annotation.Root({ ...MessagesAnnotation.spec, name: Annotation<string> })
    const graph = new StateGraph(state)
      .addNode('ask', () => ({ name: interrupt<object, string>({ question: 'Who are you?' }) }))
      .addNode('greet', ({ name }) => ({ messages: [new HumanMessage(`I am ${name}`)] }))
      .addEdge(START, 'ask')
      .addEdge('ask', 'greet')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const stream = await server.start('c', 'hello')
    const frames = await stream.until('approval_required')
    const asked = frames.at(-1)!.data
    expect(asked).toMatchObject({ kind: 'input', card: { title: 'Who are you?' } })
    const id = stream.response.headers.get('x-interaction-id')!
    const said = await server.approve('c', id, { approval_id: asked.approval_id, answer: 'Ann' })
    expect(said.status).toBe(200)
    expect((await stream.rest()).at(-1)!.data.status).toBe('COMPLETED')
    const journal = await server.journal('c')
    const patched = journal.filter(({ kind }) => kind === 'state.patched')
    expect(patched.at(-1)!.body).toMatchObject({ value: { name: 'Ann' } })
  })
})
