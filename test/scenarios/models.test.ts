import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Model } from '../../src/core/model.ts'
import type { Settings } from '../../src/settings.ts'
import { type Frame, transcript } from '../support/chats.ts'
import { type Front, type Step, startFront } from '../support/providers/front.ts'
import { type ServeOptions, serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'

let front: Front
beforeAll(async () => {
  front = await startFront()
})
beforeEach(() => {
  front.script = () => undefined
  front.requests.length = 0
})
afterAll(async () => {
  expect(front.problems).toEqual([])
  await front.stop()
})

const quick = { first: 5, rateLimit: 5, most: 50 }

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  HANDRAIL_MODEL: 'openai/gpt-5',
  OPENAI_API_KEY: 'server-key',
  OPENAI_BASE_URL: `${front.url}/v1`,
  ANTHROPIC_API_KEY: 'other-key',
  ANTHROPIC_BASE_URL: `${front.url}/v1`,
  ...more,
})

const start = (settings: Settings = {}, more?: Record<string, string>, options?: ServeOptions) =>
  serve({ retry: quick, ...settings }, { env: env(more), ...options })

test('a model whose module cannot be loaded stops the start, and names it', async () => {
  const model: Settings['model'] = ({ load }) => {
    load?.(() => Promise.reject(new Error("Cannot find package 'sdk-of-a-provider'")))
    return { name: 'broken', async *stream() {} } as Model
  }
  await expect(serve({ model })).rejects.toThrow(/cannot be loaded: .*sdk-of-a-provider/)
})

/** Each call of the provider plays the next of these; the last again and again. */
function plays(...scripts: (readonly Step[])[]): void {
  let n = 0
  front.script = () => scripts[Math.min(n++, scripts.length - 1)]
}

const last = (frames: readonly Frame[], event: string) =>
  frames.findLast((frame) => frame.event === event)?.data
const texts = (frames: readonly Frame[]) => [...transcript(frames).values()]

describe('a server on a real provider’s wire', () => {
  test('asks before it writes, and the model hears the result', async () => {
    const server = await start()
    plays(
      [
        { text: 'I write it. ' },
        { call: { id: 'c1', name: 'write_file', pieces: ['{"path":"a.txt",', '"content":"hi"}'] } },
      ],
      [{ text: 'It is ' }, { text: 'written.' }],
    )
    const stream = await server.start('chat', 'write a.txt')
    const asked = (await stream.until('approval_required')).at(-1)!.data
    const [interaction] = (await server.chat('chat')).interactions
    await server.approve('chat', interaction.id, { approval_id: asked.approval_id, approved: true })
    expect(texts(await stream.rest()).at(-1)).toBe('It is written.')
    expect(await readFile(join(server.data, 'files/default/local/a.txt'), 'utf8')).toBe('hi')
    const { input } = front.requests.at(-1)!.body
    expect(input.map((item: { type?: string }) => item.type)).toContain('function_call_output')
  })

  test('an answer that was cut is taken back and shown once', async () => {
    const server = await start()
    plays([{ text: 'The answ' }, 'cut'], [{ text: 'The answer.' }])
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'retrying')).toMatchObject({ code: 'stream_cut', attempt: 2 })
    expect(frames.some(({ event }) => event === 'retracted')).toBe(true)
    expect(texts(frames)).toEqual(['The answer.'])
    expect(last(frames, 'interaction_complete').status).toBe('COMPLETED')
  })

  test('Retry-After is waited for', async () => {
    const server = await start()
    plays([{ refuse: 429, headers: { 'retry-after': '0.02' } }], [{ text: 'Now.' }])
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'retrying')).toMatchObject({ code: 'rate_limit', inMs: 20 })
    expect(texts(frames)).toEqual(['Now.'])
  })

  test('input that is no JSON, and tools that nobody has, are told to the model', async () => {
    const server = await start()
    plays(
      [{ call: { id: 'c1', name: 'weather', pieces: ['{"city": '] } }],
      [{ call: { id: 'c2', name: 'no_such_tool', pieces: ['{}'] } }],
      [{ text: 'I see.' }],
    )
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(texts(frames).at(-1)).toBe('I see.')
    const heard = JSON.stringify(front.requests.at(-1)!.body)
    expect(heard).toContain('not valid JSON')
    expect(heard).toContain('There is no tool named no_such_tool')
  })

  test('a model whose call failed is told to stop: nobody wants what it would still say', async () => {
    let told: AbortSignal | undefined
    const model: Model = {
      name: 'endless',
      async *stream(_, signal) {
        told = signal
        for (;;) yield { type: 'input', callId: 'c', name: 'step', text: 'x'.repeat(300_000) }
      },
    }
    const server = await serve({ model, builtIns: false })
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'error').code).toBe('answer_too_large')
    expect(told?.aborted).toBe(true)
  })

  test('10 MB of input end the run with a sentence, and are not read', async () => {
    const server = await start()
    const pieces = Array.from({ length: 160 }, () => 'x'.repeat(64 * 1024))
    plays([{ call: { id: 'c1', name: 'write_file', pieces: ['{"path":"', ...pieces, '"}'] } }])
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'error')).toMatchObject({ code: 'answer_too_large', retryable: false })
    expect(last(frames, 'error').error).toContain('1000000 characters')
    expect(front.requests.length).toBe(1)
    const written = JSON.stringify(await server.journal('chat'))
    expect(written.length).toBeLessThan(100_000)
  })

  test('a provider that says nothing, or nothing more, is given up and asked again', async () => {
    const server = await start({ silence: { first: 300, between: 300 } })
    plays(['hang'], [{ text: 'So' }, 'hang'], [{ text: 'There.' }])
    const frames = await (await server.start('chat', 'hi')).rest()
    const retries = frames.filter(({ event }) => event === 'retrying')
    expect(retries.map(({ data }) => data.code)).toEqual(['model_timeout', 'model_timeout'])
    expect(texts(frames)).toEqual(['There.'])
  })
})

