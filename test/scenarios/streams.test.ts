import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Model } from '../../src/core/model.ts'
import type { ToolUse } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { chatsClient, type Frame, type Stream } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { screen } from '../support/screen.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { find, tools } from '../support/tools.ts'

/** Thinks, says, calls, shows output, asks, answers; stands at a gate before each of it. */
function long(stand: (at: string, signal?: AbortSignal) => Promise<void> = async () => {}) {
  const box = tools()
  const look = {
    ...box.look,
    run: async (_: unknown, { write, signal }: ToolUse) => {
      write('out')
      await stand('output', signal)
      write('put')
      return 'saw the sea'
    },
  }
  const model = scriptedModel(async function* (_request, n, signal) {
    if (n === 0) {
      yield { type: 'reasoning', text: 'First ' } as const
      await stand('thinking', signal)
      yield { type: 'reasoning', text: 'think. ' } as const
      yield text('Let me ')
      await stand('words', signal)
      yield text('look.')
      yield call('1', 'look', { at: 'sea' })
      yield call('2', 'send', { to: 'ann', amount: 5 })
    } else {
      for (const word of ['It ', 'is ', 'so ', 'blue ']) {
        yield text(word)
        await stand(word, signal)
      }
      yield text('today.')
    }
  })
  return { model, tools: [look, box.send], builtIns: false }
}

const all = async (frames: Frame[], stream: Stream) => [...frames, ...(await stream.rest())]

test('a finished run, read again from any place, ends in the same transcript (I5)', async () => {
  const server = await serve(long())
  const stream = await server.start('c', 'the sea?')
  const id = stream.response.headers.get('x-interaction-id')!
  const before = await stream.until('approval_required')
  const { approval_id } = find(before, 'approval_required')
  await server.approve('c', id, { approval_id, approved: true })
  const stayed = await all(before, stream)
  expect(new Set(stayed.map((frame) => frame.id)).size).toBe(stayed.length)
  const shown = screen(stayed)
  expect(shown.filter((line) => /^(answer|thinking): /.test(line))).toEqual([
    'thinking: First think. ',
    'thinking: Let me look.',
    'answer: It is so blue today.',
  ])
  expect(screen(await (await server.join('c', id)).rest())).toEqual(shown)
  for (const [n, frame] of stayed.entries()) {
    const rest = await (await server.join('c', id, frame.id)).rest()
    expect(screen([...stayed.slice(0, n + 1), ...rest]), `after ${frame.id}`).toEqual(shown)
  }
})

test('a live run, joined at any time from any place, ends in the same transcript (I5)', async () => {
  const stops = ['thinking', 'words', 'output', 'It ', 'is ', 'so ', 'blue ']
  const gates = new Map(stops.map((at) => [at, gate()]))
  const server = await serve(long(async (at, signal) => gates.get(at)?.pass(signal)))
  const stream = await server.start('c', 'the sea?')
  const id = stream.response.headers.get('x-interaction-id')!
  const seen: Frame[] = []
  const readers: { at: string; seen: Frame[]; stream: Promise<Stream> }[] = []
  const joinEverywhere = async (at: string) => {
    readers.push({ at: `${at} from the start`, seen: [], stream: server.join('c', id) })
    for (let n = 1; n <= seen.length; n++) {
      const last = seen[n - 1]!.id
      const had = seen.slice(0, n)
      readers.push({ at: `${at} from ${last}`, seen: had, stream: server.join('c', id, last) })
    }
    await Promise.all(readers.map((reader) => reader.stream))
  }
  const read = async (until: (frame: Frame) => boolean) => {
    for (;;) {
      const { value } = await stream.frames.next()
      seen.push(value!)
      if (until(value!)) return
    }
  }
  const delta = (words: string) => (frame: Frame) => frame.data.delta === words
  for (const [at, words] of [
    ['thinking', 'First '],
    ['words', 'Let me '],
    ['output', 'out'],
  ] as const) {
    await gates.get(at)!.reached
    await read(delta(words))
    await joinEverywhere(at)
    gates.get(at)!.open()
  }
  await read(({ event }) => event === 'tool_result')
  await server.recorded('c', 'run.waiting')
  await joinEverywhere('waiting')
  const { approval_id } = find(seen, 'approval_required')
  await server.approve('c', id, { approval_id, approved: true })
  for (const word of ['It ', 'is ', 'so ', 'blue ']) {
    await gates.get(word)!.reached
    await read(delta(word))
    await joinEverywhere(word)
    gates.get(word)!.open()
  }
  const shown = screen(await all(seen, stream))
  expect(shown.at(-1)).toMatch(/^interaction_complete: .*COMPLETED/)
  expect(readers.length).toBeGreaterThan(60)
  for (const reader of readers) {
    const frames = await all(reader.seen, await reader.stream)
    expect(screen(frames), reader.at).toEqual(shown)
  }
})

