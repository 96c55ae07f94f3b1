import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import type { ModelEvent } from '../../src/core/model.ts'
import { applyPatch } from '../../src/lib/json-patch.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Frame } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { type Served, serve } from '../support/serve.ts'
import { tools } from '../support/tools.ts'

const body = {
  ...{ threadId: 'c', runId: 'r', tools: [], context: [], state: {}, forwardedProps: {} },
  messages: [{ id: 'm1', role: 'user', content: 'hi' }],
}
const routes = [
  { name: 'POST /agent/{id}/run', path: '/copilotkit/agent/default/run', body },
  {
    name: 'POST to the base path',
    path: '/copilotkit',
    body: { method: 'agent/run', params: { agentId: 'default' }, body },
  },
]

/** Events as lines, with the parts of one text put together: how a text is cut is not told twice the same. */
function joined(frames: readonly Frame[]): string[] {
  const lines: string[] = []
  let open: { key: string; text: string } | undefined
  const close = () => {
    if (open) lines.push(`${open.key} ${open.text}`)
    open = undefined
  }
  for (const { data } of frames) {
    const { type, messageId, toolCallId, delta } = data
    const key = `${type} ${messageId ?? toolCallId}`
    if (typeof delta === 'string' && open?.key === key) open.text += delta
    else {
      close()
      if (typeof delta === 'string') open = { key, text: delta }
      else lines.push(JSON.stringify(data))
    }
  }
  close()
  return lines
}

const thought = (words: string): ModelEvent => ({ type: 'reasoning', text: words })
const script = () =>
  scriptedModel([
    [
      thought('Hm, '),
      thought('well.'),
      text('I look'),
      text(' at it. '),
      call('1', 'look', { at: 'sea' }),
    ],
    [text('It is '), text('the '), text('sea.')],
  ])

const starts = async (server: Served) =>
  (await server.journal('c')).filter(
    ({ kind, body: of }) => kind === 'run.queued' && of.why === 'start',
  )

describe.each(routes)('$name with Last-Event-ID', (route) => {
  const post = (server: Served, last?: string) =>
    server.open('POST', route.path, route.body, last === undefined ? {} : { 'last-event-id': last })

  test('continues the ended stream after every event, and starts no run', async () => {
    const server = await serve({ model: script(), tools: tools().all, builtIns: false })
    const whole = await (await post(server)).rest()
    const ids = whole.map(({ id }) => id)
    expect(new Set(ids).size, ids.join(' ')).toBe(ids.length)
    for (const [n, { id }] of whole.entries()) {
      const rest = await (await post(server, id)).rest()
      expect(joined([...whole.slice(0, n + 1), ...rest]), id).toEqual(joined(whole))
    }
    expect(await starts(server)).toHaveLength(1)
  })

  test('continues a live stream after every event, exactly where it was cut', async () => {
    const gates = Array.from({ length: 4 }, () => gate())
    const model = scriptedModel(async function* () {
      for (const [n, one] of gates.entries()) {
        yield n === 0 ? thought('Hm. ') : text(`piece ${n} `)
        await one.pass()
      }
    })
    const server = await serve({ model, builtIns: false })
    const live = await post(server)
    const seen: Frame[] = []
    const cut: { n: number; rest: Promise<Frame[]> }[] = []
    for (const [n, one] of gates.entries()) {
      const wanted = n === 0 ? 'Hm. ' : `piece ${n} `
      for (;;) {
        seen.push((await live.frames.next()).value!)
        const { id, data } = seen.at(-1)!
        const stream = await post(server, id)
        cut.push({ n: seen.length, rest: stream.rest() })
        if (data.delta === wanted) break
      }
      one.open()
    }
    seen.push(...(await live.rest()))
    for (const { n, rest } of cut)
      expect(joined([...seen.slice(0, n), ...(await rest)])).toEqual(joined(seen))
    expect(await starts(server)).toHaveLength(1)
  })

  test.each([
    ['of another run', '3@run_unknown'],
    ['that is not one of ours', 'nonsense'],
    ['of the future', '99999'],
  ])('gets 400 for an id %s, and starts nothing', async (_, id) => {
    const server = await serve({ model: script(), builtIns: false })
    const response = await server.request('POST', route.path, route.body, { 'last-event-id': id })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_cursor' })
    expect((await server.request('GET', '/chats/c')).status).toBe(404)
  })

  test('accepts an id of an older server, and shows the thread as it is', async () => {
    const model = script()
    const server = await serve({ model, tools: tools().all, builtIns: false })
    const whole = await (await post(server)).rest()
    const rest = await (await post(server, whole[4]!.id.replace(/[!@].*$/, ''))).rest()
    const types = rest.map(({ data }) => data.type)
    expect(types).toContain('MESSAGES_SNAPSHOT')
    expect(types).not.toContain('RUN_STARTED')
    expect(types.at(-1)).toBe('RUN_FINISHED')
    expect(model.requests).toHaveLength(2)
  })
})

