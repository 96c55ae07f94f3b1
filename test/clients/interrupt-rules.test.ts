import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { send, story } from '../support/story.ts'
import { tools } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'
import { clients, ending, interruptsOf, poster, refusal, runBody, userMessage } from './support.ts'

const run = '/agent/default/run'
const hello = userMessage('pay ann', 'u1')

/** A thread that waits with these calls, and a way to answer it like no client would. */
async function waiting(calls = [send('1')]) {
  const server = await story([calls, [text('Done.')], [text('More.')]])
  const post = poster(server.url)
  const first = await post(run, runBody('t', [hello]))
  const ids = interruptsOf(first).map(({ id }) => id as string)
  const before = await server.journal('t')
  /** Refused inside the stream by this code, with nothing written. */
  const refused = async (more: object, code: string, words: string | RegExp = '') => {
    const { status, events } = await post(run, runBody('t', [hello], more))
    expect(status).toBe(200)
    expect(refusal({ events })).toMatchObject({ type: 'RUN_ERROR', code })
    expect(ending({ events }).message).toMatch(words)
    expect(await server.journal('t')).toEqual(before)
    expect(server.sent).toEqual([])
  }
  return { server, post, ids, refused }
}

const yes = (interruptId: string) => answer(interruptId, { approved: true })
const answer = (interruptId: string, payload: unknown) => ({
  ...{ interruptId, status: 'resolved' },
  ...(payload !== undefined && { payload }),
})

test('an answer to an interrupt that never was is refused', async () => {
  const { refused } = await waiting()
  await refused({ resume: [yes('ask_never')] }, 'interrupt_unknown', /resume\.0\.interruptId/)
})

test('an answer to an interrupt of another thread is refused there', async () => {
  const { post, ids, server } = await waiting()
  await post(run, runBody('other', [userMessage('hi', 'u2')]))
  const list = [userMessage('hi', 'u2')]
  const { events } = await post(run, runBody('other', list, { resume: [yes(ids[0]!)] }))
  expect(refusal({ events })).toMatchObject({ type: 'RUN_ERROR', code: 'interrupt_unknown' })
  expect(server.sent).toEqual([])
})

test('an answer on a thread that never was is refused, and makes no thread', async () => {
  const { post, server } = await waiting()
  const { events } = await post(run, runBody('new', [], { resume: [yes('ask_never')] }))
  expect(refusal({ events })).toMatchObject({ type: 'RUN_ERROR', code: 'interrupt_unknown' })
  expect((await server.request('GET', '/chats/new')).status).toBe(404)
})

test('all open interrupts are answered together or none is', async () => {
  const { refused, ids } = await waiting([send('1', 1), send('2', 2)])
  expect(ids).toHaveLength(2)
  await refused({ resume: [yes(ids[1]!)] }, 'interrupt_uncovered', ids[0])
})

test('one wrong answer among several: none counts', async () => {
  const { refused, ids } = await waiting([send('1', 1), send('2', 2)])
  const resume = [yes(ids[0]!), answer(ids[1]!, { approved: 'perhaps' })]
  await refused({ resume }, 'invalid_request', /resume\.1\.payload\.approved/)
})

test('two answers to one interrupt in one request: none counts, and the thread goes on with the next', async () => {
  const { refused, ids, post, server } = await waiting()
  const [id] = ids as [string]
  const resume = [yes(id), answer(id, { approved: false })]
  await refused({ resume }, 'invalid_request', /resume\.1\.payload.*answered twice/)
  const { events } = await post(run, runBody('t', [hello], { resume: [yes(id), yes(id)] }))
  expect(ending({ events })).toMatchObject({ type: 'RUN_FINISHED' })
  expect(server.sent).toHaveLength(1)
  const answered = (await server.journal('t')).filter(({ kind }) => kind === 'ask.answered')
  expect(answered).toHaveLength(1)
})

