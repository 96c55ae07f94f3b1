import { AIMessage } from '@langchain/core/messages'
import { StructuredTool, type StructuredToolInterface, tool } from '@langchain/core/tools'
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { createReactAgent, ToolNode } from '@langchain/langgraph/prebuilt'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agui } from '../../../test/support/agui.ts'
import { gate } from '../../../test/support/gate.ts'
import { calling, converse, sayingModel } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { langgraph } from './agent.ts'
import { governed } from './governed.ts'
import { governedTools, offeredTools, toolNode } from './tools.ts'

const made: string[] = []
const schema = z.object({ to: z.string() })
const send = tool(
  async ({ to }, config) => {
    made.push(`${to} ${String(config.configurable?.effectId).slice(0, 4)}`)
    return `sent to ${to}`
  },
  { name: 'send', description: 'Sends it', schema },
)
const look = tool(
  async ({ to }) => await new Promise<string>((resolve) => setTimeout(resolve, 150, `saw ${to}`)),
  { name: 'look', description: 'Looks', schema },
)

const hasCalls = (message: unknown) => (Object(message).tool_calls ?? []).length > 0

/** Model, then tools, until the model calls nothing more. */
function loop(model: ReturnType<typeof sayingModel>, tools: ToolNode | typeof toolNode) {
  return new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({
      messages: [await governed(model).invoke(messages)],
    }))
    .addNode('tools', tools as typeof toolNode)
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) =>
      hasCalls(messages.at(-1)) ? 'tools' : '__end__',
    )
    .addEdge('tools', 'model')
}