describe('a provider that fails', () => {
  test('another model stands in, and both are in the accounts', async () => {
    const server = await start({}, { HANDRAIL_FALLBACK_MODEL: 'anthropic/claude-sonnet-4-5' })
    front.script = (_asked, _body, wire) =>
      wire === 'messages' ? [{ text: 'From the other.' }] : [{ text: 'Fro' }, 'cut']
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'fallback')).toMatchObject({ model: 'anthropic/claude-sonnet-4-5' })
    expect(texts(frames)).toEqual(['From the other.'])
    const chat = await server.chat('chat')
    expect(chat.usage.calls).toBe(4)
    expect(chat.interactions[0].usage).toEqual(chat.usage)
  })

  test('what no other model would do better is not tried there', async () => {
    const server = await start({}, { HANDRAIL_FALLBACK_MODEL: 'anthropic/claude-sonnet-4-5' })
    plays([{ refuse: 400, message: 'no such parameter' }])
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'error')).toMatchObject({ code: 'model_request' })
    expect(front.requests.length).toBe(1)
  })

  test('its circuit opens: it is not asked, the stand-in is, and it is tried again later', async () => {
    const server = await start({
      retry: { ...quick, attempts: 1 },
      providers: { failures: 2, rest: 400 },
    })
    plays([{ refuse: 500 }], [{ refuse: 500 }], [{ text: 'Back.' }])
    for (const id of ['a', 'b']) {
      const frames = await (await server.start(id, 'hi')).rest()
      expect(last(frames, 'error')).toMatchObject({ code: 'model_overloaded' })
    }
    const refused = await (await server.start('c', 'hi')).rest()
    expect(last(refused, 'error')).toMatchObject({ code: 'model_unavailable', retryable: true })
    expect(front.requests.length).toBe(2)
    expect(await (await server.request('GET', '/metrics')).text()).toContain(
      'handrail_provider_circuit_open{provider="openai"} 1',
    )
    await new Promise((resolve) => setTimeout(resolve, 450))
    expect(texts(await (await server.start('d', 'hi')).rest())).toEqual(['Back.'])
  })

  test('every attempt counts against the budget, the stand-in’s too (I9)', async () => {
    const server = await start(
      {},
      {
        HANDRAIL_HITL: 'on',
        HANDRAIL_ACTION_LIMIT: '4',
        HANDRAIL_FALLBACK_MODEL: 'anthropic/claude-sonnet-4-5',
      },
    )
    front.script = (_asked, _body, wire) =>
      wire === 'messages' && front.requests.length > 4 ? [{ text: 'Fin.' }] : [{ text: 'x' }, 'cut']
    const stream = await server.start('chat', 'hi')
    const asked = (await stream.until('approval_required')).at(-1)!.data
    expect(asked.kind).toBe('budget')
    expect(front.requests.map(({ wire }) => wire)).toEqual([
      ...['responses', 'responses', 'responses'],
      'messages',
    ])
    const [interaction] = (await server.chat('chat')).interactions
    const more = { approval_id: asked.approval_id, approved: true, newLimit: 20 }
    await server.approve('chat', interaction.id, more)
    expect(texts(await stream.rest()).at(-1)).toBe('Fin.')
  })
})

