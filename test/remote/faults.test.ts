import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import type { Frame } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { find, names, tools } from '../support/tools.ts'
import {
  type Asked,
  ask,
  callEvents,
  finished,
  interactionOf,
  interrupted,
  remote,
  sse,
  started,
  textEvents,
} from './support.ts'

const sane = (response: ServerResponse) =>
  sse(response, [started, ...textEvents('ok', 'All is well.'), finished])

/** A remote that does something wrong the first time, and then never again. */
async function faulty(fault: (response: ServerResponse, asked: Asked) => void, timeouts = {}) {
  const far = await remote((asked, response) => {
    if (far.asked.length === 1) fault(response, asked)
    else sane(response)
  })
  const agent = aguiAgent({
    name: 'far',
    url: `${far.url}/run`,
    timeouts: { connect: 2_000, silence: 1_000, total: 5_000, ...timeouts },
  })
  const server = await serve({ agents: [agent] })
  return { far, server }
}

const open = [...textEvents('m1', 'Half a ').slice(0, 2)]
const raw = (response: ServerResponse, said: string | Buffer, type = 'text/event-stream') => {
  response.writeHead(200, { 'content-type': type })
  response.end(said)
}
const frame = (event: object) => `data: ${JSON.stringify(event)}\n\n`

const faults: Record<string, [string, (response: ServerResponse) => void, boolean?]> = {
  'says nothing at all': ['remote_timeout', () => {}],
  'hangs in the middle': ['remote_timeout', (r) => sse(r, [started, ...open], false), true],
  'is cut in mid-text': [
    'remote_cut',
    (r) => {
      sse(r, [started, ...open], false)
      setTimeout(() => r.destroy(), 100)
    },
    true,
  ],
  'ends without an end': ['remote_cut', (r) => sse(r, [started, ...open]), true],
  fails: [
    'remote_failed',
    (r) => sse(r, [started, ...open, { type: 'RUN_ERROR', message: 'No luck.', code: 'LUCK' }]),
    true,
  ],
  'says text of a message that it did not begin': [
    'remote_protocol',
    (r) => sse(r, [started, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'x', delta: 'y' }]),
  ],
  'gives arguments to a call that it did not make': [
    'remote_protocol',
    (r) => sse(r, [started, { type: 'TOOL_CALL_ARGS', toolCallId: 'x', delta: '{}' }]),
  ],
  'gives the result of a call that it did not make': [
    'remote_protocol',
    (r) =>
      sse(r, [started, { type: 'TOOL_CALL_RESULT', messageId: 'm', toolCallId: 'x', content: '' }]),
  ],
  'begins the same message twice': [
    'remote_protocol',
    (r) => sse(r, [started, ...open, { type: 'TEXT_MESSAGE_START', messageId: 'm1' }]),
    true,
  ],
  'begins the same call twice': [
    'remote_protocol',
    (r) => sse(r, [started, ...callEvents('c', 'f', {}), ...callEvents('c', 'f', {})]),
  ],
  'speaks before it has started': [
    'remote_protocol',
    (r) => sse(r, [...textEvents('m', 'x'), finished]),
  ],
  'sends an event of the wrong shape': [
    'remote_protocol',
    (r) => sse(r, [started, { type: 'TEXT_MESSAGE_CONTENT', messageId: 7, delta: null }]),
  ],
  'sends what is not JSON': ['remote_protocol', (r) => raw(r, `${frame(started)}data: {oops\n\n`)],
  'sends JSON that is no event': [
    'remote_protocol',
    (r) => raw(r, `${frame(started)}data: null\n\n`),
  ],
  'sends what is not UTF-8': [
    'remote_protocol',
    (r) => raw(r, Buffer.concat([Buffer.from(frame(started)), Buffer.from([0x64, 0xff, 0xfe])])),
  ],
  'sends a page': ['remote_protocol', (r) => raw(r, '<h1>Hello</h1>', 'text/html')],
  'sends one event of twelve megabytes': [
    'remote_protocol',
    (r) =>
      raw(
        r,
        `${frame(started)}data: {"type":"CUSTOM","name":"x","value":"${'y'.repeat(12_000_000)}"}`,
      ),
  ],
  'writes a message of five million characters': [
    'remote_protocol',
    (r) => sse(r, [started, ...textEvents('m', ...Array<string>(50).fill('z'.repeat(100_000)))]),
  ],
  refuses: ['remote_refused', (r) => r.writeHead(403).end('Who are you?')],
  breaks: ['remote_failed', (r) => r.writeHead(500).end('Traceback')],
  'redirects the request to another origin': [
    'remote_outcome_unknown',
    (r) => r.writeHead(307, { location: 'http://127.0.0.1:1/run' }).end(),
  ],
  'redirects the request with 302': [
    'remote_outcome_unknown',
    (r) => r.writeHead(302, { location: '/other' }).end(),
  ],
}

