import { expect, onTestFinished, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { httpClient } from '../clients/support.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import {
  ask,
  finished,
  interactionOf,
  interrupted,
  remote,
  sse,
  started,
  textEvents,
} from './support.ts'

/** Asks whether it may, in the same words and under the same id each time, and says what it heard. */
const asking = () =>
  remote(({ body }, response) => {
    const [answer] = body.resume ?? []
    const question = { id: 'i1', reason: 'confirmation', message: 'Delete 3 rows?' }
    sse(
      response,
      answer
        ? [started, ...textEvents('m2', `{"deleted":${answer.payload.approved}}`), finished]
        : [started, ...textEvents('m1', 'May I?'), interrupted(question)],
    )
  })

const shared = async (server: Awaited<ReturnType<typeof serve>>, agent = 'flow') => {
  const { state } = await server.server.runtime.thread('c')
  return state.states.get(agent)
}

test('a remote agent is a step: what it asks surfaces with the way to it, and each answer finds its leg', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const far = await asking()
  const parallel = [
    { agent: 'far', outputKey: 'a' },
    { agent: 'far', outputKey: 'b' },
  ]
  const inner = workflow({ name: 'inner', steps: [{ agent: 'far', outputKey: 'x' }] })
  const flow = workflow({
    name: 'flow',
    steps: [{ parallel: [...parallel, { agent: inner, outputKey: 'in' }] }],
  })
  const settings = { agents: [flow, aguiAgent({ name: 'far', url: `${far.url}/run` })] }
  const first = await serve(settings, { data: path })
  const run = interactionOf((await first.start('c', 'go')).response)
  await first.recorded('c', 'run.waiting')
  await first.close()
  const second = await serve(settings, { data: path })
  const client = httpClient(second.url, 'c', { agentId: 'flow' })
  await client.connect()
  const pending = client.agent.pendingInterrupts as unknown as {
    id: string
    message: string
    metadata: { agent: string; path: string }
  }[]
  const asked = pending.map(({ message, metadata }) => [metadata.path, metadata.agent, message])
  expect(asked.sort()).toEqual([
    ['a', 'far', 'Delete 3 rows?'],
    ['b', 'far', 'Delete 3 rows?'],
    ['in/x', 'far', 'Delete 3 rows?'],
  ])
  const { interactions } = await second.chat('c')
  const cards = interactions[0].approvals.map(({ card }: { card: { path: string } }) => card.path)
  expect(cards.sort()).toEqual(['a', 'b', 'in/x'])
  for (const { id: approval_id, metadata } of pending)
    await second.approve('c', run, { approval_id, approved: metadata.path !== 'b' })
  await second.recorded('c', 'run.completed')
  expect(await shared(second)).toMatchObject({
    a: { deleted: true },
    b: { deleted: false },
    in: { results: { x: { deleted: true } } },
  })
  // Each has a thread of its own there, and the answer came back to the one that asked.
  const threads = far.asked.map(({ body }) => body.threadId)
  expect(new Set(threads.slice(0, 3)).size).toBe(3)
  expect(threads.slice(3).sort()).toEqual(threads.slice(0, 3).sort())
})

test('a remote agent begins afresh with every run that it is a step of', async () => {
  const far = await remote((_, response) =>
    sse(response, [started, ...textEvents('m1', 'Done.'), finished]),
  )
  const flow = workflow({ name: 'flow', steps: [{ agent: 'far', outputKey: 'a' }] })
  const server = await serve({
    agents: [flow, aguiAgent({ name: 'far', url: `${far.url}/run` })],
  })
  await ask(server, 'c', 'first')
  await ask(server, 'c', 'second')
  const [one, two] = far.asked.map(({ body }) => body)
  expect(two.messages).toHaveLength(1)
  expect(two.threadId).not.toBe(one.threadId)
})

test('a remote agent that is away costs its own step', async () => {
  const far = await remote(() => {})
  await far.close()
  const here = workflow({ name: 'here', steps: [] })
  const flow = workflow({
    name: 'flow',
    steps: [
      { agent: 'far', outputKey: 'a', required: false },
      { agent: here, outputKey: 'b' },
    ],
  })
  const away = aguiAgent({ name: 'far', url: `${far.url}/run`, attempts: 1 })
  const server = await serve({ agents: [flow, away] })
  const frames = await ask(server, 'c', 'go')
  expect(frames.at(-1)!.data.status).toBe('COMPLETED')
  expect(await shared(server)).toMatchObject({
    agents_completed: ['here'],
    errors: [{ agent: 'far', code: 'remote_unavailable', critical: false }],
  })
})