describe('a chat that is too long for the model', () => {
  const long = 'word '.repeat(2_000) // about 2,900 tokens

  test('loses its oldest turns before it is sent, and says so', async () => {
    const server = await start({ windows: { 'openai/gpt-5': 12_000 } })
    plays([{ text: 'ok' }])
    let shortened: object | undefined
    for (let turn = 0; turn < 5; turn++) {
      const frames = await (await server.start('chat', `${turn}: ${long}`)).rest()
      shortened ??= last(frames, 'context_shortened')
      expect(last(frames, 'interaction_complete').status).toBe('COMPLETED')
    }
    expect(shortened).toMatchObject({ model: 'openai/gpt-5' })
    const sent = JSON.stringify(front.requests.at(-1)!.body)
    expect(sent).toContain('4: word')
    expect(sent).not.toContain('0: word')
    expect(sent).toContain('oldest messages')
    expect(sent.length).toBeLessThan(12_000 * 4)
  })

  test('is made shorter when the provider says it is too long, which the user is not told as an error', async () => {
    const server = await start()
    front.script = (_asked, body) =>
      JSON.stringify(body).length > 25_000
        ? [{ refuse: 400, message: "This model's maximum context length is 5000 tokens." }]
        : [{ text: 'ok' }]
    for (let turn = 0; turn < 4; turn++) {
      const frames = await (await server.start('chat', `${turn}: ${long}`)).rest()
      expect(last(frames, 'interaction_complete').status).toBe('COMPLETED')
    }
    expect(JSON.stringify(front.requests.at(-1)!.body)).toContain('3: word')
  })
})

describe('what was used', () => {
  test('is told per interaction and chat, in tokens and money, on every wire', async () => {
    const prices = { 'openai/gpt-5': { input: 2_000_000, output: 3_000_000 } }
    const server = await start({ prices })
    plays([{ text: 'one' }])
    await (await server.start('chat', 'hi')).rest()
    await (await server.start('chat', 'again')).rest()
    const chat = await server.chat('chat')
    expect(chat.interactions[0].usage).toEqual({
      calls: 1,
      input_tokens: 1,
      output_tokens: 1,
      cost: 5,
    })
    expect(chat.usage).toMatchObject({ calls: 2, input_tokens: 2, cost: 10 })
    const used = await (await server.request('GET', '/usage')).json()
    expect(used).toEqual({
      usage: chat.usage,
      chats: [{ id: 'chat', usage: chat.usage }],
      next_cursor: null,
    })
    const metrics = await (await server.request('GET', '/metrics')).text()
    const who = 'model="openai/gpt-5",tenant="default"'
    expect(metrics).toContain(`handrail_model_calls_total{${who},outcome="ok"} 2`)
    expect(metrics).toContain(`handrail_model_tokens_total{${who},kind="output"} 2`)
    expect(metrics).toContain(`handrail_model_cost_total{${who}} 10`)

    const body = {
      threadId: 'chat',
      runId: 'r',
      messages: [{ id: 'u', role: 'user', content: 'x' }],
    }
    const more = { tools: [], context: [], state: {}, forwardedProps: {} }
    const path = '/copilotkit/agent/default/run'
    const run = await server.request(
      'POST',
      path,
      { ...body, ...more },
      { accept: 'text/event-stream' },
    )
    const finished = (await run.text()).match(/\{"type":"RUN_FINISHED".*\}/)?.[0] ?? '{}'
    expect(JSON.parse(finished).usage).toEqual([
      { provider: 'openai', model: 'gpt-5', inputTokens: 1, outputTokens: 1 },
    ])
  })

  test('is for operators to see of all tenants', async () => {
    const key = 'a-key-of-16-letters'
    const server = await start({}, { HANDRAIL_API_KEYS: `${key}=acme/ann:user` })
    const headers = { 'x-api-key': key }
    expect((await server.request('GET', '/metrics', undefined, headers)).status).toBe(403)
    expect((await server.request('GET', '/metrics')).status).toBe(401)
  })
})

