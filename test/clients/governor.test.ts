import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { type Served, serve } from '../support/serve.ts'
import { look } from '../support/story.ts'
import { said, tools } from '../support/tools.ts'
import {
  type Client,
  clients,
  coreClient,
  ending,
  finished,
  httpClient,
  poster,
  refusal,
  runBody,
  toolMessage,
} from './support.ts'

const card = { name: 'reconfigureHITL', description: 'A card', parameters: { type: 'object' } }
const budget = { tools: [card] }

/** Each message leads to three calls: two look something up, the third answers. */
async function start(env: Record<string, string>) {
  const box = tools()
  const model = scriptedModel((_, call) => {
    const step = call % 3
    return step < 2 ? [look(`look-${call}`, `place ${call}`)] : [text(`Answer ${call}.`)]
  })
  const server = await serve({ model, tools: box.all, builtIns: false }, { env })
  return { ...server, ...box, model }
}

const on = (limit: number) => ({ HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: String(limit) })

const governor = async ({ request }: Served) => (await request('GET', '/threads/t/governor')).json()

/** The call of the card that a stream ended with. */
function cardOf({ events }: Parameters<typeof ending>[0]) {
  const last = events.findLast(({ type }) => type === 'TOOL_CALL_START')!
  const of = (one: (typeof events)[number]) => one.toolCallId === last.toolCallId
  const args = events.filter((one) => one.type === 'TOOL_CALL_ARGS' && of(one))
  const input = JSON.parse(args.map(({ delta }) => delta).join(''))
  return { id: last.toolCallId as string, name: last.toolCallName, input }
}

const meter = ({ streams }: Client) =>
  streams
    .flatMap(({ events }) => events)
    .flatMap(({ type, name, value }) =>
      type === 'CUSTOM' && name === 'handrail:governor' ? [value.remaining] : [],
    )

