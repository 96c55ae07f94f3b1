import { expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { type ErrorCode, RuntimeError } from '../../src/core/errors.ts'
import { textOf } from '../../src/core/messages.ts'
import { text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { look, send, story } from '../support/story.ts'
import { coreClient } from './support.ts'

interface Outline {
  status: string
  head: string
  name: string | null
  queued: number
  turns: {
    runId: string
    status: string
    messageId: string
    branches: string[]
    error: object | null
  }[]
  calls: Record<string, { state: string; startedAt?: number; endedAt?: number }>
  asks: { id: string; kind: string; title: string; callId?: string }[]
  decided: { id: string; runId: string; state: string }[]
}
type Server = Awaited<ReturnType<typeof story>>

const numbered: Parameters<typeof story>[0] = ({ messages }) => [
  text(`Answer to ${messages.filter(({ role }) => role === 'user').length}.`),
]

const outline = async (server: Server, thread = 't') =>
  (await (await server.request('GET', `/copilotkit/threads/${thread}/outline`)).json()) as Outline

test('branches of a turn are named, and each can be shown and gone on with', async () => {
  const server = await story(numbered)
  const client = await coreClient(server.url, 't')
  await client.say('one')
  const first = client.agent.messages[0]!.id
  await client.say('two')
  client.agent.setMessages([])
  await client.say('uno', { forwardedProps: { handrail: { branchFrom: first } } })
  const edited = await outline(server)
  expect(edited).toMatchObject({ status: 'idle', turns: [{ status: 'completed' }] })
  const [old, now] = edited.turns[0]!.branches
  expect(edited.head).toBe(now)

  const show = (runId: string) =>
    server.request('PUT', '/copilotkit/threads/t/head', { runId }).then((one) => one.json())
  expect(await show(old!)).not.toMatchObject({ head: old }) // its newest tip: the answer to "two"
  await client.connect()
  expect(client.shown()).toEqual([
    ...['user: one', 'assistant: Answer to 1.', 'user: two', 'assistant: Answer to 2.'],
  ])
  await client.say('three')
  expect(client.shown().at(-1)).toBe('assistant: Answer to 3.')
  expect(await show(now!)).toEqual({ id: 't', head: now })
  await client.connect()
  expect(client.shown()).toEqual(['user: uno', 'assistant: Answer to 1.'])
  expect(await show('run_nobody')).toMatchObject({ code: 'run_not_found' })
})

test('no other branch is shown while something runs', async () => {
  const stand = gate()
  const server = await story(async function* ({ messages }, _call, signal) {
    if (messages.length > 2) await stand.pass(signal)
    yield text('Yes.')
  })
  const client = await coreClient(server.url, 't')
  await client.say('one')
  const first = client.agent.messages[0]!.id
  const { head } = await outline(server)
  client.agent.setMessages([])
  await client.say('uno', { forwardedProps: { handrail: { branchFrom: first } } })
  const running = client.say('two')
  await stand.reached
  const answer = await server.request('PUT', '/copilotkit/threads/t/head', { runId: head })
  expect([answer.status, await answer.json()]).toMatchObject([409, { code: 'thread_busy' }])
  stand.open()
  await running
})

test('calls tell how they stand, while they run and afterwards', async () => {
  const server = await story([[look('1', 'sea')], [text('Blue.')]])
  const client = await coreClient(server.url, 't')
  const { events } = await client.say('the sea?')
  const told = events.filter(({ name }) => name === 'handrail:call').map(({ value }) => value)
  expect(told).toMatchObject([
    { toolCallId: '1', state: 'running', at: expect.any(Number) },
    { toolCallId: '1', state: 'done', at: expect.any(Number) },
  ])
  const { calls } = await outline(server)
  expect(calls).toEqual({
    1: { state: 'done', startedAt: expect.any(Number), endedAt: expect.any(Number) },
  })
})

test('what is asked is in the outline, and the list says that the thread waits', async () => {
  const server = await story([[send('1')], [text('Done.')]])
  const client = await coreClient(server.url, 't')
  await client.say('pay ann')
  const { status, asks } = await outline(server)
  expect([status, asks]).toMatchObject(['waiting', [{ kind: 'approval', callId: '1' }]])
  const list = await server.request('GET', '/copilotkit/threads?search=PAY')
  expect(await list.json()).toMatchObject({ threads: [{ id: 't', status: 'waiting' }] })
  const none = await server.request('GET', '/copilotkit/threads?search=nobody')
  expect(await none.json()).toMatchObject({ threads: [] })
})

test('a message that may wait waits; one that may not takes the place of what runs', async () => {
  const stand = gate()
  const server = await story(async function* ({ messages }, _call, signal) {
    if (messages.length === 1) await stand.pass(signal)
    yield text(`Heard ${messages.length}.`)
  })
  const [one, two, three] = await Promise.all([
    ...['t', 't', 't'].map((thread) => coreClient(server.url, thread)),
  ])
  const first = one!.say('one')
  await stand.reached
  const second = two!.say('two', { forwardedProps: { handrail: { whenBusy: 'queue' } } })
  await expect.poll(async () => (await outline(server)).queued).toBe(1)
  await three!.say('three', { forwardedProps: { handrail: { whenBusy: 'cancel' } } })
  await Promise.all([first, second])
  expect(three!.shown().at(-1)).toMatch(/^assistant: Heard/)
  const { turns } = await outline(server)
  expect(turns.map(({ status }) => status)).toContain('cancelled')
})

test('who watches a thread is told when it changes, and that it is gone', async () => {
  const server = await story(numbered)
  const client = await coreClient(server.url, 't')
  await client.say('one')
  const response = await fetch(`${server.url}/copilotkit/threads/t/watch`)
  let heard = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) heard += decoder.decode(chunk as Uint8Array)
  })()
  const last = () => JSON.parse(heard.trim().split('data: ').at(-1) ?? '{}')
  await expect.poll(() => heard).toContain('"status":"idle"')
  await server.request('PATCH', '/copilotkit/threads/t', { name: 'Other' })
  await expect.poll(() => last().name).toBe('Other')
  await client.say('two')
  await expect.poll(() => last()).toMatchObject({ status: 'idle', seq: expect.any(Number) })
  await server.request('DELETE', '/copilotkit/threads/t')
  await reading
  expect((await fetch(`${server.url}/copilotkit/threads/t/watch`)).status).toBe(404)
  expect(await outline(server)).toBeNull()
})