test('what was shown in part and is sent again is taken back first: nothing is seen twice (I5)', async () => {
  const stands = gate()
  const server = await serve(
    long(async (at, signal) => (at === 'output' ? stands.pass(signal) : undefined)),
  )
  const stream = await server.start('c', 'the sea?')
  const id = stream.response.headers.get('x-interaction-id')!
  const seen = await stream.until('tool_output')
  if (!seen.some(({ event }) => event === 'approval_required'))
    seen.push(...(await stream.until('approval_required')))
  const output = seen.findLastIndex(({ event }) => event === 'tool_output')
  // An entry comes while the output is still open: the pieces now follow another place.
  const { approval_id } = find(seen, 'approval_required')
  await server.approve('c', id, { approval_id, approved: true })
  const after = await stream.until('approved')
  // Ids of older servers do not say how much of what is open was sent.
  const older = (id: string) => id.replace(/[!@].*$/, '')
  for (const [had, last] of [
    [seen.slice(0, output + 1), older(seen[output]!.id)],
    [[...seen, ...after], older(after.at(-1)!.id)],
  ] as const) {
    const again = await server.join('c', id, last)
    const frames: Frame[] = [...had]
    const growing = () => screen(frames).filter((line) => line.startsWith('…'))
    while (!frames.some(({ event, data }, n) => n >= had.length && data.delta === 'out' && event)) {
      const { value } = await again.frames.next()
      frames.push(value!)
    }
    expect(growing()).toEqual(['… out'])
    again.leave()
  }
  stands.open()
  await stream.rest()
})

test('a client that comes and goes twenty times has the text of one that stayed (I5)', async () => {
  const gates = Array.from({ length: 21 }, () => gate())
  const model = scriptedModel(async function* (_request, _n, signal) {
    for (const [n, one] of gates.entries()) {
      yield text(`piece ${n} `)
      await one.pass(signal)
    }
    yield text('end')
  })
  const server = await serve({ model, builtIns: false })
  const stays = await server.start('c', 'go')
  const id = stays.response.headers.get('x-interaction-id')!
  const seen: Frame[] = []
  for (const [n, one] of gates.entries()) {
    const stream = await server.join('c', id, seen.at(-1)?.id)
    for (;;) {
      const { value } = await stream.frames.next()
      seen.push(value!)
      if (value!.data.delta === `piece ${n} `) break
    }
    stream.leave()
    one.open()
  }
  const frames = await all(seen, await server.join('c', id, seen.at(-1)!.id))
  expect(screen(frames)).toEqual(screen(await stays.rest()))
  expect(frames.filter(({ event }) => event === 'answer_delta')).toHaveLength(22)
  expect(frames.filter(({ event }) => event === 'retracted')).toEqual([])
})