test('steps and states of an agent continue after every event', async () => {
  const agent: Agent = {
    name: 'steps',
    async *run(ctx) {
      yield { type: 'step', name: 'one', done: false }
      yield { type: 'state', value: { list: [1], done: false } }
      yield { type: 'state', value: { list: [1, 2], done: false } }
      yield { type: 'step', name: 'one', done: true }
      yield { type: 'step', name: 'two', done: false }
      yield { type: 'state', value: { list: [1, 2, 3], done: true } }
      const parts = [{ type: 'text' as const, text: 'Done.' }]
      yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
    },
  }
  const server = await serve({ agents: [agent] })
  const path = '/copilotkit/agent/steps/run'
  const whole = await (await server.open('POST', path, body)).rest()
  const brackets = (frames: readonly Frame[]) =>
    joined(frames).filter((line) => !line.includes('"STATE_'))
  const stateAfter = (frames: readonly Frame[]) => {
    let state: unknown = {}
    for (const { data } of frames) {
      if (data.type === 'STATE_SNAPSHOT') state = data.snapshot
      if (data.type === 'STATE_DELTA') state = applyPatch(state, data.delta)
    }
    return state
  }
  expect(stateAfter(whole)).toEqual({ list: [1, 2, 3], done: true })
  for (const [n, { id }] of whole.entries()) {
    const rest = await (await server.open('POST', path, body, { 'last-event-id': id })).rest()
    const all = [...whole.slice(0, n + 1), ...rest]
    expect(stateAfter(all), id).toEqual(stateAfter(whole))
    expect(brackets(all), id).toEqual(brackets(whole))
  }
})

test('a client that joined a live run continues after every event with the same messages', async () => {
  const gates = Array.from({ length: 3 }, () => gate())
  const model = scriptedModel(async function* () {
    for (const [n, one] of gates.entries()) {
      yield text(`piece ${n} `)
      await one.pass()
    }
  })
  const server = await serve({ model, builtIns: false })
  const live = await server.open('POST', '/copilotkit/agent/default/run', body)
  await gates[0]!.reached
  const connect = (last?: string) =>
    server.open(
      ...(['POST', '/copilotkit/agent/default/connect'] as const),
      { ...body, messages: [] },
      last === undefined ? {} : { 'last-event-id': last },
    )
  const stream = await connect()
  const seen: Frame[] = []
  const cut: { n: number; rest: Promise<Frame[]> }[] = []
  gates[0]!.open()
  while (seen.at(-1)?.data.delta !== 'piece 1 ') {
    seen.push((await stream.frames.next()).value!)
    cut.push({ n: seen.length, rest: (await connect(seen.at(-1)!.id)).rest() })
  }
  gates[1]!.open()
  gates[2]!.open()
  seen.push(...(await stream.rest()))
  await live.rest()
  expect(shown(seen)).toEqual(['user: hi', 'assistant: piece 0 piece 1 piece 2 '])
  for (const { n, rest } of cut)
    expect(shown([...seen.slice(0, n), ...(await rest)])).toEqual(shown(seen))
})

/** The messages that a client has after these events. */
function shown(frames: readonly Frame[]): string[] {
  let messages: { id: string; role: string; content: string }[] = []
  for (const { data } of frames) {
    if (data.type === 'MESSAGES_SNAPSHOT') messages = structuredClone(data.messages)
    const known = messages.find(({ id }) => id === data.messageId)
    if (data.type === 'TEXT_MESSAGE_START' && !known)
      messages.push({ id: data.messageId, role: 'assistant', content: '' })
    if (data.type === 'TEXT_MESSAGE_CONTENT') known!.content += data.delta
  }
  return messages.map(({ role, content }) => `${role}: ${content}`)
}

test('a suggestion request with Last-Event-ID makes no model call', async () => {
  const model = script()
  const server = await serve({ model, builtIns: false })
  const path = '/copilotkit/agent/default/suggest'
  const response = await server.request('POST', path, body, { 'last-event-id': '3@run_x' })
  expect(response.status).toBe(400)
  expect(model.requests).toEqual([])
})

test.each([999_999_999, 536_870_889, 5])(
  'a Last-Event-ID that counts %i characters of an open message continues the stream',
  async (count) => {
    const server = await serve({ model: script(), tools: tools().all, builtIns: false })
    const events = await (await server.open('POST', routes[0]!.path, body)).rest()
    expect(events.at(-1)?.data.type).toBe('RUN_FINISHED')
    const run = (await server.journal('c')).find(({ kind }) => kind === 'run.queued')!
    for (const path of ['run', 'connect']) {
      const at = { 'last-event-id': `${run.seq}!t:m1:${count}@${run.runId}@c` }
      const stream = await server.open('POST', `/copilotkit/agent/default/${path}`, body, at)
      expect(stream.response.status).toBe(200)
      expect((await stream.rest()).at(-1)?.data.type).toBe('RUN_FINISHED')
    }
  },
)