test('a message on a thread that waits with an interrupt is refused', async () => {
  const { refused, server, ids } = await waiting()
  const messages = [hello, userMessage('hurry')]
  await refused({ messages }, 'thread_waiting', ids[0])
  const messages2 = [hello, userMessage('hurry')]
  await refused({ messages: messages2, resume: [] }, 'thread_waiting')
  expect(server.model.requests).toHaveLength(1)
})

test.for([
  ['nothing', undefined, /resume\.0\.payload/],
  ['null', null, /resume\.0\.payload/],
  ['a word', 'yes', /resume\.0\.payload/],
  ['a list', [true], /resume\.0\.payload/],
  ['no decision', {}, /resume\.0\.payload\.approved/],
  ['a decision of another type', { approved: 'true' }, /resume\.0\.payload\.approved/],
  ['a reason that is no text', { approved: false, reason: 7 }, /resume\.0\.payload\.reason/],
  [
    'arguments without a field',
    { approved: true, editedArgs: { to: 'bob' } },
    /resume\.0\.payload\.editedArgs\.amount/,
  ],
  [
    'arguments that are too much',
    { approved: true, editedArgs: { to: 'bob', amount: 1e6 } },
    /resume\.0\.payload\.editedArgs\.amount/,
  ],
  [
    'arguments of another type',
    { approved: true, editedArgs: { to: 7, amount: 1 } },
    /resume\.0\.payload\.editedArgs\.to/,
  ],
  [
    'arguments nobody knows',
    { approved: true, editedArgs: { to: 'bob', amount: 1, cc: 'eve' } },
    /resume\.0\.payload\.editedArgs/,
  ],
] as const)(
  'an answer that is %s is refused, and the field is named',
  async ([, payload, field]) => {
    const { refused, ids } = await waiting()
    await refused({ resume: [answer(ids[0]!, payload)] }, 'invalid_request', field)
  },
)

test('a status that is none is a bad request', async () => {
  const { post, ids, server } = await waiting()
  const resume = [{ interruptId: ids[0], status: 'maybe' }]
  const { status, json } = await post(run, runBody('t', [hello], { resume }))
  expect(status).toBe(400)
  expect(json.message).toMatch(/resume\.0\.status/)
  expect((await server.journal('t')).at(-1)?.kind).toBe('run.waiting')
})

describe.for(clients)('$name', ({ open }) => {
  test('comes back after the time of a question is over: the run went on without it', async () => {
    const box = tools()
    const clock = warpClock()
    const model = scriptedModel([[send('1')], [text('So be it.')]])
    const policy = [{ tool: 'send', decision: 'ask', timeout: 60_000 }] as const
    const settings = { model, tools: box.all, builtIns: false, policy }
    const server = await serve(settings, { clock, env: { HANDRAIL_LEASE_MS: '3600000' } })
    const client = await open(server.url, 't')
    const [interrupt] = interruptsOf(await client.say('pay ann'))
    clock.advance(60_001)
    await server.recorded('t', 'run.completed')
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.agent.pendingInterrupts).toEqual([])
    expect(fresh.shown().at(-1)).toBe('assistant: So be it.')
    const post = poster(server.url)
    const late = await post(run, runBody('t', [], { resume: [yes(interrupt!.id)] }))
    expect(ending(late)).toMatchObject({ type: 'RUN_ERROR', code: 'interrupt_expired' })
    expect(box.sent).toEqual([])
  })
})

test('whoever answers without having the chat is given it first', async () => {
  const { post, ids } = await waiting()
  const { events } = await post(run, runBody('t', [], { resume: [yes(ids[0]!)] }))
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT'])
  const [, snapshot] = events as { messages?: { role: string }[] }[]
  expect(snapshot!.messages?.map(({ role }) => role).slice(0, 2)).toEqual(['user', 'assistant'])
  expect(ending({ events }).type).toBe('RUN_FINISHED')
})
