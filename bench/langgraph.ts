import { join } from 'node:path'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk, HumanMessage } from '@langchain/core/messages'
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs'
import {
  Annotation,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { compose, governed, langgraph, readConfig } from '../src/index.ts'
import { median, table, us, withDirectory } from './support.ts'

const steps = 100
const tokens = 5_000
const repeats = 7

/** Says so many words as fast as it can, with a turn of the event loop now and then. */
class WordModel extends BaseChatModel {
  override _llmType() {
    return 'words'
  }

  override _generate(): Promise<ChatResult> {
    throw new Error('it streams')
  }

  override async *_streamResponseChunks(_messages: unknown, _options: unknown, manager?: Manager) {
    const none = undefined
    for (let n = 0; n < tokens; n++) {
      if (n % 16 === 0) await new Promise((resolve) => setImmediate(resolve))
      const chunk = new ChatGenerationChunk({ text: 'word ', message: new AIMessageChunk('word ') })
      yield chunk
      await manager?.handleLLMNewToken('word ', none, none, none, none, { chunk })
    }
  }
}

type Manager = Parameters<BaseChatModel['_streamResponseChunks']>[2]

/** Counts to `steps`, one node after the other. */
const counting = () =>
  new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, n: Annotation<number> }))
    .addNode('count', ({ n = 0 }) => ({ n: (n % steps) + 1 }))
    .addEdge(START, 'count')
    .addConditionalEdges('count', ({ n }) => (n < steps ? 'count' : '__end__'))

const speaking = (model: BaseChatModel) =>
  new StateGraph(MessagesAnnotation)
    .addNode('speak', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addEdge(START, 'speak')

interface Cost {
  wall: number
  cpu: number
}

async function cost(of: number, work: (n: number) => Promise<void>): Promise<Cost> {
  const found: Cost[] = []
  for (let n = 0; n <= repeats; n++) {
    const since = performance.now()
    const before = process.cpuUsage()
    await work(n)
    const { user, system } = process.cpuUsage(before)
    const wall = (performance.now() - since) * 1_000
    if (n > 0) found.push({ wall: wall / of, cpu: (user + system) / of })
  }
  return { wall: median(found.map(({ wall }) => wall)), cpu: median(found.map(({ cpu }) => cpu)) }
}

/** What it costs to run a graph here, over the bare graph in the same process. */
export async function graphs(): Promise<void> {
  await withDirectory(async (directory) => {
    const many = { name: 'steps', maxIterations: steps + 1 }
    const agents = [
      langgraph(counting(), many),
      langgraph(speaking(governed(new WordModel({}))), { name: 'governed' }),
      langgraph(speaking(new WordModel({})), { name: 'past us' }),
    ]
    const data = join(directory, 'data')
    const env = { PORT: '0', LOG_LEVEL: 'silent', HANDRAIL_DATA: data, HANDRAIL_DRAIN_MS: '0' }
    const config = readConfig({ ...env, HANDRAIL_SPOOL: join(directory, 'spool') })
    const server = await compose(config, { agents })
    /** A new chat each, read to its end. */
    const chat = (agent: string) => async (n: number) => {
      const url = `http://localhost/chats/${agent.replace(' ', '-')}-${n}/interactions`
      const body = JSON.stringify({ user_message: 'go', agent })
      const headers = { 'content-type': 'application/json', host: 'localhost' }
      const response = await server.fetch(new Request(url, { method: 'POST', headers, body }))
      const text = await response.text()
      if (!text.includes('"COMPLETED"')) throw new Error(text.slice(-500))
    }
    const drain = async (stream: AsyncIterable<unknown>) => {
      for await (const _ of stream);
    }
    const input = { messages: [new HumanMessage('go')] }
    const bare = counting().compile()
    const saved = counting().compile({ checkpointer: new MemorySaver() })
    const limit = { recursionLimit: steps + 1, streamMode: ['values', 'updates'] as never }
    const rows = [
      [
        'bare graph, no checkpoints',
        await cost(steps, async () => drain(await bare.stream(input, limit))),
      ],
      [
        'bare graph, MemorySaver',
        await cost(steps, async (n) =>
          drain(await saved.stream(input, { ...limit, configurable: { thread_id: `${n}` } })),
        ),
      ],
      ['Handrail, file store, steps and state told', await cost(steps, chat('steps'))],
    ] as const
    const size = await journalSizes(server.store, 'steps-1')
    table(
      `13. A step of a graph (${steps} in one run)`,
      [['', 'time', 'CPU'], ...rows.map(([name, { wall, cpu }]) => [name, us(wall), us(cpu)])],
      [`journal per step: ${size.first} bytes at the first ten, ${size.last} at the last ten.`],
    )
    const words = speaking(new WordModel({})).compile()
    const spoken = [
      [
        "bare graph, streamMode 'messages'",
        await cost(tokens, async () =>
          drain(await words.stream(input, { streamMode: 'messages' })),
        ),
      ],
      ['Handrail, governed', await cost(tokens, chat('governed'))],
      ['Handrail, past us', await cost(tokens, chat('past us'))],
    ] as const
    table(`    A token (${tokens} in one message, read by one client)`, [
      ['', 'time', 'CPU'],
      ...spoken.map(([name, { wall, cpu }]) => [name, us(wall), us(cpu)]),
    ])
    await server.close()
  })
}

/** Bytes of entries for each step, early and late: what is kept must not grow with what was. */
async function journalSizes(
  store: { read(id: string, range: object): Promise<{ kind: string; body: string }[]> },
  threadId: string,
) {
  const entries = await store.read(threadId, { limit: 100_000 })
  const sizes: number[] = []
  let size = 0
  for (const { kind, body } of entries) {
    size += body.length
    if (kind !== 'checkpoint.kept' || !body.includes('"type":"checkpoint"')) continue
    sizes.push(size)
    size = 0
  }
  const mean = (list: number[]) => Math.round(list.reduce((a, b) => a + b, 0) / list.length)
  return { first: mean(sizes.slice(1, 11)), last: mean(sizes.slice(-10)) }
}
