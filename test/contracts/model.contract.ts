import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { isRuntimeError, type RuntimeError } from '../../src/core/errors.ts'
import { callsOf, type Message, userText } from '../../src/core/messages.ts'
import type { Model, ModelEvent, ModelRequest } from '../../src/core/model.ts'
import { type Front, type Step, startFront } from '../support/providers/front.ts'
import type { WireName } from '../support/providers/wires.ts'

export interface ModelUnderTest {
  wire: WireName
  open(front: Front): Model
  /** What this adapter can deliver. */
  reasoning?: boolean
  images?: boolean
  usage?: boolean
  /** Calls come whole, as their provider sends them. */
  wholeCalls?: boolean
  /** A stop reaches the provider. */
  closes?: boolean
  /** An answer that ends in good order without saying why it ended is known to be cut. */
  knowsItsEnd?: boolean
}

export const weather = {
  name: 'get_weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}

export const ask = (text: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  system: ['Be brief.'],
  messages: [userText('u1', text)],
  tools: [],
  ...more,
})

/** One answer, whole. Throws what the model throws. */
export async function answerOf(
  model: Model,
  request: ModelRequest,
  signal = new AbortController().signal,
) {
  const events: ModelEvent[] = []
  for await (const event of model.stream(request, signal)) events.push(event)
  const of = <T extends ModelEvent['type']>(type: T) =>
    events.filter((event): event is Extract<ModelEvent, { type: T }> => event.type === type)
  const joined = (type: 'text' | 'reasoning') =>
    events.map((event) => (event.type === type ? event.text : '')).join('')
  return {
    events,
    text: joined('text'),
    reasoning: joined('reasoning'),
    calls: of('call'),
    inputs: of('input'),
    usage: of('usage').at(-1)?.usage,
  }
}

export async function failureOf(answering: Promise<unknown>): Promise<RuntimeError> {
  const error = await answering.then(
    () => new Error('it answered'),
    (thrown: unknown) => thrown,
  )
  if (!isRuntimeError(error)) throw error
  return error
}

/** What every model does, whether there is a provider behind it or not. */
export function modelBasics(name: string, open: () => Model, long: string): void {
  describe(`${name} model`, () => {
    test('answers in pieces and tells what was used', async () => {
      const { text, events, usage } = await answerOf(open(), ask('What can you do?'))
      expect(text).not.toBe('')
      expect(events.length).toBeGreaterThan(2)
      expect(usage?.outputTokens).toBeGreaterThan(0)
    })

    test('calls a tool whose input is streamed, and answers its result', async () => {
      const request = ask('Call the tool get_weather with {"city": "Paris"}', { tools: [weather] })
      const { calls, inputs, events } = await answerOf(open(), request)
      expect(calls).toMatchObject([{ name: 'get_weather' }])
      expect(inputs.map(({ text }) => text).join('')).toBe(calls[0]!.input)
      const messages = [...request.messages, said(events), result(calls[0]!.callId, '21 degrees')]
      expect((await answerOf(open(), { ...request, messages })).text).toContain('21 degrees')
    })

    test('stops when it is told to', async () => {
      const abort = new AbortController()
      const answering = answerOf(open(), ask(long), abort.signal)
      setTimeout(() => abort.abort(new Error('enough')), 50)
      await expect(answering).rejects.toThrow('enough')
    })
  })
}

