import { dispatchCustomEvent } from '@langchain/core/callbacks/dispatch'
import { AIMessage } from '@langchain/core/messages'
import { Annotation, MessagesAnnotation, Send, START, StateGraph } from '@langchain/langgraph'
import { describe, expect, test } from 'vitest'
import { agui } from '../../../test/support/agui.ts'
import { transcript } from '../../../test/support/chats.ts'
import { calling, sayingModel } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { langgraph } from './agent.ts'
import { emitMessage, emitState, emitToolCall } from './emit.ts'
import { governed } from './governed.ts'
import type { LangGraphOptions } from './options.ts'

const State = Annotation.Root({ ...MessagesAnnotation.spec, progress: Annotation<number> })
type Node = (state: typeof State.State, config: { writer?: (chunk: unknown) => void }) => unknown

/** A graph of one node, played once. */
async function play(node: Node, options: Partial<LangGraphOptions> = {}) {
  const graph = new StateGraph(State).addNode('node', node as never).addEdge(START, 'node')
  const server = await serve({ agents: [langgraph(graph, { name: 'graph', ...options })] })
  const events = await agui(server.url, { messages: [{ id: 'u', role: 'user', content: 'go' }] })
  return { server, events, types: events.map(({ type }) => type) }
}

const texts = (events: { type: string; delta: string }[]) =>
  events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta)

describe('what a node says while it runs', () => {
  test('a state, a message and a call, by our helpers', async () => {
    const { events, server } = await play(async () => {
      await emitState({ progress: 1 })
      const id = await emitMessage('Half way.')
      await emitToolCall('confetti', { n: 3 })
      return { progress: 2, messages: [new AIMessage({ id, content: 'Half way.' })] }
    })
    expect(texts(events)).toEqual(['Half way.'])
    const call = events.find(({ type }) => type === 'TOOL_CALL_START')
    expect(call).toMatchObject({ toolCallName: 'confetti' })
    const journal = await server.journal('c')
    const states = journal.flatMap((one) => (one.kind === 'state.patched' ? [one.body.value] : []))
    expect(states).toEqual([{ progress: 1 }, { progress: 2 }])
    expect(events.at(-1).type).toBe('RUN_FINISHED')
  })

  test('the same as CopilotKit’s helpers dispatch it, and events of its own', async () => {
    const { events, server } = await play(async (_state, { writer }) => {
      const message = { message: 'Hello.', message_id: 'm1', role: 'assistant' }
      await dispatchCustomEvent('copilotkit_manually_emit_message', message)
      await dispatchCustomEvent('manually_emit_message', { message: 'You.', message_id: 'm2' })
      await dispatchCustomEvent('copilotkit_manually_emit_intermediate_state', { progress: 5 })
      const call = { name: 'show', args: { a: 1 }, id: 'call-9' }
      await dispatchCustomEvent('copilotkit_manually_emit_tool_call', call)
      await dispatchCustomEvent('copilotkit_exit', {})
      await dispatchCustomEvent('mine', { x: 1 })
      writer?.({ chunk: 2 })
      return {}
    })
    expect(texts(events)).toEqual(['Hello.', 'You.'])
    expect(events.find(({ toolCallId }) => toolCallId === 'call-9')).toBeTruthy()
    const custom = events.filter(({ type }) => type === 'CUSTOM')
    expect(custom.map(({ name, value }) => [name, value])).toEqual([
      ['Exit', {}],
      ['mine', { x: 1 }],
      ['custom', { chunk: 2 }],
    ])
    const journal = await server.journal('c')
    const patched = journal.filter(({ kind }) => kind === 'state.patched')
    expect(patched[0]!.body).toMatchObject({ value: { progress: 5 } })
  })

  test('nodes are steps; those of subgraphs have a path, and several of one name a number', async () => {
    const inner = new StateGraph(State)
      .addNode('deep', async () => ({}))
      .addEdge(START, 'deep')
      .compile()
    const graph = new StateGraph(State)
      .addNode('inner', inner)
      .addNode('many', async () => ({}))
      .addEdge(START, 'inner')
      .addConditionalEdges('inner', () => [new Send('many', {}), new Send('many', {})])
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const events = await agui(server.url, { messages: [{ id: 'u', role: 'user', content: 'go' }] })
    const began = events
      .filter(({ type }) => type === 'STEP_STARTED')
      .map(({ stepName }) => stepName)
    expect(began).toEqual(['inner', 'inner/deep', 'many', 'many 2'])
    const over = events
      .filter(({ type }) => type === 'STEP_FINISHED')
      .map(({ stepName }) => stepName)
    expect(over.sort()).toEqual(began.sort())
    const quiet = await serve({ agents: [langgraph(graph, { name: 'graph', tracing: false })] })
    const other = await agui(quiet.url, { messages: [{ id: 'u', role: 'user', content: 'go' }] })
    expect(other.filter(({ type }) => type === 'STEP_STARTED')).toEqual([])
  })

  test('long texts come in pieces, and with updates only whole', async () => {
    const model = sayingModel(() => 'x'.repeat(25), 50)
    const node: Node = async ({ messages }) => ({ messages: [await model.invoke(messages)] })
    const short = await play(node, { streamChunkSize: 10 })
    expect(texts(short.events).map(({ length }) => length)).toEqual([10, 10, 5])
    const whole = await play(node, { streamChunkSize: 10, streamMode: 'updates' })
    expect(texts(whole.events).map(({ length }) => length)).toEqual([25])
    const full = await play(async () => ({ progress: 7 }), { streamMode: 'full' })
    const update = full.events.find(({ name }) => name === 'update')
    expect(update.value).toEqual({ path: [], update: { node: { progress: 7 } } })
  })
})

describe('a model call that goes past us', () => {
  test('is shown and counted, and its message is there once', async () => {
    const model = sayingModel(() => 'Past you all.', 50)
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('node', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
      .addEdge(START, 'node')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const frames = await (await server.start('c', 'go')).rest()
    expect([...transcript(frames).values()]).toEqual(['Past you all.'])
    expect(frames.filter(({ event }) => event === 'answer_delta').length).toBe(3)
    const journal = await server.journal('c')
    const done = journal.filter((one) => one.kind === 'effect.done')
    expect(done.map(({ body }) => body)).toMatchObject([
      { effect: 'model', usage: { inputTokens: 3, outputTokens: 2 } },
    ])
    expect(journal.filter(({ kind }) => kind === 'message.added').length).toBe(2)
  })

  test('is not shown where it is marked so, governed or not', async () => {
    const model = sayingModel((_messages, n) => `hidden ${n}`)
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('node', async ({ messages }) => {
        await model.withConfig({ tags: ['nostream'] }).invoke(messages)
        const metadata = { 'copilotkit:emit-messages': false }
        await governed(model).invoke(messages, { metadata })
        return { messages: [new AIMessage('Shown.')] }
      })
      .addEdge(START, 'node')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const frames = await (await server.start('c', 'go')).rest()
    expect([...transcript(frames).values()]).toEqual(['Shown.'])
    expect(model.asked.length).toBe(2)
  })

  test('state may be foreseen from arguments: clients are told from which', async () => {
    const predict = [{ state_key: 'progress', tool: 'set', tool_argument: 'n' }]
    const model = sayingModel(() => calling('c1', 'set', { n: 4 }))
    const { events } = await play(async ({ messages }) => {
      const metadata = { 'copilotkit:emit-intermediate-state': predict }
      await governed(model).invoke(messages, { metadata })
      return {}
    })
    expect(events.find(({ name }) => name === 'PredictState').value).toEqual(predict)
  })
})
