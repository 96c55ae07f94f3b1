import { AIMessage } from '@langchain/core/messages'
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { describe, expect, test } from 'vitest'
import { langgraph } from '../../src/agents/langgraph/agent.ts'
import { governed } from '../../src/agents/langgraph/governed.ts'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { wrapped } from '../../src/agents/wrapper/agent.ts'
import type { EventAgent } from '../../src/agents/wrapper/events.ts'
import { RuntimeError } from '../../src/core/errors.ts'
import { textOf } from '../../src/core/messages.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { finished, remote, sse, started, textEvents } from '../remote/support.ts'
import type { Frame } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { sayingModel } from '../support/graphs.ts'
import { type Served, serve } from '../support/serve.ts'
import { tools } from '../support/tools.ts'

const textIn = (frames: readonly Frame[]) =>
  frames
    .filter(({ event }) => event === 'agent_stream')
    .map(({ data }) => data.data.content)
    .join('')

/** Texts by message, as a client puts them together: `agent: text`. */
function textsIn(frames: readonly Frame[]): Record<string, string> {
  const texts = new Map<string, { agents: Set<string>; text: string }>()
  for (const { event, data } of frames) {
    const { message_id, message_ids = [], agent, content } = data.data
    if (event === 'retracted') for (const id of message_ids) texts.delete(id)
    if (event !== 'agent_stream') continue
    const one = texts.get(message_id) ?? { agents: new Set(), text: '' }
    one.agents.add(agent)
    one.text += content
    texts.set(message_id, one)
  }
  const lines = [...texts].map(([id, one]) => [id, `${[...one.agents].join()}: ${one.text}`])
  return Object.fromEntries(lines)
}

/** Runs a chat, and checks each message live, in a replay, and after a reconnect at every frame. */
async function checkTexts(server: Served, body: object): Promise<string[]> {
  const frames = await (await server.open('POST', '/copilotkit/chat', body)).rest()
  const live = textsIn(frames)
  const journal = await server.journal('s')
  const messages = journal.flatMap((one) => (one.kind === 'message.added' ? [one.body] : []))
  const said = messages.filter(({ message }) => message.role === 'assistant' && textOf(message))
  const texts = Object.entries(live).map(([id, line]) => [id, line.replace(/^[\w,]+: /, '')])
  expect(Object.fromEntries(texts)).toEqual(
    Object.fromEntries(said.map(({ message }) => [message.id, textOf(message)])),
  )
  expect(texts).toHaveLength(said.length) // no two messages have one id
  const replay = await server.open('GET', '/copilotkit/chat?session_id=s')
  expect(textsIn(await replay.rest())).toEqual(live)
  const step = Math.ceil(frames.length / 70)
  for (let n = 0; n < frames.length; n += step) {
    const last = { 'last-event-id': frames[n]!.id }
    const rest = await (await server.open('POST', '/copilotkit/chat', body, last)).rest()
    expect(textsIn([...frames.slice(0, n + 1), ...rest]), frames[n]!.id).toEqual(live)
  }
  return Object.values(live)
}

const turn = (ms = 1) => new Promise((resolve) => setTimeout(resolve, ms))

function graphOf(name: string, words: string, isGoverned: boolean) {
  const model = sayingModel(() => words, 2)
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('answer', async ({ messages }) => ({
      messages: [await (isGoverned ? governed(model) : model).invoke(messages)],
    }))
    .addNode('end', () => ({ messages: [new AIMessage(`${words} (at once)`)] }))
    .addEdge(START, 'answer')
    .addEdge('answer', 'end')
  return langgraph(graph, { name })
}

const chat = { messages: [{ role: 'user', content: 'hi' }], session_id: 's' }