/** What every adapter does with what providers do. */
export function modelContract(name: string, subject: ModelUnderTest): void {
  describe(`${name} model`, () => {
    let front: Front
    let model: Model
    beforeAll(async () => {
      front = await startFront()
      fixtures(front)
      model = subject.open(front)
    })
    beforeEach(() => {
      front.script = () => undefined
      front.left = 0
    })
    afterAll(async () => {
      expect(front.problems).toEqual([])
      await front.stop()
    })
    /** A test of what not every provider has. */
    const where = (applies: boolean | undefined, title: string, run: () => Promise<void>) => {
      if (applies) test(title, run)
    }
    const plays = (...steps: Step[]) => {
      front.script = () => steps
    }

    test('streams text in pieces', async () => {
      const { text, events } = await answerOf(model, ask('greet me'))
      expect(text).toBe('Hello there, this is the mock.')
      expect(events.filter(({ type }) => type === 'text').length).toBeGreaterThan(1)
      const { body } = front.requests.at(-1)!
      expect(JSON.stringify(body)).toContain('Be brief.')
    })

    where(subject.usage !== false, 'tells what was used', async () => {
      const { usage } = await answerOf(model, ask('count for me'))
      expect(usage).toMatchObject({ inputTokens: 12, outputTokens: 3 })
    })

    test('calls a tool, hears its result, and goes on', async () => {
      const request = ask('weather please', { tools: [weather] })
      const first = await answerOf(model, request)
      expect(first.calls).toMatchObject([{ name: 'get_weather' }])
      const [call] = first.calls
      expect(JSON.parse(call!.input)).toEqual({ city: 'Paris' })
      const pieces = first.inputs.filter(({ callId }) => callId === call!.callId)
      if (!subject.wholeCalls) expect(pieces.length).toBeGreaterThan(1)
      if (pieces.length > 0) expect(pieces.map(({ text }) => text).join('')).toBe(call!.input)
      const second = await answerOf(model, {
        ...request,
        messages: [...request.messages, said(first.events), result(call!.callId, '21 degrees')],
      })
      expect(second.text).toBe('It is 21 degrees.')
    })

    test('makes several calls at once, each with an id of its own', async () => {
      const request = ask('both cities', { tools: [weather] })
      const { calls, events } = await answerOf(model, request)
      expect(calls.map(({ input }) => JSON.parse(input).city)).toEqual(['Paris', 'Rome'])
      expect(new Set(calls.map(({ callId }) => callId)).size).toBe(2)
      const results = calls.map(({ callId }, i) => result(callId, `${i} degrees`, i === 1))
      const messages = [...request.messages, said(events), ...results]
      const { text } = await answerOf(model, { ...request, messages })
      expect(text).toBe('One is cold.')
    })

    where(subject.reasoning, 'shows what it thinks, apart from what it says', async () => {
      const request = ask('think hard')
      const { reasoning, text, events } = await answerOf(model, request)
      expect(reasoning).toBe('six by seven')
      expect(text).toBe('It is 42.')
      // What was thought goes back, if at all, in a form that the provider takes.
      const messages = [...request.messages, said(events), userText('u2', 'greet me')]
      expect((await answerOf(model, { ...request, messages })).text).toContain('Hello')
    })

    where(subject.images, 'sends images along', async () => {
      const image = { type: 'media' as const, mediaType: 'image/png', data: 'aGVsbG8=' }
      const message: Message = {
        id: 'u',
        role: 'user',
        parts: [{ type: 'text', text: 'greet me' }, image],
      }
      await answerOf(model, ask('', { messages: [message] }))
      expect(JSON.stringify(front.requests.at(-1)!.body)).toContain('aGVsbG8=')
    })

    test('stops when it is told to, also before the first byte', async () => {
      for (const steps of [['hang'], [{ text: 'a' }, 'hang']] as Step[][]) {
        plays(...steps)
        const abort = new AbortController()
        const answering = answerOf(model, ask('wait'), abort.signal)
        setTimeout(() => abort.abort(new Error('enough')), 300)
        await expect(answering).rejects.toThrow()
      }
      if (subject.closes !== false) await expect.poll(() => front.left).toBe(2)
    })

    test('takes a rate limit for one, with the time to wait', async () => {
      const error = await failureOf(answerOf(model, ask('limited')))
      expect(error).toMatchObject({ code: 'rate_limit', retryable: true, retryAfter: 7 })
      plays({
        refuse: 429,
        headers: { 'retry-after': new Date(Date.now() + 60_000).toUTCString() },
      })
      const dated = await failureOf(answerOf(model, ask('later')))
      expect(dated.retryAfter).toBeGreaterThan(50)
      expect(dated.retryAfter).toBeLessThanOrEqual(61)
    })

    test.each([
      [500, 'model_overloaded', true],
      [529, 'model_overloaded', true],
      [503, 'model_overloaded', true],
      [401, 'authentication', false],
      [403, 'authentication', false],
      [404, 'model_request', false],
      [400, 'model_request', false],
    ] as const)('takes %i for %s', async (status, code, retryable) => {
      const type = status === 529 ? 'overloaded_error' : 'some_error'
      front.mock.on(
        { userMessage: `status ${status}` },
        { error: { message: 'sk-secretsecretsecret is bad', type }, status },
      )
      const error = await failureOf(answerOf(model, ask(`status ${status}`)))
      expect(error).toMatchObject({ code, retryable })
      expect(error.message).not.toContain('sk-secret')
    })

    test('knows when the chat is too long for the model', async () => {
      const message = "This model's maximum context length is 8192 tokens. Reduce the length."
      plays({ refuse: 400, message })
      expect(await failureOf(answerOf(model, ask('long')))).toMatchObject({
        code: 'context_too_long',
      })
    })

    test('an unreachable provider is a network error', async () => {
      const nobody = subject.open({ ...front, url: 'http://127.0.0.1:9' })
      expect(await failureOf(answerOf(nobody, ask('hi')))).toMatchObject({ code: 'network' })
    })

    test('a stream that is cut is no answer', async () => {
      plays({ text: 'This is the beg' }, 'cut')
      expect(await failureOf(answerOf(model, ask('x')))).toMatchObject({ code: 'stream_cut' })
    })

    where(
      subject.knowsItsEnd !== false,
      'a stream that ends in good order, but too early, is no answer',
      async () => {
        plays({ text: 'This is the beg' }, 'close')
        expect(await failureOf(answerOf(model, ask('x')))).toMatchObject({ code: 'stream_cut' })
      },
    )

    test('a call that is cut in its input is not made', async () => {
      for (const end of ['cut', 'close'] as const) {
        plays({ begin: { id: 'c1', name: 'get_weather', pieces: ['{"ci', 'ty": "Par'] } }, end)
        const error = await failureOf(answerOf(model, ask('x', { tools: [weather] })))
        expect(error.retryable).toBe(true)
        expect(['stream_cut', 'model_answer']).toContain(error.code)
      }
    })

    test('a stream that is no JSON is an answer that cannot be read', async () => {
      plays({ text: 'a' }, { raw: 'data: {"choices": [nonsense\n\n' })
      const error = await failureOf(answerOf(model, ask('x')))
      expect(['model_answer', 'stream_cut']).toContain(error.code)
      expect(error.retryable).toBe(true)
    })

    where(
      subject.wire === 'chat' && subject.knowsItsEnd !== false,
      'an error in the middle of an answer is told by its code, and is no end of it',
      async () => {
        const error = (code: unknown) => ({
          raw: `data: ${JSON.stringify({ error: { message: 'oh', code } })}\n\n`,
        })
        plays({ text: 'so' }, error(500), 'close')
        expect(await failureOf(answerOf(model, ask('fail')))).toMatchObject({
          code: 'model_overloaded',
          retryable: true,
        })
        plays({ text: 'so' }, error(429), 'close')
        expect((await failureOf(answerOf(model, ask('fail')))).code).toBe('rate_limit')
        const choice = { index: 0, delta: { content: '' }, finish_reason: 'error' }
        const chunk = { id: 'x', object: 'chat.completion.chunk', choices: [choice] }
        plays({ text: 'so' }, { raw: `data: ${JSON.stringify(chunk)}\n\n` }, 'close')
        expect((await failureOf(answerOf(model, ask('fail')))).code).toBe('stream_cut')
      },
    )

    where(!subject.wholeCalls, 'input that is no JSON arrives as it was written', async () => {
      plays({ call: { id: 'c1', name: 'get_weather', pieces: ['{"city":', ' oops'] } })
      const { calls } = await answerOf(model, ask('x', { tools: [weather] }))
      expect(calls).toMatchObject([{ callId: 'c1', input: '{"city": oops' }])
    })

    test('a tool that nobody offered is a call like any other', async () => {
      plays({ call: { id: 'c1', name: 'no_such_tool', pieces: ['{}'] } })
      const { calls } = await answerOf(model, ask('x', { tools: [weather] }))
      expect(calls).toMatchObject([{ name: 'no_such_tool', input: '{}' }])
    })

    test('half characters are sent to nobody', async () => {
      const half = 'a\ud83d'
      const call = {
        type: 'call' as const,
        callId: half,
        name: 'get_weather',
        input: '{"a":"\\ud83d"}',
      }
      const messages: Message[] = [
        userText('u', half),
        { id: 'a', role: 'assistant', parts: [{ type: 'text', text: half }, call] },
        { id: 't', role: 'tool', callId: half, parts: [{ type: 'text', text: half }] },
        userText('u2', 'greet me'),
      ]
      const { text } = await answerOf(
        model,
        ask('', { system: [half], messages, tools: [weather] }),
      )
      expect(text).toContain('Hello')
    })

    test('10 MB of input are read no further than the reader wants', async () => {
      const piece = 'x'.repeat(64 * 1024)
      const pieces = ['{"city": "', ...Array.from({ length: 160 }, () => piece), '"}']
      plays({ call: { id: 'c1', name: 'get_weather', pieces } })
      let size = 0
      for await (const event of model.stream(
        ask('x', { tools: [weather] }),
        new AbortController().signal,
      )) {
        if (event.type === 'input') size += event.text.length
        if (event.type === 'call') size = event.input.length
        if (size > 1_000_000) break
      }
      expect(size).toBeGreaterThan(1_000_000)
      if (!subject.wholeCalls) expect(size).toBeLessThan(2_000_000)
    })

    test('names that the provider would refuse come back as they were', async () => {
      const odd = { ...weather, name: 'weather.of/the 🌍' }
      front.script = (_asked, body) => {
        const named = JSON.stringify(body).match(/"(t_weather[\w-]*)"/)?.[1] ?? 'none'
        return [{ call: { id: 'c1', name: named, pieces: ['{}'] } }]
      }
      const { calls } = await answerOf(model, ask('x', { tools: [odd] }))
      expect(calls).toMatchObject([{ name: odd.name }])
    })
  })
}