describe('governed tools', () => {
  test('a pattern in a JSON Schema of another server is checked in linear time', async () => {
    const ran: string[] = []
    const pattern = '^(a+)+$|^x?a' // matches at once for us, and after 2^30 steps, more than a minute, for a backtracking engine
    const foreign = tool(
      async (input) => {
        ran.push((input as { to: string }).to)
        return 'sent'
      },
      {
        name: 'foreign',
        description: 'Of an MCP adapter',
        schema: { type: 'object', properties: { to: { type: 'string', pattern } } } as const,
      },
    )
    const evil = `${'a'.repeat(30)}!`
    const model = sayingModel((_messages, n) =>
      n < 2 ? calling(`c${n}`, 'foreign', { to: n === 0 ? `${'b'.repeat(30)}` : evil }) : 'Done.',
    )
    const graph = loop(model, new ToolNode(governedTools([foreign], { access: 'read' })))
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { status } = await converse(server, 'c', 'go', () => ({ approved: true }))
    expect(status).toBe('COMPLETED')
    expect(ran).toEqual([evil])
  })

  test('a LangGraph tool gets the output of its schema once, and its card shows the raw input', async () => {
    const ran: unknown[] = []
    const keep = tool(async (input) => String(ran.push(input)), {
      name: 'keep',
      description: 'Keeps',
      schema: z.object({
        tags: z.array(z.string()).transform((list) => new Set(list)),
        amount: z.string().transform((digits) => BigInt(digits)),
        count: z.string().transform(Number),
      }),
    })
    const sent = { tags: ['a', 'b'], amount: '12345678901234567890', count: '2' }
    const model = sayingModel((_messages, n) => (n === 0 ? calling('c1', 'keep', sent) : 'Done.'))
    const graph = loop(model, new ToolNode(governedTools([keep])))
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { frames } = await converse(server, 'c', 'go', () => ({ approved: true }))
    const shown = frames.find(({ event }) => event === 'approval_required')!.data
    expect(JSON.parse(shown.tool_input)).toEqual(sent)
    const tags = new Set(['a', 'b'])
    expect(ran).toEqual([{ tags, amount: 12345678901234567890n, count: 2 }])
  })

  test('a LangGraph tool of a class with private fields runs', async () => {
    const ran: unknown[] = []
    class Shout extends StructuredTool {
      readonly #end = '!'
      name = 'shout'
      description = 'Shouts'
      schema = z.object({ word: z.string() })
      protected async _call({ word }: { word: string }) {
        ran.push(word + this.#end)
        return 'ok'
      }
    }
    const model = sayingModel((_messages, n) =>
      n === 0 ? calling('c1', 'shout', { word: 'hey' }) : 'Done.',
    )
    const graph = loop(model, new ToolNode(governedTools([new Shout()], { access: 'read' })))
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    await converse(server, 'c', 'go', () => ({ approved: true }))
    expect(ran).toEqual(['hey!'])
  })

  test('a node that calls a governed tool with a value that JSON cannot represent gets an error', async () => {
    const [governedSend] = governedTools([send], { access: 'read' })
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('node', async () => {
        const failed = await governedSend!
          .invoke({ to: new Set(['a']) } as never)
          .catch((error: Error) => error.message)
        return { messages: [new AIMessage(String(failed))] }
      })
      .addEdge(START, 'node')
    const agent = langgraph(graph, { name: 'graph', tools: [governedSend!] })
    const server = await serve({ agents: [agent] })
    const frames = await (await server.start('c', 'go')).rest()
    const { data } = frames.find(({ event }) => event === 'answer')!
    expect(data.content).toContain('The input of send has a value that JSON cannot represent.')
  })

  /** A graph whose tool `pay` exceeds its timeout of 100 ms. Returns the open question about the call. */
  async function exceeded(pay: StructuredToolInterface) {
    const model = sayingModel((messages, n) =>
      n === 0 ? calling('c1', 'pay', {}) : `Done: ${messages.at(-1)!.text}`,
    )
    const graph = loop(model, new ToolNode(governedTools([pay], { timeout: 100 })))
    const policy = [{ decision: 'allow' as const }]
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })], policy })
    const stream = await server.start('c', 'pay')
    const asked = (await stream.until('approval_required')).at(-1)!.data
    expect(asked).toMatchObject({ kind: 'in_doubt', tool_name: 'pay' })
    await server.recorded('c', 'run.waiting')
    const answers = async () =>
      (await stream.rest())
        .filter(({ event }) => event === 'answer')
        .map(({ data }) => data.content)
    return { server, stream, asked, answers }
  }

  /** A tool that does not listen to its signal, and returns when the test says so. */
  function slowPay() {
    const bank = gate()
    let runs = 0
    const run = async () => {
      runs++
      await bank.pass()
      return 'Receipt 17'
    }
    const pay = tool(run, { name: 'pay', description: 'Pays', schema: z.object({}) })
    return { bank, pay, runs: () => runs }
  }

  test('a LangGraph tool that exceeds its timeout is in doubt, and the answer resumes the graph', async () => {
    const { pay, runs } = slowPay()
    const { server, stream, asked, answers } = await exceeded(pay)
    const interaction = stream.response.headers.get('x-interaction-id')!
    const { approval_id } = asked
    const answer = { approval_id, outcome: 'happened', result: 'Receipt 17' }
    await server.approve('c', interaction, answer)
    expect((await answers()).at(-1)).toBe('Done: Receipt 17')
    expect(runs()).toBe(1)
  })

  test('a late result of a LangGraph tool settles the question about its call', async () => {
    const { bank, pay, runs } = slowPay()
    const { asked, answers, server } = await exceeded(pay)
    expect(asked.card.evidence.error).toBe(
      'The call did not finish within 0.1 s. It may still be running.',
    )
    bank.open()
    expect((await answers()).at(-1)).toBe('Done: Receipt 17')
    const shown = await (await server.request('GET', `/approvals/${asked.approval_id}`)).json()
    expect(shown).toMatchObject({ state: 'answered', decision: { outcome: 'happened' } })
    expect(runs()).toBe(1)
  })

  test('configurable.signal tells a LangGraph tool that its timeout has passed', async () => {
    const pay = tool(
      async (_, { configurable }) => await gate().pass(configurable?.signal as AbortSignal),
      { name: 'pay', description: 'Pays', schema: z.object({}) },
    )
    const { asked } = await exceeded(pay)
    expect(asked.card.evidence.error).toMatch(
      /^The call did not finish within 0.1 s\. The tool stopped with: /,
    )
  })

  test('config.signal tells a LangGraph tool that its run was cancelled', async () => {
    const inside = gate()
    const stopped = gate()
    const pay = tool(
      async (_, { signal }) => {
        await inside.pass(signal).catch(() => {})
        void stopped.pass()
      },
      { name: 'pay', description: 'Pays', schema: z.object({}) },
    )
    const model = sayingModel(() => calling('c1', 'pay', {}))
    const graph = loop(model, new ToolNode(governedTools([pay])))
    const policy = [{ decision: 'allow' as const }]
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })], policy })
    const stream = await server.start('c', 'pay')
    await inside.reached
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.request('POST', `/chats/c/interactions/${interaction}/cancel`)
    await stopped.reached
    await server.recorded('c', 'run.cancelled')
  })

  test('in a tool node are asked about, made once, and the model hears the result', async () => {
    made.length = 0
    const model = sayingModel((messages, n) =>
      n === 0 ? calling('c1', 'send', { to: 'ann' }) : `Done: ${messages.at(-1)!.text}`,
    )
    const graph = loop(model, new ToolNode(governedTools([send])))
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { asked, frames, status } = await converse(server, 'c', 'go', () => ({ approved: true }))
    expect(asked).toMatchObject([
      { kind: 'approval', tool_name: 'send', tool_input: '{"to":"ann"}' },
    ])
    expect(status).toBe('COMPLETED')
    expect(made).toEqual(['ann eff_'])
    expect(frames.find(({ event }) => event === 'answer')!.data.content).toBe('Done: sent to ann')
    const results = (await server.journal('c')).filter(
      ({ kind, body }) => kind === 'message.added' && body.message.role === 'tool',
    )
    expect(results.length).toBe(1)
  })

  test('an edited call tells the model of a graph which arguments ran', async () => {
    made.length = 0
    const model = sayingModel((_messages, n) =>
      n === 0 ? calling('c1', 'send', { to: 'ann' }) : 'Done.',
    )
    const graph = loop(model, new ToolNode(governedTools([send])))
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const edited_input = { to: 'bob' }
    const decision = () => ({ approved: true, edited_input })
    const { frames } = await converse(server, 'c', 'go', decision)
    expect(made).toEqual(['bob eff_'])
    expect(model.asked[1]!.at(-1)!.text).toBe(
      'The approver changed the arguments of this call. It ran with these arguments: ' +
        '{"to":"bob"}\n\nsent to bob',
    )
    const results = frames.filter(({ event }) => event === 'tool_result')
    expect(results.map(({ data }) => data.tool_output)).toEqual(['sent to bob'])
  })

  test('that may run do so while others are asked about, and none is made twice', async () => {
    made.length = 0
    const both = calling('c1', 'send', { to: 'ann' })
    both.tool_calls!.push({ id: 'c2', name: 'look', args: { to: 'bob' }, type: 'tool_call' })
    const model = sayingModel((_messages, n) => (n === 0 ? both : 'Done.'))
    const tools = [...governedTools([send]), ...governedTools([look], { access: 'read' })]
    const server = await serve({
      agents: [langgraph(loop(model, new ToolNode(tools)), { name: 'graph' })],
    })
    const no = { approved: false, reason: 'not now' }
    const { asked, status } = await converse(server, 'c', 'go', () => no)
    expect(asked.map(({ tool_name }) => tool_name)).toEqual(['send'])
    expect(status).toBe('COMPLETED')
    expect(made).toEqual([])
    const journal = await server.journal('c')
    const done = journal.filter((one) => one.kind === 'effect.done' && one.body.effect === 'tool')
    expect(done.length).toBe(1)
    expect(model.asked[1]!.slice(-2).map(({ text }) => text)).toEqual([
      'The user rejected this call: not now',
      'saw bob',
    ])
  })

  test('work in LangGraph’s own agent', async () => {
    made.length = 0
    const model = sayingModel((_messages, n) =>
      n === 0 ? calling('c1', 'send', { to: 'eve' }) : 'Ok.',
    )
    const graph = createReactAgent({ llm: governed(model), tools: governedTools([send]) })
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const { frames, status } = await converse(server, 'c', 'go', () => ({ approved: true }))
    expect(frames.filter(({ event }) => event === 'error')).toEqual([])
    expect(status).toBe('COMPLETED')
    expect(made).toEqual(['eve eff_'])
    expect(model.asked.length).toBe(2)
  })

  test('that a node calls by itself are made once too, when it is run again', async () => {
    made.length = 0
    const [first] = governedTools([look], { access: 'read' })
    const [second] = governedTools([send])
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('node', async () => {
        const saw = await first!.invoke({ to: 'ann' })
        const sent = await second!.invoke({ to: String(saw) })
        return { messages: [{ role: 'assistant', content: String(sent) }] }
      })
      .addEdge(START, 'node')
    const agent = langgraph(graph, { name: 'graph', tools: [first!, second!] })
    const server = await serve({ agents: [agent] })
    const { frames, status } = await converse(server, 'c', 'go', () => ({ approved: true }))
    expect(status).toBe('COMPLETED')
    expect(made).toEqual(['saw ann eff_'])
    expect(frames.findLast(({ event }) => event === 'answer')!.data.content).toBe('sent to saw ann')
    const done = (await server.journal('c')).filter((one) => one.kind === 'effect.done')
    expect(done.length).toBe(2)
  })

  test('outside of a leg refuse to do anything', async () => {
    await expect(governedTools([send])[0]!.invoke({ to: 'x' })).rejects.toThrow('Handrail')
    await expect(governed(sayingModel(() => 'x')).invoke('hi')).rejects.toThrow('Handrail')
  })
})

