import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { look, send, story } from '../support/story.ts'
import { tools } from '../support/tools.ts'
import { types } from './judge.ts'
import {
  type Client,
  clients,
  coreClient,
  ending,
  httpClient,
  poster,
  runBody,
  userMessage,
} from './support.ts'

async function sees(client: Client, words: string) {
  while (!client.shown().some((line) => line.includes(words)))
    await new Promise((resolve) => setImmediate(resolve))
}

/** A run that stands in the middle of its text. */
async function running(queue: 'reject' | 'queue' = 'reject') {
  const stands = gate()
  const model = scriptedModel(async function* (_request, n, signal) {
    yield text(`Answer ${n}`)
    if (n === 0) await stands.pass(signal)
    yield text('!')
  })
  const env = { HANDRAIL_AGUI_BUSY: queue }
  const server = await serve({ model, builtIns: false }, { env })
  return { server, model, stands, stop: '/agent/default/stop/t', post: poster(server.url) }
}

const stopped = {
  stopped: true,
  interrupt: { type: 'RUN_ERROR', message: 'Run stopped by user', code: 'STOPPED' },
}

describe('stop', () => {
  test('pressed on the page that runs: every stream ends, and what was said stays', async () => {
    const { server, post } = await running()
    const runner = await coreClient(server.url, 't')
    const other = httpClient(server.url, 't')
    const saying = runner.say('go')
    await sees(runner, 'Answer')
    const joining = other.connect()
    await sees(other, 'Answer')
    runner.core.stopAgent({ agent: runner.agent as never })
    const [mine, theirs] = await Promise.all([saying, joining])
    const cancelled = { handrail: { status: 'cancelled' } }
    expect(ending(mine)).toMatchObject({ type: 'RUN_FINISHED', metadata: cancelled })
    expect(ending(mine)).not.toHaveProperty('outcome') // the older dialect could not read it
    expect(ending(theirs)).toMatchObject({
      ...{ type: 'RUN_FINISHED', metadata: cancelled, outcome: { type: 'cancelled' } },
    })
    expect(types(mine.events)).toContain('TEXT_MESSAGE_END')
    expect([...runner.errors, ...other.errors]).toEqual([])
    expect((await post('/agent/default/stop/t', {})).json.stopped).toBe(false)
    await runner.say('go on')
    const fresh = httpClient(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(runner.shown())
    const words = ['user: go', 'assistant: Answer 0', 'user: go on', 'assistant: Answer 1!']
    expect(fresh.shown()).toEqual(words)
  })

  test('pressed on a page that only joined stops it for all', async () => {
    const { server } = await running()
    const runner = httpClient(server.url, 't')
    const saying = runner.say('go')
    await sees(runner, 'Answer')
    const joined = await coreClient(server.url, 't')
    const joining = joined.connect()
    await sees(joined, 'Answer')
    joined.core.stopAgent({ agent: joined.agent as never })
    const streams = await Promise.all([saying, joining])
    expect(streams.map((one) => ending(one).type)).toEqual(['RUN_FINISHED', 'RUN_FINISHED'])
    expect(ending(streams[0]!).outcome).toEqual({ type: 'cancelled' })
    expect(runner.shown()).toEqual(joined.shown())
    expect([...runner.errors, ...joined.errors]).toEqual([])
  })

  test('names the run it means: another one is left alone', async () => {
    const { server, post, stop, stands } = await running()
    const runner = httpClient(server.url, 't')
    const saying = runner.say('go', { runId: 'mine' })
    await stands.reached
    expect(await post(stop, { runId: 'other' })).toMatchObject({
      ...{ status: 200, json: { stopped: false, message: expect.any(String) } },
    })
    expect((await post(stop, { runId: 'mine' })).json).toEqual(stopped)
    expect(ending(await saying).outcome).toEqual({ type: 'cancelled' })
  })

  test.for([
    ['a thread that is idle', '/agent/default/stop/idle', '{}', 200, { stopped: false }],
    ['a thread nobody knows', '/agent/default/stop/never', '{}', 200, { stopped: false }],
    ['no body at all', '/agent/default/stop/idle', '', 200, { stopped: false }],
    ['an agent nobody knows', '/agent/nobody/stop/idle', '{}', 404, { error: 'Agent not found' }],
    ['a body with more in it', '/agent/default/stop/idle', '{"all":true}', 400, {}],
    ['a body that is no JSON', '/agent/default/stop/idle', '{', 400, {}],
    ['a run id that is no text', '/agent/default/stop/idle', '{"runId":7}', 400, {}],
  ] as const)('%s', async ([, path, body, status, json]) => {
    const server = await story([[text('Hi.')]])
    const post = poster(server.url)
    await post('/agent/default/run', runBody('idle', [userMessage('hi')]))
    expect(await post(path, body)).toMatchObject({ status, json })
  })

  test('ends what waits for a person: the question is over', async () => {
    const server = await story([[send('1')], [text('Next.')]])
    const client = httpClient(server.url, 't')
    await client.say('pay ann')
    const post = poster(server.url)
    expect((await post('/agent/default/stop/t', {})).json).toEqual(stopped)
    const fresh = await coreClient(server.url, 't')
    await fresh.connect()
    expect(fresh.agent.pendingInterrupts).toEqual([])
    await fresh.say('something else')
    expect(fresh.shown().at(-1)).toBe('assistant: Next.')
    expect(server.sent).toEqual([])
  })

  test('stops between the steps of a run: no model call after it (I7)', async () => {
    const inside = gate()
    const { look: quick } = tools()
    const slow = { ...quick, run: () => inside.pass() }
    const model = scriptedModel([[look('1', 'sea')], [text('No.')]])
    const server = await serve({ model, tools: [slow], builtIns: false })
    const client = httpClient(server.url, 't')
    const saying = client.say('the sea?')
    await inside.reached
    const stopping = poster(server.url)('/agent/default/stop/t', {})
    await server.recorded('t', 'run.cancelling')
    inside.open()
    await stopping
    expect(ending(await saying).outcome).toEqual({ type: 'cancelled' })
    expect(model.requests).toHaveLength(1)
  })
})

describe.for(clients)('a busy thread, seen by $name', ({ open }) => {
  test('refuses a second message with 409, and the first run notices nothing', async () => {
    const { server, model, stands } = await running()
    const first = await open(server.url, 't')
    const saying = first.say('one')
    await stands.reached
    const post = poster(server.url)
    const messages = [userMessage('two')]
    expect(await post('/agent/default/run', runBody('t', messages))).toMatchObject({
      ...{ status: 409, json: { code: 'thread_busy', message: expect.any(String) } },
    })
    const second = await open(server.url, 't')
    const refused = second.say('two').catch((error: Error) => error)
    const seen = await refused
    if (seen instanceof Error) expect(seen).toMatchObject({ status: 409 })
    else expect(second.errors).toContain('agent_run_failed')
    stands.open()
    await saying
    expect(first.shown()).toEqual(['user: one', 'assistant: Answer 0!'])
    expect(model.requests).toHaveLength(1)
    await second.connect()
    expect(second.shown()).toEqual(first.shown())
  })

  test('takes it in line where it is told to, and each reads its own answer', async () => {
    const { server, stands } = await running('queue')
    const first = await open(server.url, 't')
    const saying = first.say('one')
    await stands.reached
    const second = await open(server.url, 't')
    const waiting = second.say('two')
    await server.recorded('t', 'run.queued')
    while (second.streams.length === 0) await new Promise((resolve) => setImmediate(resolve))
    stands.open()
    const streams = await Promise.all([saying, waiting])
    expect(streams.map((one) => ending(one).type)).toEqual(['RUN_FINISHED', 'RUN_FINISHED'])
    // What is in line belongs to the thread, so the first may see it; the answer to it is not its own.
    expect(first.shown().slice(0, 2)).toEqual(['user: one', 'assistant: Answer 0!'])
    expect(first.shown()).not.toContain('assistant: Answer 1!')
    const words = ['user: one', 'assistant: Answer 0!', 'user: two', 'assistant: Answer 1!']
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(words)
    expect(second.shown()).toEqual(words)
  })
})

test.for([
  ['whenBusy', 'perhaps'],
  ['branchFrom', 7],
  ['unattended', 'yes'],
] as const)('a wish that is none is refused by its name: %s', async ([name, value]) => {
  const { server } = await running()
  const forwardedProps = { handrail: { [name]: value } }
  const body = runBody('t', [userMessage('one')], { forwardedProps })
  const field = `body.forwardedProps.handrail.${name}`
  const { status, json } = await poster(server.url)('/agent/default/run', body)
  expect([status, json]).toMatchObject([400, { code: 'invalid_request', field }])
  expect((await server.request('GET', '/chats/t')).status).toBe(404)
})