test('a run in line shows nothing of the one before it, and takes nothing from its readers', async () => {
  const stands = gate()
  const model = scriptedModel(async function* (_request, n, signal) {
    yield text(`one ${n} `)
    if (n === 0) await stands.pass(signal)
    yield text(`two ${n}`)
  })
  const server = await serve({ model, builtIns: false })
  const first = await server.start('c', 'first')
  await stands.reached
  const second = await server.start('c', 'second', '?when_busy=queue')
  const readers = [second, await server.join('c', first.response.headers.get('x-interaction-id')!)]
  await second.until('interaction_started')
  stands.open()
  const texts = async (stream: Stream) =>
    (await stream.rest()).flatMap(({ data }) => data.delta ?? data.content ?? [])
  const both = ['one 0 ', 'two 0', 'one 0 two 0']
  expect(await texts(first)).toEqual(both)
  expect(await texts(readers[1]!)).toEqual(both)
  expect(await texts(second)).toEqual(['one 1 ', 'two 1', 'one 1 two 1'])
})

test('a reader that keeps pace is shown the pieces, also of a model that never waits', async () => {
  const pieces = Array.from({ length: 1_000 }, (_, n) => `${n} `)
  const server = await serve({ model: scriptedModel([pieces.map(text)]), builtIns: false })
  const frames = await (await server.start('c', 'count')).rest()
  const deltas = frames
    .filter(({ event }) => event === 'answer_delta')
    .map(({ data }) => data.delta)
  // Those that are durable before they could be shown come with the whole; that may be the last few.
  expect(deltas.length).toBeGreaterThan(900)
  expect(deltas).toEqual(pieces.slice(0, deltas.length))
  expect(find(frames, 'answer').content).toBe(pieces.join(''))
})

test('long texts arrive whole, whatever is in them', async () => {
  const words = `${'é😀'.repeat(30_000)}x${'😀'.repeat(30_000)}` // pairs at odd and even places
  const model = scriptedModel([[text(words)]])
  const server = await serve({ model, builtIns: false })
  const frames = await (await server.start('c', 'go')).rest()
  expect(find(frames, 'answer_delta').delta).toBe(words)
  expect(find(frames, 'answer').content).toBe(words)
  const id = frames[0]!.data.interaction_id
  expect(find(await (await server.join('c', id)).rest(), 'answer').content).toBe(words)
})

test('a run that ends while its reader is still in a long piece is told to its end', async () => {
  const model: Model = {
    name: 'endless',
    async *stream() {
      for (;;) yield text('x'.repeat(1_000_000))
    },
  }
  const server = await serve({ model, builtIns: false })
  const frames = await (await server.start('c', 'go')).rest()
  expect(find(frames, 'error').code).toBe('answer_too_large')
  expect(frames.at(-1)).toMatchObject({ event: 'interaction_complete', data: { status: 'FAILED' } })
})

test('who asks for the head of a stream alone leaves no reader behind', async () => {
  const stands = gate()
  const model = scriptedModel(async function* (_request, _n, signal) {
    await stands.pass(signal)
    yield text('Here.')
  })
  const { server, start, request } = await serve({ model, builtIns: false })
  const stream = await start('c', 'go')
  const { interaction_id } = (await stream.until('interaction_started'))[0]!.data
  const { tail } = await server.runtime.thread('c')
  const before = tail.readers
  for (let n = 0; n < 5; n++) {
    const head = await request('HEAD', `/chats/c/interactions/${interaction_id}/events`)
    expect(head.headers.get('content-type')).toContain('text/event-stream')
  }
  await expect.poll(() => tail.readers).toBe(before)
  stands.open()
  await stream.rest()
})

test('Last-Event-ID and ?after= are the same; the interaction itself streams when asked to', async () => {
  const server = await serve(long())
  const stream = await server.start('c', 'go')
  const id = stream.response.headers.get('x-interaction-id')!
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  await server.approve('c', id, { approval_id, approved: false })
  await stream.rest()
  const stayed = await (await server.join('c', id)).rest()
  const path = `/chats/c/interactions/${id}`
  for (const [n, frame] of stayed.entries()) {
    const by = { 'last-event-id': frame.id }
    const rest = stayed.slice(n + 1).map((one) => one.id)
    const ids = async (stream: Stream) => (await stream.rest()).map((one) => one.id)
    expect(await ids(await server.open('GET', `${path}/events`, undefined, by))).toEqual(rest)
    expect(await ids(await server.open('GET', `${path}/events?after=${frame.id}`))).toEqual(rest)
    const accept = { accept: 'text/event-stream' }
    const asked = await server.open('GET', `${path}?after=${frame.id}`, undefined, accept)
    expect(await ids(asked)).toEqual(rest)
  }
})

