import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'
import { governed, governedTools, langgraph } from '../../src/index.ts'
import { type ChatsClient, chatsClient, type Stream } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { answerTo, tripGraph } from '../support/trip.mjs'

// A server that starts twice takes its time on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const config = fileURLToPath(new URL('../support/trip.config.mjs', import.meta.url))

const words: Record<string, string> = { 'Which colour?': 'red', 'Which size?': 'big' }

interface Question {
  approval_id: string
  card: { title: string }
}

/** Says or edits something, answers all that is asked when it is asked together, and gives what was asked. */
async function answerAll(client: ChatsClient, stream: Stream) {
  const asked = [await stream.until('approval_required'), await stream.until('approval_required')]
  const questions = asked.map((frames) => frames.at(-1)!.data as Question)
  await answer(client, questions)
  await stream.rest()
  return questions.map(({ card }) => card.title).sort()
}

async function answer(client: ChatsClient, questions: Question[]) {
  const { interactions } = await client.chat('chat')
  for (const { approval_id, card } of questions) {
    const body = { approval_id, answer: words[card.title] }
    const response = await client.approve('chat', interactions.at(-1).id, body)
    expect(response.status).toBe(200)
  }
}

/** What the graph said in each interaction that is shown. */
async function said(client: ChatsClient): Promise<string[][]> {
  const { interactions } = await client.chat('chat')
  type Told = { type: string; content: string }
  return interactions.map(({ agent_events }: { agent_events: Told[] }) =>
    agent_events.filter(({ type }) => type === 'ANSWER').map(({ content }) => content),
  )
}

const round = (n: number) => [answerTo(`trip #${n}`), answerTo(`big and red, paid ${n}`)]

test('a graph asks two things at once in a chat, and an edit goes on from before the message', async () => {
  const paid: number[] = []
  const made = tripGraph({ governed, governedTools }, { paid: ({ n }) => paid.push(n) })
  const agents = [langgraph(made.graph, { name: 'trip', tools: made.tools })]
  const policy = [{ tool: 'pay', decision: 'allow' as const }]
  const server = await serve({ agents, builtIns: false, policy })
  const client = chatsClient(server.url)
  for (const n of [1, 2]) {
    const stream = await client.start('chat', `trip #${n}`)
    expect(await answerAll(client, stream)).toEqual(['Which colour?', 'Which size?'])
  }
  expect(await said(client)).toEqual([round(1), round(2)])
  const { interactions } = await client.chat('chat')
  await answerAll(client, await client.edit('chat', interactions[1].id, 'trip #3'))
  expect(await said(client)).toEqual([round(1), round(3)])
  expect(paid).toEqual([1, 2, 3])
})

test('killed between the questions and the answers, it goes on and has paid once', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const env = { HANDRAIL_CONFIG: config, HANDRAIL_DATA: path, HANDRAIL_LEASE_MS: '300' }
  const first = await startServer(env)
  onTestFinished(() => first.kill())
  const stream = await chatsClient(first.url).start('chat', 'trip #4')
  for (const _ of ['colour', 'size']) await stream.until('approval_required')
  await first.kill()
  const second = await startServer(env)
  onTestFinished(() => second.kill())
  const client = chatsClient(second.url)
  const waiting = (await client.chat('chat')).interactions.at(-1)
  expect(waiting.approvals.length).toBe(2)
  const rest = (await client.join('chat', waiting.id)).rest()
  await answer(client, waiting.approvals)
  await rest
  expect(await said(client)).toEqual([round(4)])
})

test('on the workflow API its questions are answered too, after a kill', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const env = { HANDRAIL_CONFIG: config, HANDRAIL_DATA: path, HANDRAIL_LEASE_MS: '300' }
  const first = await startServer(env)
  onTestFinished(() => first.kill())
  const messages = [{ role: 'user', content: 'trip #5' }]
  const body = { messages, session_id: 'chat', agent: 'trip' }
  const stream = await chatsClient(first.url).open('POST', '/copilotkit/chat', body)
  const asked: { approval_id: string; title: string }[] = []
  for (const _ of ['colour', 'size'])
    asked.push((await stream.until('approval_required')).at(-1)!.data.data)
  await first.kill()
  const second = await startServer(env)
  onTestFinished(() => second.kill())
  const client = chatsClient(second.url)
  const one = `/copilotkit/approval/${asked[0]!.approval_id}`
  const refused = await client.request('POST', one, { action: 'reject', answer: 'red' })
  expect(refused.status).toBe(400)
  for (const { approval_id, title } of asked) {
    const answer = { action: 'approve', answer: words[title] }
    const response = await client.request('POST', `/copilotkit/approval/${approval_id}`, answer)
    expect(await response.json()).toEqual({ success: true })
  }
  const joined = await client.open('GET', '/copilotkit/chat?session_id=chat')
  const end = (await joined.until('workflow_completed')).at(-1)!.data.data
  expect(end.final_output.results.output).toBe(answerTo('big and red, paid 5'))
})