/** The message that these events make. */
function said(events: readonly ModelEvent[]): Message {
  const parts: Message['parts'] = []
  for (const event of events) {
    if (event.type === 'call') parts.push(event)
    if (event.type !== 'text' && event.type !== 'reasoning') continue
    const last = parts.at(-1)
    const meta = event.meta && { meta: event.meta }
    if (last?.type === event.type) Object.assign(last, { text: last.text + event.text }, meta)
    else parts.push({ type: event.type, text: event.text, ...meta })
  }
  const message: Message = { id: 'a1', role: 'assistant', parts }
  expect(callsOf(message).length).toBe(events.filter(({ type }) => type === 'call').length)
  return message
}

const result = (callId: string, text: string, failed = false): Message => ({
  id: `r_${callId}`,
  role: 'tool',
  callId,
  name: 'get_weather',
  parts: [{ type: 'text', text }],
  ...(failed && { failed }),
})

function fixtures({ mock }: Front): void {
  const call = (id: string, city: string) => ({ id, name: 'get_weather', arguments: { city } })
  const used = {
    prompt_tokens: 12,
    completion_tokens: 3,
    input_tokens: 12,
    output_tokens: 3,
    promptTokenCount: 12,
    candidatesTokenCount: 3,
  }
  mock.on({ userMessage: 'greet me' }, { content: 'Hello there, this is the mock.' })
  mock.on({ userMessage: 'count for me' }, { content: 'one two', usage: used })
  mock.on(
    { userMessage: 'weather please', hasToolResult: false },
    { content: 'Looking. ', toolCalls: [call('call_1', 'Paris')] },
  )
  mock.on({ userMessage: 'weather please' }, { content: 'It is 21 degrees.' })
  mock.on(
    { userMessage: 'both cities', hasToolResult: false },
    { toolCalls: [call('call_1', 'Paris'), call('call_2', 'Rome')] },
  )
  mock.on({ userMessage: 'both cities' }, { content: 'One is cold.' })
  mock.on({ userMessage: 'think hard' }, { reasoning: 'six by seven', content: 'It is 42.' })
  mock.on(
    { userMessage: 'limited' },
    { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 7 },
  )
}