describe('a remote that', () => {
  test.each(Object.entries(faults))(
    '%s is a typed error, and the chat goes on',
    async (_, [code, fault, retracts = false]) => {
      const { server } = await faulty(fault)
      const frames = await ask(server, 'c', 'go')
      expect(find(frames, 'error').code).toBe(code)
      expect(find(frames, 'interaction_complete').status).toBe('FAILED')
      expect(shown(frames)).toEqual([])
      if (retracts) expect(names(frames)).toContain('retracted')
      const journal = await server.journal('c')
      const { effect, error } = journal.find(({ kind }) => kind === 'effect.failed')!.body as {
        effect: string
        error: { code: string }
      }
      expect([effect, error.code]).toEqual(['remote', code])
      const more = await ask(server, 'c', 'again')
      expect(find(more, 'answer').content).toBe('All is well.')
    },
    60_000,
  )

  test('goes on with a sign of life and no word is given up in the end', async () => {
    const { server } = await faulty(
      (response) => {
        sse(response, [started], false)
        const beat = setInterval(() => response.write(': alive\n\n'), 200)
        response.on('close', () => clearInterval(beat))
      },
      { total: 2_500 },
    )
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error').code).toBe('remote_timeout')
  })

  test('says more after its end is not heard', async () => {
    const { server } = await faulty((response) =>
      sse(response, [
        started,
        ...textEvents('m1', 'The end.'),
        finished,
        ...textEvents('m2', 'And then'),
      ]),
    )
    const frames = await ask(server, 'c', 'go')
    expect(shown(frames)).toEqual(['The end.'])
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
  })

  test('keeps what was whole when it was cut', async () => {
    const { server } = await faulty((response) => {
      sse(response, [started, ...open, ...textEvents('m0', 'This stays.')], false)
      setTimeout(() => response.destroy(), 100)
    })
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error').code).toBe('remote_cut')
    expect(shown(frames)).toEqual(['This stays.'])
  })

  test('says a hundred thousand things is heard to the end, and others are served meanwhile', async () => {
    const count = 100_000
    const { server } = await faulty(
      async (response) => {
        sse(response, [started, { type: 'TEXT_MESSAGE_START', messageId: 'm1' }], false)
        for (let n = 0; n < count; n += 1_000) {
          const some = Array.from({ length: 1_000 }, () =>
            frame({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'ab ' }),
          )
          if (!response.write(some.join(''))) await new Promise((go) => response.once('drain', go))
        }
        sse(response, [{ type: 'TEXT_MESSAGE_END', messageId: 'm1' }, finished])
      },
      { silence: 30_000, total: 120_000 },
    )
    const stream = await server.start('c', 'go')
    const reading = stream.rest()
    let slowest = 0
    for (let n = 0; n < 10; n++) {
      const since = performance.now()
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
      slowest = Math.max(slowest, performance.now() - since)
      await new Promise((go) => setTimeout(go, 50))
    }
    const frames = await reading
    expect(shown(frames)[0]).toHaveLength(3 * count)
    expect(slowest).toBeLessThan(5_000)
  }, 150_000)

  test('wants too much kept is stopped', async () => {
    const { server } = await faulty(
      (response) =>
        sse(response, [
          started,
          ...Array.from({ length: 25_000 }, (_, n) => ({ type: 'CUSTOM', name: 'n', value: n })),
          finished,
        ]),
      { silence: 30_000, total: 60_000 },
    )
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error').code).toBe('remote_protocol')
  }, 120_000)

  test('is away for a moment is tried again, and the journal tells', async () => {
    const { server, far } = await faulty((response) => response.writeHead(429).end('busy'))
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'retrying')).toMatchObject({ attempt: 2, code: 'remote_unavailable' })
    expect(shown(frames)).toEqual(['All is well.'])
    expect(far.asked).toHaveLength(2)
    const { state } = await server.server.runtime.thread('c')
    expect(state.governor.total).toBe(1)
  })

  test('dies between its question and the answer: a typed error, and the answer can be sent again', async () => {
    const question = interrupted({ id: 'i1', reason: 'confirmation', message: 'Sure?' })
    const far = await remote((_, response) => sse(response, [started, question]))
    const agent = aguiAgent({ name: 'far', url: `${far.url}/run`, attempts: 2 })
    const server = await serve({ agents: [agent] })
    const stream = await server.start('c', 'go')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    await far.close()
    const run = interactionOf(stream.response)
    await server.approve('c', run, { approval_id, approved: true })
    const frames = await stream.rest()
    expect(find(frames, 'error').code).toBe('remote_unavailable')
    const back = await remote((_, response) => sane(response), far.port)
    const again = await server.open('POST', `/chats/c/interactions/${run}/retry`)
    expect(shown(await again.rest())).toEqual(['All is well.'])
    expect(back.asked[0]!.body.resume).toEqual([
      { interruptId: 'i1', status: 'resolved', payload: { approved: true } },
    ])
  })

  test('lies about prototypes changes nothing', async () => {
    const { server } = await faulty((response) =>
      raw(
        response,
        `${frame(started)}data: {"type":"STATE_SNAPSHOT","snapshot":{"a":1}}\n\n` +
          'data: {"type":"STATE_DELTA","delta":[{"op":"add","path":"/__proto__/polluted","value":1}]}\n\n' +
          'data: {"type":"STATE_DELTA","delta":[{"op":"replace","path":"/nowhere/b","value":1}]}\n\n' +
          frame(finished),
      ),
    )
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    const { state } = await server.server.runtime.thread('c')
    expect(state.states.get('far')).toEqual({ a: 1 })
  })
})

const shown = (frames: readonly Frame[]): string[] =>
  frames.filter(({ event }) => event === 'answer').map(({ data }) => data.content)

test.each([
  ['25 legs, as our own agents', {}, 25],
  ['as many legs as it is given', { maxSteps: 3 }, 3],
])('one that calls a tool for ever has %s', async (_, limit, legs) => {
  const box = tools()
  const far = await remote((_, response) => {
    const id = `c${far.asked.length}`
    sse(response, [started, ...callEvents(id, 'look', { at: 'sea' }), finished])
  })
  const agent = aguiAgent({ name: 'far', url: `${far.url}/run`, tools: ['look'], ...limit })
  const server = await serve({ agents: [agent], tools: box.all, builtIns: false })
  const frames = await ask(server, 'c', 'go')
  expect(find(frames, 'error')).toMatchObject({
    code: 'too_many_steps',
    error: `The remote agent took ${legs} steps and may not more.`,
  })
  expect(far.asked).toHaveLength(legs)
  expect(box.looked).toHaveLength(legs)
})