test('how a question ended stays in the outline: who decided, where, and on which arguments', async () => {
  const server = await story([[send('1')], [text('Done.')]])
  const client = await coreClient(server.url, 't')
  await client.say('pay ann')
  const [{ id } = { id: '' }] = (await outline(server)).asks
  const input = { to: 'ann', amount: 3 }
  const said = { approved: true, reason: 'Less.', edited_input: input, remember: { minutes: 10 } }
  await server.request('POST', `/approvals/${id}`, said)
  await expect.poll(async () => (await outline(server)).status).toBe('idle')
  expect(await outline(server)).toMatchObject({
    asks: [],
    decided: [
      {
        ...{
          id,
          callId: '1',
          state: 'approved',
          reason: 'Less.',
          input,
          remember: { minutes: 10 },
        },
        by: { type: 'user', id: 'local', wire: 'approvals' },
        at: expect.any(Number),
      },
    ],
    governor: { isHitlEnabled: false, actionsUsed: 2 },
  })
})

test('the outline says which calls did something that no other branch undoes', async () => {
  const server = await story([[look('1', 'sea'), send('2')], [send('3')], [text('Done.')]])
  const client = await coreClient(server.url, 't')
  await client.say('pay ann')
  const decide = async (said: object) => {
    const [{ id } = { id: '' }] = (await outline(server)).asks
    await server.request('POST', `/approvals/${id}`, said)
    await expect.poll(async () => (await outline(server)).asks[0]?.id).not.toBe(id)
  }
  await decide({ approved: true })
  await expect.poll(async () => (await outline(server)).asks).toHaveLength(1)
  await decide({ approved: false })
  await expect.poll(async () => (await outline(server)).status).toBe('idle')
  const { calls } = await outline(server)
  expect(calls).toMatchObject({ 1: { state: 'done' }, 2: { state: 'done', stays: true } })
  expect(calls['1']).not.toHaveProperty('stays')
  expect(calls['3']).not.toHaveProperty('stays')
})

test('a completed turn with a decision that is on no call stays in the outline when the chat goes on', async () => {
  const planner: Agent = {
    name: 'planner',
    // biome-ignore lint/correctness/useYield: it says nothing
    async *run(ctx) {
      if (textOf(ctx.messages().at(-1)!) !== 'plan') return
      await ctx.ask({ key: 'plan', kind: 'approval', title: 'Follow the plan' })
    },
  }
  const server = await story([], { agents: [planner] })
  await (await server.start('t', 'no plan')).rest()
  const plan = await server.start('t', 'plan')
  await plan.until('approval_required')
  const [{ id } = { id: '' }] = (await outline(server)).asks
  await server.request('POST', `/approvals/${id}`, { approved: true })
  await plan.rest()
  await (await server.start('t', 'thanks')).rest()
  const { turns, decided } = await outline(server)
  expect(decided).toMatchObject([{ id, state: 'approved' }])
  expect(turns).toMatchObject([{ runId: decided[0]!.runId }, { status: 'completed' }])
  expect(turns).toHaveLength(2)
})

test('the outline marks the message of an error that is not the default one of its code', async () => {
  const clerk: Agent = {
    name: 'clerk',
    // biome-ignore lint/correctness/useYield: it fails before it says anything
    async *run(ctx) {
      const [code, message] = textOf(ctx.messages().at(-1)!).split(': ')
      throw new RuntimeError(code as ErrorCode, message)
    },
  }
  const server = await story([], { agents: [clerk] })
  const words = 'The CRM allows ten questions an hour.'
  for (const message of [`rate_limit: ${words}`, 'rate_limit'])
    await (await server.start('t', message)).rest()
  expect((await outline(server)).turns.map(({ error }) => error)).toEqual([
    { code: 'rate_limit', message: words, specific: true },
    { code: 'rate_limit', message: 'The model provider asks us to slow down.' },
  ])
})