describe('a client’s own key', () => {
  const own = { 'x-model-api-key': 'sk-the-clients-own-key' }
  const call: Step = {
    call: { id: 'c1', name: 'write_file', pieces: ['{"path":"a.txt","content":"hi"}'] },
  }

  test('pays for its run alone and is written nowhere; without it the run ends', async () => {
    const directory = await temporaryDirectory()
    const options = { data: directory.path }
    const keys = { HANDRAIL_CLIENT_KEYS: 'on' }
    let server = await start({}, keys, options)
    plays([call], [{ text: 'Done.' }])
    const stream = await server.start('chat', 'write', '', own)
    const asked = (await stream.until('approval_required')).at(-1)!.data
    stream.leave()
    expect(front.requests.at(-1)!.headers.authorization).toBe(`Bearer ${own['x-model-api-key']}`)
    await server.close()
    expect(await allText(directory.path)).not.toContain(own['x-model-api-key'])

    server = await start({}, keys, options)
    const [interaction] = (await server.chat('chat')).interactions
    const decision = { approval_id: asked.approval_id, approved: true }
    await server.approve('chat', interaction.id, decision)
    const joined = await (await server.join('chat', interaction.id)).rest()
    expect(last(joined, 'error')).toMatchObject({ code: 'authentication' })
    expect(front.requests.length).toBe(1)
    const path = `/chats/chat/interactions/${interaction.id}/retry`
    const again = await (await server.open('POST', path, {}, own)).rest()
    expect(texts(again).at(-1)).toBe('Done.')

    plays([{ text: 'By the server.' }])
    await (await server.start('other', 'hi')).rest()
    expect(front.requests.at(-1)!.headers.authorization).toBe('Bearer server-key')
    await server.close()
    await directory.remove()
  })

  test('a failing key of one client opens no circuit for other clients', async () => {
    const providers = { failures: 2, rest: 60_000 }
    const server = await start({ providers }, { HANDRAIL_CLIENT_KEYS: 'on' })
    const failing = { 'x-model-api-key': 'sk-a-failing-key' }
    plays([{ refuse: 529, type: 'overloaded_error' }])
    const frames = await (await server.start('bad', 'hi', '', failing)).rest()
    expect(last(frames, 'error')).toMatchObject({ code: 'model_unavailable' })
    const asked = front.requests.length
    plays([{ text: 'Here.' }])
    for (const headers of [own, {}]) {
      const chat = headers === own ? 'own' : 'servers'
      expect(texts(await (await server.start(chat, 'hi', '', headers)).rest())).toEqual(['Here.'])
    }
    const again = await (await server.start('bad again', 'hi', '', failing)).rest()
    expect(last(again, 'error')).toMatchObject({ code: 'model_unavailable' })
    expect(front.requests.length).toBe(asked + 2)
    const metrics = await (await server.request('GET', '/metrics')).text()
    expect(metrics).toContain('handrail_provider_circuit_open{provider="openai"} 0')
    expect(metrics).toContain('handrail_provider_client_circuits_open{provider="openai"} 1')
    expect(metrics).not.toContain('failing-key')
  })

  test('pays also where what the model says is watched', async () => {
    const guardrails = { output: [{ decision: 'deny' as const, words: ['forbidden'] }] }
    const server = await start({ guardrails }, { HANDRAIL_CLIENT_KEYS: 'on' })
    plays([{ text: 'ok' }])
    await (await server.start('chat', 'hi', '', own)).rest()
    expect(front.requests.at(-1)!.headers.authorization).toBe(`Bearer ${own['x-model-api-key']}`)
  })

  test('is not looked at unless the operator allows it', async () => {
    const server = await start()
    plays([{ text: 'ok' }])
    await (await server.start('chat', 'hi', '', own)).rest()
    expect(front.requests.at(-1)!.headers.authorization).toBe('Bearer server-key')
  })
})

describe('at the start', () => {
  test.each([
    [{ HANDRAIL_MODEL: 'openai/gpt-5' }, 'OPENAI_API_KEY'],
    [{ HANDRAIL_MODEL: 'anthropic/claude' }, 'ANTHROPIC_API_KEY'],
    [{ HANDRAIL_MODEL: 'google/gemini' }, 'GOOGLE_GENERATIVE_AI_API_KEY'],
    [{ HANDRAIL_MODEL: 'openai-compatible/llama3' }, 'OPENAI_BASE_URL'],
    [{ HANDRAIL_MODEL: 'demo', HANDRAIL_FALLBACK_MODEL: 'openai/x' }, 'OPENAI_API_KEY'],
    [{ HANDRAIL_MODEL: 'gpt-5' }, 'There is no model gpt-5'],
  ])('%o is refused with one sentence', async (given, named) => {
    const { code, output } = await run(given)
    expect(code).toBe(1)
    expect(output).toContain(named)
    expect(output.trim().split('\n').length).toBe(1)
  })

  test('a server of agents only says why it has no answer', async () => {
    const server = await serve({}, { env: { HANDRAIL_MODEL: 'empty' } })
    const frames = await (await server.start('chat', 'hi')).rest()
    expect(last(frames, 'error')).toMatchObject({ code: 'model_missing' })
  })
})

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

async function run(
  given: Record<string, string>,
): Promise<{ code: number | null; output: string }> {
  const directory = await temporaryDirectory()
  const env = { PATH: process.env.PATH, PORT: '0', HANDRAIL_DATA: directory.path, ...given }
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const late = setTimeout(() => child.kill('SIGKILL'), 15_000)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(late)
  await directory.remove()
  return { code, output }
}

async function allText(directory: string): Promise<string> {
  const files = await readdir(directory, { recursive: true, withFileTypes: true })
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFile(join(file.parentPath, file.name), 'utf8'))
  return (await Promise.all(texts)).join('\n')
}