test('a quiet stream is kept alive by comments, and nothing else', async () => {
  const model = scriptedModel([['wait']])
  const server = await serve({ model, builtIns: false }, { env: { HANDRAIL_HEARTBEAT_MS: '10' } })
  const gone = new AbortController()
  const response = await fetch(`${server.url}/chats/c/interactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"user_message":"hush"}',
    signal: gone.signal,
  })
  let seen = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    seen += chunk
    if ((seen.match(/^: keep-alive$/gm) ?? []).length >= 3) break
  }
  gone.abort()
  const frames = seen.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))
  expect(frames).toHaveLength(1)
  expect(frames[0]).toMatch(/event: interaction_started/)
})

const residentMb = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

test.skipIf(process.platform !== 'linux')(
  'readers that never read cost no memory, and the others notice nothing',
  async () => {
    const { path, remove } = await temporaryDirectory()
    onTestFinished(remove)
    const pieces = 500
    const config = join(path, 'config.mjs')
    await writeFile(
      config,
      `const piece = 'x'.repeat(3_999) + ' '
      const model = { name: 'long', async *stream({ messages }) {
        if (messages.at(-1).role === 'user')
          return yield { type: 'call', callId: 'c', name: 'write_file',
            input: '{"path":"a.txt","content":"b"}' }
        for (let i = 0; i < ${pieces}; i++) yield { type: 'text', text: piece }
      } }
      export default { model }`,
    )
    const env = { HANDRAIL_CONFIG: config, HANDRAIL_DATA: join(path, 'data') }
    const server = await startServer({ ...env, HANDRAIL_SPOOL: join(path, 'spool') })
    onTestFinished(() => server.kill())
    const client = chatsClient(server.url)
    const stream = await client.start('c', 'go')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const id = stream.response.headers.get('x-interaction-id')!

    const { port } = new URL(server.url)
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () =>
        stalled(Number(port), `/chats/c/interactions/${id}/events`),
      ),
    )
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    const before = residentMb(server.child.pid!)
    await client.approve('c', id, { approval_id, approved: true })
    let length = 0
    let status = ''
    for await (const { event, data } of stream.frames) {
      if (event === 'answer') length = data.content.length
      if (event === 'interaction_complete') status = data.status
    }
    expect([length, status]).toEqual([pieces * 4_000, 'COMPLETED'])
    const grown = residentMb(server.child.pid!) - before
    // Held for each reader the last frame alone, which has the whole text, makes hundreds of MB.
    expect(grown).toBeLessThan(150)
    expect(
      (await (await client.start('d', 'go')).until('approval_required')).length,
    ).toBeGreaterThan(1)
  },
)

test('a tool shows texts while it runs, and nothing else and nothing later', async () => {
  const { look } = tools()
  let later: ToolUse['write'] = () => {}
  const odd = {
    ...look,
    run: async (_: unknown, { write }: ToolUse) => {
      later = write
      for (const one of ['one ', 10n, undefined, { a: 1 }, '', 'two']) write(one as string)
      return 'saw it'
    },
  }
  const model = scriptedModel(async function* (_request, n) {
    if (n === 0) return yield call('1', 'look', { at: 'sea' })
    later('three')
    yield text('Done.')
  })
  const server = await serve({ model, tools: [odd], builtIns: false })
  const frames = await (await server.start('c', 'the sea?')).rest()
  const output = frames.filter(({ event }) => event === 'tool_output')
  expect(output.map(({ data }) => data.delta).join('')).toBe('one two')
  expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
})

/** Asks for a stream, waits for its first byte, and reads no more. */
function stalled(port: number, path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1' }, () =>
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`),
    )
    socket.once('error', reject)
    socket.once('readable', () => {
      socket.removeListener('error', reject)
      socket.on('error', () => {}) // the server goes first
      resolve(socket)
    })
  })
}
