import { describe, expect, test } from 'vitest'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Frame } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { tools } from '../support/tools.ts'

interface Wire {
  name: string
  path: string
  body: object
  /** Events that hold a part of a text, and the part. */
  part(frame: Frame): { of: string; text: string } | undefined
}

const wires: Wire[] = [
  {
    name: 'POST /chats/{id}/interactions',
    path: '/chats/c/interactions',
    body: { user_message: 'hi' },
    part: ({ event, data }) =>
      event === 'answer_delta' ? { of: data.message_id, text: data.delta } : undefined,
  },
  {
    name: 'POST /copilotkit/chat',
    path: '/copilotkit/chat',
    body: { messages: [{ role: 'user', content: 'hi' }] },
    part: ({ event, data }) =>
      event === 'agent_stream' ? { of: data.data.agent, text: data.data.content } : undefined,
  },
]

/** Frames with the parts of one text put together: how a text is cut is not told twice the same. */
function joined({ part }: Wire, frames: readonly Frame[]): string[] {
  const lines: string[] = []
  let open: { of: string; text: string } | undefined
  const close = () => {
    if (open) lines.push(`${open.of}: ${open.text}`)
    open = undefined
  }
  for (const frame of frames) {
    const one = part(frame)
    if (one && open?.of === one.of) open.text += one.text
    else {
      close()
      if (one) open = { ...one }
      else lines.push(`${frame.event} ${JSON.stringify({ ...frame.data, timestamp: '' })}`)
    }
  }
  close()
  return lines
}

const runsOf = async (server: Served) => {
  const { chats } = await (await server.request('GET', '/chats')).json()
  const all = await Promise.all(chats.map(({ id }: { id: string }) => server.journal(id)))
  return all.flat().filter(({ kind, body }) => kind === 'run.queued' && body.why === 'start').length
}

const script = () =>
  scriptedModel([
    [text('I look'), text(' at it. '), call('1', 'look', { at: 'sea' })],
    [text('It is '), text('the '), text('sea.')],
  ])

describe.each(wires)('$name with Last-Event-ID', (wire) => {
  test('continues the ended stream after every frame, and starts no run', async () => {
    const server = await serve({ model: script(), tools: tools().all, builtIns: false })
    const whole = await (await server.open('POST', wire.path, wire.body)).rest()
    expect(whole.length).toBeGreaterThan(5)
    expect(new Set(whole.map(({ id }) => id)).size).toBe(whole.length)
    for (const [n, { id }] of whole.entries()) {
      const stream = await server.open('POST', wire.path, wire.body, { 'last-event-id': id })
      const rest = await stream.rest()
      const told = joined(wire, [...whole.slice(0, n + 1), ...rest])
      if (wire.path === '/copilotkit/chat') expect(told, id).toEqual(joined(wire, whole))
      else expect(told.at(-1)).toBe(joined(wire, whole).at(-1)) // the whole answer follows its parts
    }
    expect(await runsOf(server)).toBe(1)
  })

  test('continues a live stream after every frame, exactly where it was cut', async () => {
    const gates = Array.from({ length: 4 }, () => gate())
    const model = scriptedModel(async function* () {
      for (const [n, one] of gates.entries()) {
        yield text(`piece ${n} `)
        await one.pass()
      }
    })
    const server = await serve({ model, builtIns: false })
    const first = await server.open('POST', wire.path, wire.body)
    const seen: Frame[] = []
    let stream = first
    for (const [n, one] of gates.entries()) {
      for (;;) {
        const { value } = await stream.frames.next()
        seen.push(value!)
        if (wire.part(value!)?.text === `piece ${n} `) break
      }
      stream.leave()
      one.open()
      if (n === 2) await gates[3]!.reached
      stream = await server.open('POST', wire.path, wire.body, { 'last-event-id': seen.at(-1)!.id })
      expect(stream.response.status).toBe(200)
    }
    seen.push(...(await stream.rest()))
    const parts = seen.flatMap((frame) => wire.part(frame)?.text ?? [])
    expect(parts.join('')).toBe('piece 0 piece 1 piece 2 piece 3 ')
    expect(seen.some(({ event }) => event === 'retracted')).toBe(false)
    expect(await runsOf(server)).toBe(1)
  })

  test.each([
    ['of another run', '3@run_unknown'],
    ['of another session', '3@run_unknown@elsewhere'],
    ['that is not one of ours', 'nonsense'],
    ['of the future', '99999'],
  ])('gets 400 for an id %s, and starts nothing', async (_, id) => {
    const server = await serve({ model: script(), builtIns: false })
    const response = await server.request('POST', wire.path, wire.body, { 'last-event-id': id })
    expect(response.status).toBe(400)
    expect((await response.json()).error).toMatchObject({
      ...{ code: 'invalid_cursor', field: 'header.last-event-id' },
    })
    expect(await runsOf(server)).toBe(0)
  })

  test("treats another user's id as unknown", async () => {
    const env = { HANDRAIL_API_KEYS: 'key-of-ann-1234567=ann,key-of-bob-1234567=bob' }
    const server = await serve({ model: script(), builtIns: false }, { env })
    const as = (who: string) => ({ authorization: `Bearer key-of-${who}-1234567` })
    const own = await server.open('POST', wire.path, wire.body, as('ann'))
    const { id } = (await own.frames.next()).value!
    const by = { ...as('bob'), 'last-event-id': id }
    const response = await server.request('POST', wire.path, wire.body, by)
    expect(response.status).toBe(400)
    expect((await response.json()).error.code).toBe('invalid_cursor')
    await own.rest()
    const list = await server.request('GET', '/chats', undefined, as('bob'))
    expect((await list.json()).chats).toEqual([])
  })
})