describe('tools of the client', () => {
  const tools = [{ name: 'pick', description: 'Picks', parameters: { type: 'object' } }]
  const user = { id: 'u1', role: 'user', content: 'go' }
  const result = { id: 'r1', role: 'tool', toolCallId: 'c1', content: 'the red one' }

  test('are offered to the model; a call ends the leg in its node, and the result goes on there', async () => {
    let offered: unknown
    const model = sayingModel((messages, n) =>
      n === 0 ? calling('c1', 'pick', {}) : `Picked ${messages.at(-1)!.text}.`,
    )
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('model', async ({ messages }) => {
        offered = offeredTools()
        return {
          messages: [await governed(model).bindTools!(offeredTools() as never).invoke(messages)],
        }
      })
      .addNode('tools', toolNode)
      .addEdge(START, 'model')
      .addConditionalEdges('model', ({ messages }) =>
        hasCalls(messages.at(-1)) ? 'tools' : '__end__',
      )
      .addEdge('tools', 'model')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    const first = await agui(server.url, { runId: 'r1', messages: [user], tools })
    expect(first.find(({ type }) => type === 'TOOL_CALL_START')).toMatchObject({
      toolCallName: 'pick',
    })
    expect(offered).toEqual([{ type: 'function', function: tools[0] }])
    const second = await agui(server.url, { runId: 'r2', messages: [user, result], tools })
    const text = second
      .filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
      .map(({ delta }) => delta)
    expect(text.join('')).toBe('Picked the red one.')
    expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(model.asked.length).toBe(2)
  })

  test('reach the state, and a graph that ends in a call of one goes on with its result', async () => {
    const { Annotation } = await import('@langchain/langgraph')
    const State = Annotation.Root({
      ...MessagesAnnotation.spec,
      copilotkit: Annotation<{ actions: { name: string }[] }>,
    })
    let actions: unknown
    const model = sayingModel((messages, n) =>
      n === 0 ? calling('c1', 'pick', {}) : `Picked ${messages.at(-1)!.text}.`,
    )
    const graph = new StateGraph(State)
      .addNode('model', async ({ messages, copilotkit }) => {
        actions = copilotkit.actions
        return { messages: [await governed(model).invoke(messages)] }
      })
      .addEdge(START, 'model')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    await agui(server.url, { runId: 'r1', messages: [user], tools })
    expect(actions).toEqual(tools)
    const second = await agui(server.url, { runId: 'r2', messages: [user, result], tools })
    const text = second
      .filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
      .map(({ delta }) => delta)
    expect(text.join('')).toBe('Picked the red one.')
    expect(model.asked[1]!.map(({ type }) => type)).toEqual(['human', 'ai', 'tool'])
  })

  test('bring the state along with their result, to a graph that has ended too', async () => {
    const { Annotation } = await import('@langchain/langgraph')
    const State = Annotation.Root({ ...MessagesAnnotation.spec, topic: Annotation<string> })
    const model = sayingModel((_messages, n) => (n === 0 ? calling('c1', 'pick', {}) : 'Done.'))
    const seen: unknown[] = []
    const graph = new StateGraph(State)
      .addNode('model', async ({ messages, topic }) => {
        seen.push(topic)
        return { messages: [await governed(model).invoke(messages)] }
      })
      .addEdge(START, 'model')
    const server = await serve({ agents: [langgraph(graph, { name: 'graph' })] })
    await agui(server.url, { runId: 'r1', messages: [user], tools, state: { topic: 'one' } })
    const state = { topic: 'two' }
    const second = await agui(server.url, { runId: 'r2', messages: [user, result], tools, state })
    expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(seen).toEqual(['one', 'two'])
  })
})