describe('the agent_stream chunks of the workflow wire', () => {
  test('equal the message exactly once, live, for a late reader and in a replay', async () => {
    const half = gate()
    const model = scriptedModel(async function* () {
      yield text('One ')
      yield text('two ')
      await half.pass()
      yield text('three.')
    })
    const server = await serve({ model })
    const live = await server.open('POST', '/copilotkit/chat', chat)
    const before: Frame[] = []
    while (textIn(before) !== 'One two ') before.push((await live.frames.next()).value!)
    const late = await server.open('GET', '/copilotkit/chat?session_id=s')
    const rest = late.rest()
    half.open()
    const all = await live.rest()
    expect(textIn([...before, ...all])).toBe('One two three.')
    expect(textIn(await rest)).toBe('One two three.')
    const replay = await server.open('GET', '/copilotkit/chat?session_id=s')
    expect(textIn(await replay.rest())).toBe('One two three.')
  })

  test('equal the text of every step of a workflow exactly once', async () => {
    const model = scriptedModel([
      [text('Step '), text('one.')],
      [text('Look. '), call('1', 'look', { at: 'sea' })],
      [text('Step '), text('two.')],
    ])
    const steps = workflow({
      name: 'steps',
      steps: [
        { agent: toolLoop({ name: 'first' }), outputKey: 'first' },
        { agent: toolLoop({ name: 'second' }), outputKey: 'second' },
      ],
    })
    const server = await serve({ model, agents: [steps], tools: tools().all, builtIns: false })
    const stream = await server.open('POST', '/copilotkit/chat', { ...chat, agent: 'steps' })
    const spoken = textIn(await stream.rest())
    const replay = await server.open('GET', '/copilotkit/chat?session_id=s')
    expect(spoken).toMatch(/^Step one\.Look\. Step two\./)
    expect(spoken.match(/Step one/g)).toHaveLength(1)
    expect(textIn(await replay.rest())).toBe(spoken)
  })

  test('contain a text once if a wrapped object repeats it as its output', async () => {
    const object: EventAgent = {
      async *execute_with_events() {
        yield { event: 'agent_stream', data: { content: 'Hello ' } }
        yield { event: 'agent_stream', data: { content: 'world.' } }
        yield { event: 'agent_completed', data: { output: 'Hello world.' } }
      },
    }
    const server = await serve({ agents: [wrapped(object, { name: 'greeter' })] })
    expect(await checkTexts(server, chat)).toEqual(['greeter: Hello world.'])
  })

  test('name their message, so that a client can drop the text of a retracted one', async () => {
    const model = scriptedModel(async function* (_request, count) {
      yield text(count === 0 ? 'A false ' : 'The right ')
      await turn(5)
      yield text(count === 0 ? 'start' : 'answer.')
      await turn(5)
      if (count === 0) yield new RuntimeError('model_overloaded')
    })
    const server = await serve({ model, builtIns: false })
    expect(await checkTexts(server, chat)).toEqual(['assistant: The right answer.'])
  })

  test('equal a long text that the provider cuts inside of its characters', async () => {
    const whole = '\u{1f600}é日本\0"\\\n'.repeat(2_000)
    const model = scriptedModel(async function* () {
      for (let at = 0; at < whole.length; at += 37) {
        yield text(whole.slice(at, at + 37))
        if (at % 1_000 < 37) await turn()
      }
    })
    const server = await serve({ model, builtIns: false })
    expect(await checkTexts(server, chat)).toEqual([`assistant: ${whole}`])
  })

  test('have the agent and text of each parallel step: tool loops, graphs, a remote agent, a workflow', async () => {
    const far = await remote(async (_asked, response) => {
      for (const event of [started, ...textEvents('m1', 'Far ', 'away '), finished]) {
        sse(response, [event], false)
        await turn(3)
      }
      response.end()
    })
    let calls = 0
    const model = scriptedModel(async function* ({ messages }) {
      for (const word of ['Well, ', 'so ', 'be it. ']) {
        yield text(word)
        await turn(2)
      }
      const looked = messages.some(({ role }) => role === 'tool')
      if (!looked) yield call(`call${++calls}`, 'look', { at: 'sea' })
    })
    const step = (name: string) => ({ agent: toolLoop({ name }), outputKey: name })
    const inner = workflow({ name: 'inner', steps: [step('deep')] })
    const steps = workflow({
      name: 'steps',
      steps: [
        {
          parallel: [
            ...[step('one'), step('two')],
            { agent: graphOf('governed', 'Graph.', true), outputKey: 'governed' },
          ],
        },
        {
          parallel: [
            { agent: graphOf('free', 'Free.', false), outputKey: 'free' },
            { agent: aguiAgent({ name: 'far', url: `${far.url}/run` }), outputKey: 'far' },
            { agent: inner, outputKey: 'inner' },
          ],
        },
      ],
    })
    const server = await serve({ model, agents: [steps], tools: tools().all, builtIns: false })
    const lines = await checkTexts(server, { ...chat, agent: 'steps' })
    const words = 'Well, so be it. '
    expect(lines.map((line) => line.split('\n')[0]).sort()).toEqual(
      [
        ...[`one: ${words}`, `one: ${words}`, `two: ${words}`, `two: ${words}`],
        ...['governed: Graph.', 'governed: Graph. (at once)'],
        ...['free: Free.', 'free: Free. (at once)', 'far: Far away '],
        ...[`inner: ${words}`, `inner: ${words}`, 'inner: Workflow inner is done.'],
        'steps: Workflow steps is done.',
      ].sort(),
    )
  })
})

test.each(['日本', 'über', 'a b', 'x%20y', ' padded '])(
  'session id %j starts a run and comes back in the response',
  async (session_id) => {
    const server = await serve({ model: scriptedModel([[text('Hello.')]]) })
    const stream = await server.open('POST', '/copilotkit/chat', { ...chat, session_id })
    expect(stream.response.status).toBe(200)
    expect(decodeURIComponent(stream.response.headers.get('x-session-id')!)).toBe(session_id)
    const frames = await stream.rest()
    expect(textIn(frames)).toBe('Hello.')
    expect(frames[0]!.data.session_id).toBe(session_id)
    const query = new URLSearchParams({ session_id })
    const again = await server.open('GET', `/copilotkit/chat?${query}`)
    expect(textIn(await again.rest())).toBe('Hello.')
    const orchestrated = await server.open('GET', `/agent-orchestrator?${query}`)
    expect(orchestrated.response.status).toBe(200)
    await orchestrated.rest()
  },
)