test('parallel steps continue exactly after every frame of a live stream', async () => {
  const gates = { first: gate(), second: gate() }
  const model = scriptedModel(async function* (request, n) {
    const name = n === 0 ? 'first' : 'second'
    yield text(`${name} one `)
    yield text(`${name} two `)
    await gates[name].pass()
    yield text(`${name} end`)
    void request
  })
  const parallel = ['first', 'second'].map((name) => ({
    agent: toolLoop({ name }),
    outputKey: name,
  }))
  const flow = workflow({ name: 'flow', steps: [{ parallel }] })
  const server = await serve({ model, agents: [flow], builtIns: false })
  const [, wire] = wires as [Wire, Wire]
  const body = { ...wire.body, agent: 'flow' }
  const live = await server.open('POST', wire.path, body)
  const seen: Frame[] = []
  const until = async (n: number) => {
    while (seen.filter((frame) => wire.part(frame)).length < n)
      seen.push((await live.frames.next()).value!)
  }
  await until(4)
  gates.first.open()
  await until(5)
  const readers = await Promise.all(
    seen
      .map(async ({ id }) => {
        const stream = await server.open('POST', wire.path, body, { 'last-event-id': id })
        const early = await stream.frames.next()
        return { id, stream, early: early.value }
      })
      .slice(0, -1),
  )
  gates.second.open()
  seen.push(...(await live.rest()))
  const textsOf = (frames: readonly Frame[]) => {
    const texts: Record<string, string> = {}
    for (const frame of frames) {
      const one = wire.part(frame)
      if (one) texts[one.of] = (texts[one.of] ?? '') + one.text
    }
    return texts
  }
  for (const [n, { stream, early }] of readers.entries()) {
    const frames = [...seen.slice(0, n + 1), early!, ...(await stream.rest())]
    expect(textsOf(frames)).toEqual(textsOf(seen))
  }
})

test('a repeated POST to edit or retry continues the run that the first one started', async () => {
  const model = scriptedModel((_request, n) =>
    n === 2 ? [new Error('no')] : [text(`Answer ${n}.`)],
  )
  const server = await serve({ model, builtIns: false })
  const first = await (await server.start('c', 'one')).rest()
  const { interaction_id } = first[0]!.data
  const edit = `/chats/c/interactions/${interaction_id}/edit`
  const body = { new_user_message: 'two' }
  const edited = await (await server.open('POST', edit, body)).rest()
  const again = { 'last-event-id': edited[0]!.id }
  expect(await (await server.open('POST', edit, body, again)).rest()).toEqual(
    edited.filter(({ event }) => event !== 'answer_delta').slice(1),
  )
  const failed = await (await server.start('c', 'three')).rest()
  const retry = `/chats/c/interactions/${failed[0]!.data.interaction_id}/retry`
  const retried = await (await server.open('POST', retry)).rest()
  expect(retried.at(-1)!.data.status).toBe('COMPLETED')
  const calls = model.requests.length
  const rest = await server.open('POST', retry, undefined, { 'last-event-id': retried[0]!.id })
  expect((await rest.rest()).at(-1)).toEqual(retried.at(-1))
  expect(model.requests).toHaveLength(calls)
})

test('a GraphQL request with Last-Event-ID joins the run of its message, and starts none for a new message', async () => {
  const model = scriptedModel(() => [text('Hello.')])
  const server = await serve({ model })
  const send = (id: string, headers = {}) => generate(server.url, id, 'hi', {}, headers)
  const last = { 'last-event-id': '3' }
  await send('m1')
  expect((await send('m1', last)).status.code).toBe('Success')
  await expect(send('m2', last)).rejects.toThrow('invalid_cursor')
  const alone = { threadId: undefined, metadata: { requestType: 'TextareaCompletion' } }
  await expect(generate(server.url, 'm3', 'hi', alone, last)).rejects.toThrow('invalid_cursor')
  expect(model.requests).toHaveLength(1)
  expect(await runsOf(server)).toBe(1)
})