describe.each(clients)('the four steps of the budget, in $name', ({ open }) => {
  test('off: no limit', async () => {
    const server = await start({ HANDRAIL_ACTION_LIMIT: '1' })
    const client = await open(server.url, 't')
    finished(await client.say('the sea?'))
    expect(server.model.requests).toHaveLength(3)
    expect(await governor(server)).toMatchObject({ mode: 'off', total: 3 })
  })

  test('on: until the budget is used up; then an interrupt, and the very call that waited', async () => {
    const server = await start(on(2))
    const client = await open(server.url, 't')
    const stream = await client.say('the sea?')
    expect(ending(stream).outcome.type).toBe('interrupt')
    expect(server.model.requests).toHaveLength(2)
    const [interrupt] = client.agent.pendingInterrupts
    expect(interrupt).toMatchObject({
      reason: 'handrail:budget',
      metadata: {
        kind: 'budget',
        input: {
          ...{ actionLimit: 2, isHitlEnabled: true, actionsUsed: 2, total: 2 },
          pending: {
            agent: 'assistant',
            model: 'scripted',
            purpose: 'result of look: saw place 1',
          },
        },
      },
    })
    const payload = { newLimit: 20, newStatus: true }
    await client.run({ resume: [{ interruptId: interrupt!.id, status: 'resolved', payload }] })
    expect(client.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(said(server.model.requests[2]).at(-1)).toBe('tool: saw place 1')
    expect(server.looked).toEqual(['place 0', 'place 1'])
    expect(await governor(server)).toMatchObject({ actionLimit: 20, actionsUsed: 1, total: 3 })
    expect(meter(client)).toEqual([1, 0, 20, 19])
    expect(client.errors).toEqual([])
  })
})

describe('the same where the page has reconfigureHITL', () => {
  test('a call that ends the stream, a result, and the very call that waited', async () => {
    const server = await start(on(2))
    const client = httpClient(server.url, 't')
    const stream = await client.say('the sea?', budget)
    finished(stream)
    expect(client.agent.pendingInterrupts).toEqual([])
    const { id, name, input } = cardOf(stream)
    expect(name).toBe('reconfigureHITL')
    expect(input).toMatchObject({
      ...{ actionLimit: 2, isHitlEnabled: true, actionsUsed: 2, total: 2 },
      pending: { purpose: 'result of look: saw place 1' },
      options: expect.arrayContaining([expect.objectContaining({ option: 'more', newLimit: 2 })]),
    })
    client.agent.addMessage(toolMessage(id, { newLimit: 20, newStatus: true }))
    await client.run(budget)
    expect(client.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(server.model.requests).toHaveLength(3)
    expect(await governor(server)).toMatchObject({ actionsUsed: 1, total: 3 })
  })

  test('runs in the page of CopilotKit: its handler reconfigures, twice', async () => {
    const server = await start(on(1))
    const client = await coreClient(server.url, 't')
    const seen: Record<string, unknown>[] = []
    client.core.addTool({
      name: 'reconfigureHITL',
      handler: async (args) => {
        seen.push(args as Record<string, unknown>)
        return { newLimit: seen.length, newStatus: true }
      },
    })
    await client.say('the sea?')
    expect(seen).toMatchObject([
      { actionLimit: 1, actionsUsed: 1, total: 1 },
      { actionLimit: 1, actionsUsed: 1, total: 2 },
    ])
    expect(client.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(server.model.requests).toHaveLength(3)
    expect(client.errors).toEqual([])
  })

  test('off, summarise and stop are results like others', async () => {
    const answers = [{ newStatus: false }, { option: 'summarise' }, { stop: true }]
    const made: number[] = []
    for (const answer of answers) {
      const server = await start(on(1))
      const client = httpClient(server.url, 't')
      const { id } = cardOf(await client.say('the sea?', budget))
      client.agent.addMessage(toolMessage(id, answer))
      expect(ending(await client.run(budget)).type).toBe('RUN_FINISHED')
      made.push(server.model.requests.length)
    }
    expect(made).toEqual([3, 2, 1])
  })

  test('what is no budget is refused by name, and the card stays', async () => {
    const server = await start(on(1))
    const client = httpClient(server.url, 't')
    const { id } = cardOf(await client.say('the sea?', budget))
    const post = poster(server.url)
    for (const [answer, field] of [
      [{ newLimit: 0 }, 'newLimit'],
      [{ newLimit: -5 }, 'newLimit'],
      [{ newLimit: 1e9 }, 'newLimit'],
      [{ newLimit: '20' }, 'newLimit'],
      [{ newStatus: 'yes' }, 'newStatus'],
      [{ option: 'cheaper' }, 'option'],
      [{}, 'newLimit'],
      ['NaN', 'content'],
      ['{"newLimit":NaN}', 'content'],
    ] as const) {
      const list = [...client.agent.messages, toolMessage(id, answer)]
      const { events } = await post('/agent/default/run', runBody('t', list, budget))
      expect(refusal({ events }), JSON.stringify(answer)).toMatchObject({
        ...{ type: 'RUN_ERROR', code: 'invalid_request' },
        message: expect.stringContaining(field),
      })
    }
    expect((await governor(server)).pending).toBe(id)
    expect(server.model.requests).toHaveLength(1)
  })
})

test('reconfigured twice at once, with two values and on different wires: one is the answer', async () => {
  for (let round = 0; round < 8; round++) {
    const server = await start(on(1))
    const client = httpClient(server.url, 't')
    const { id } = cardOf(await client.say('the sea?', budget))
    client.agent.addMessage(toolMessage(id, { newLimit: 30, newStatus: true }))
    const { interactions } = await server.chat('t')
    const approve = { approval_id: id, approved: true, newLimit: 40 }
    const [, approved, set] = await Promise.all([
      client.run(budget),
      server.approve('t', interactions[0].id, approve),
      server.request('PUT', '/threads/t/governor', { actionLimit: 50 }),
    ])
    expect([200, 400]).toContain(approved.status)
    expect(set.status).toBe(200)
    const journal = await server.journal('t')
    expect(journal.filter(({ kind }) => kind === 'ask.answered')).toHaveLength(1)
    const sets = journal.flatMap((one) => (one.kind === 'governor.set' ? [one.body] : []))
    // Who came later to the ops route has set the limit after all; what was counted stays.
    expect(sets.filter(({ resetCounter }) => resetCounter)).toHaveLength(1)
    await expect.poll(() => server.model.requests.length).toBe(3)
    expect(await governor(server)).toMatchObject({ actionsUsed: 2, total: 3, mode: 'auto' })
    await server.close()
  }
})

describe('suggestions', () => {
  const chips = { ...card, name: 'copilotkitSuggest' }
  const suggest = async (server: Served, thread: string) => {
    const post = poster(server.url)
    const user = { id: 'u', role: 'user', content: 'hi' }
    const { events } = await post(
      '/agent/default/suggest',
      runBody(thread, [user], { tools: [chips] }),
    )
    return events
  }

  test('are counted on their thread, and left out with a notice when its budget is spent', async () => {
    const server = await start(on(4))
    const client = httpClient(server.url, 't')
    finished(await client.say('the sea?'))
    expect((await suggest(server, 't')).some(({ type }) => type === 'TOOL_CALL_START')).toBe(true)
    expect(await governor(server)).toMatchObject({ actionsUsed: 4, total: 4 })
    const events = await suggest(server, 't')
    expect(events.map(({ type, name }) => name ?? type)).toEqual([
      ...['RUN_STARTED', 'handrail:skipped', 'RUN_FINISHED'],
    ])
    expect(server.model.requests).toHaveLength(4)
    expect(await governor(server)).toMatchObject({ pending: null, total: 4 })
  })

  test('without a thread are counted on the user and the day, where no list shows it', async () => {
    const server = await start({ HANDRAIL_USER_LIMIT: '2' })
    const answers = await Promise.all([1, 2, 3, 4].map(() => suggest(server, 'nobody')))
    const made = answers.filter((events) => events.some(({ type }) => type === 'TOOL_CALL_START'))
    expect(made).toHaveLength(2)
    expect(server.model.requests).toHaveLength(2)
    const chats = await (await server.request('GET', '/chats')).json()
    expect(chats).toEqual({ chats: [], next_cursor: null })
    const threads = await (await server.request('GET', '/copilotkit/threads')).json()
    expect(threads).toMatchObject({ threads: [] })
  })
})
