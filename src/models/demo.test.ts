import { describe, expect, test, vi } from 'vitest'
import { type CallPart, type Message, toolText, userText } from '../core/messages.ts'
import type { ModelEvent, ModelRequest } from '../core/model.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { demoModel } from './demo.ts'

const names = ['weather', 'write_file', 'read_file', 'list_files', 'run_code', 'echo']
const tools = names.map((name) => ({ name, description: name, parameters: {} }))
const model = demoModel({ clock: systemClock, delay: 0 })

function requestOf(messages: readonly Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return { system: [], messages, tools, ...more }
}

async function play(request: ModelRequest, played = model, signal = new AbortController().signal) {
  const events: ModelEvent[] = []
  for await (const event of played.stream(request, signal)) events.push(event)
  return events
}

const ask = (text: string) => play(requestOf([userText('m1', text)]))
const textIn = (events: ModelEvent[]) =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')
const callsIn = (events: ModelEvent[]) =>
  events.flatMap((event) =>
    event.type === 'call' ? [[event.name, JSON.parse(event.input)] as const] : [],
  )

/** The events after the given results, one for each call in order. */
async function answer(text: string, results: [text: string, failed?: boolean][]) {
  const user = userText('m1', text)
  const calls = (await ask(text)).filter((event) => event.type === 'call') as CallPart[]
  const messages: Message[] = [user, { id: 'm2', role: 'assistant', parts: calls }]
  for (const [n, [result, failed]] of results.entries()) {
    messages.push(toolText(`m${n + 3}`, calls[n]!, result, failed))
  }
  return play(requestOf(messages))
}

describe('what is asked and what is called', () => {
  const write = (path: string, content: string) => ['write_file', { path, content }]
  test.each([
    ["What's the weather in Barcelona?", ['weather', { city: 'Barcelona' }]],
    ['weather in New York today, please', ['weather', { city: 'New York' }]],
    ['WEATHER São Paulo', ['weather', { city: 'São Paulo' }]],
    ['Hi, how is the weather like in tokyo right now?', ['weather', { city: 'tokyo' }]],
    ['Write a file named notes.txt with the text hello', write('notes.txt', 'hello')],
    ['please create the file "my notes.md" containing "a, b"', write('my notes.md', 'a, b')],
    ['Write a file called a/b.txt with the content: one\ntwo', write('a/b.txt', 'one\ntwo')],
    ['write hello to notes.txt', write('notes.txt', 'hello')],
    ["Save 'go to bed' into file todo.txt.", write('todo.txt', 'go to bed')],
    ['Read notes.txt', ['read_file', { path: 'notes.txt' }]],
    ['show me the file `a b.txt`', ['read_file', { path: 'a b.txt' }]],
    ['List files', ['list_files', {}]],
    ['What files are there in docs?', ['list_files', { path: 'docs' }]],
    ['list the files in the workspace', ['list_files', {}]],
    ['Run this code: 1+1', ['run_code', { code: '1+1' }]],
    ['run\n```js\nconst a = 1\na\n```\nthanks', ['run_code', { code: 'const a = 1\na' }]],
    ['Execute the following JavaScript: `2 * 3`', ['run_code', { code: '2 * 3' }]],
    ["Echo 'a' or 'b'", ['echo', { text: "'a' or 'b'" }]],
    ['Echo a 😀 b', ['echo', { text: 'a 😀 b' }]],
    ['Loop', ['echo', { text: 'again' }]],
  ])('%s', async (text, called) => {
    expect(callsIn(await ask(text))).toEqual([called])
  })

  test('three things at once are three calls in one answer', async () => {
    const events = await ask('Do three things at once')
    expect(callsIn(events).map(([name]) => name)).toEqual(['weather', 'write_file', 'run_code'])
    const ids = events.flatMap((event) => (event.type === 'call' ? event.callId : []))
    expect(new Set(ids).size).toBe(3)
  })

  test('the input of a call comes in pieces that add up to it', async () => {
    const events = await ask('Echo 😀😀😀😀 and some more')
    const pieces = events.filter((event) => event.type === 'input')
    const whole = events.find((event) => event.type === 'call')
    expect(pieces.length).toBeGreaterThanOrEqual(2)
    expect(pieces.length).toBeLessThanOrEqual(4)
    expect(pieces.map((piece) => piece.text).join('')).toBe(whole?.input)
    for (const piece of pieces) expect(piece.callId).toBe(whole?.callId)
  })
})

describe('what is said', () => {
  test.each([
    ['hello', /I am the demo model, a script .*What's the weather in Barcelona\?/s],
    ['What can you do?', /I am the demo model/],
    ['', /heard nothing that I can read/],
    ['Explain quantum physics', /I am the demo model.*I heard "Explain quantum physics"/s],
    ['count to 5', /^1 2 3 4 5$/],
    ['Count to 5000', / 1000 I stop at 1000\.$/],
    ['weather', /^Which city\?/],
    ['Be slow', /^This is a slow answer .* last one\.$/],
    ['x'.repeat(30_000), /I read up to 20000 characters/],
  ])('%.40s', async (text, said) => {
    const events = await ask(text)
    expect(textIn(events)).toMatch(said)
    expect(callsIn(events)).toEqual([])
    expect(events.at(-1)).toMatchObject({
      type: 'usage',
      usage: { outputTokens: expect.any(Number) },
    })
  })

  test('numbers come one per piece', async () => {
    expect((await ask('count to 30')).filter((event) => event.type === 'text')).toHaveLength(30)
  })

  test('thinking comes before the answer', async () => {
    const types = (await ask('Think hard')).map((event) => event.type)
    expect(types.filter((type) => type === 'reasoning')).toHaveLength(10)
    expect(types.lastIndexOf('reasoning')).toBeLessThan(types.indexOf('text'))
  })

  test('fails when told to', async () => {
    await expect(ask('Fail')).rejects.toMatchObject({ code: 'model_request' })
  })

  test('says so when a tool is not offered', async () => {
    const messages = [userText('m1', 'Do three things at once')]
    const some = await play(requestOf(messages, { tools: tools.slice(0, 1) }))
    expect(callsIn(some).map(([name]) => name)).toEqual(['weather'])
    expect(textIn(some)).toMatch(/write_file here, but it is not offered.*run_code here/)
    const none = await play(requestOf(messages, { parameters: { toolChoice: 'none' } }))
    expect(callsIn(none)).toEqual([])
  })

  test.each([
    ['spaces', `write ${' '.repeat(19_000)}`],
    ['quotes', `write a file ${'"'.repeat(19_000)}`],
    ['to to to', `write ${'to '.repeat(6_000)}\n`],
    ['in in in', `list files ${'in '.repeat(6_000)}`],
    ['the the the', `read ${'the '.repeat(4_500)}`],
    ['weather', 'weather '.repeat(2_000)],
    ['ticks', `run ${'`'.repeat(19_000)}`],
  ])('no text makes it think for long: %s', async (_name, text) => {
    const started = performance.now()
    await ask(text)
    expect(performance.now() - started).toBeLessThan(1_000)
  })
})

describe('after a tool', () => {
  test('answers with the result', async () => {
    const events = await answer("What's the weather in Paris?", [['Paris: 18 °C']])
    expect(textIn(events)).toBe('Here is the weather. Paris: 18 °C.')
    expect(callsIn(events)).toEqual([])
  })

  test('accepts that something was not done, and says why', async () => {
    const events = await answer('write hello to notes.txt', [['Not in this folder.', true]])
    expect(textIn(events)).toBe(
      'Understood, write_file was not done. The reason I was given: Not in this folder.',
    )
  })

  test('sums up several results', async () => {
    const text = textIn(
      await answer('Do three things at once', [['sunny'], ['No.', true], ['[1, 4, 9]']]),
    )
    expect(text).toMatch(/^All 3 have ended:/)
    expect(text).toMatch(
      /- weather: .*sunny.*\n- write_file: .*not done.*No\.\n- run_code: .*4, 9/s,
    )
  })

  test('goes on for ever when told to loop, with a new call id each time', async () => {
    const messages: Message[] = [userText('m0', 'Loop')]
    const ids = new Set<string>()
    for (let n = 1; n < 20; n += 2) {
      const events = await play(requestOf(messages))
      const [made] = events.filter((event) => event.type === 'call') as CallPart[]
      ids.add(made!.callId)
      messages.push({ id: `m${n}`, role: 'assistant', parts: [made!] })
      messages.push(toolText(`m${n + 1}`, made!, 'again'))
    }
    expect(ids.size).toBe(10)
  })

  test('works on the last thing said', async () => {
    const messages: Message[] = [
      userText('m1', 'Echo one'),
      { id: 'm2', role: 'assistant', parts: [] },
      toolText('m3', { type: 'call', callId: 'c', name: 'echo', input: '{}' }, 'one'),
      userText('m4', 'count to 2'),
    ]
    expect(textIn(await play(requestOf(messages)))).toBe('1 2')
  })
})

describe('pace', () => {
  test.each(['hello', 'Do three things at once', 'Think hard', 'Be slow', 'whatever'])(
    'the same history gives the same answer: %s',
    async (text) => {
      expect(await ask(text)).toEqual(await ask(text))
    },
  )

  /** Time that passes only by sleeping. */
  function sleeper() {
    let slept = 0
    const clock: Clock = {
      ...systemClock,
      now: () => slept,
      monotonic: () => slept,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted()
        slept += ms
      },
    }
    return { clock, slept: () => slept }
  }

  test.each([
    ['Be slow', {}, 4_000],
    ['Be slow', { delay: 0 }, 0],
    ['Be slow', { delay: 0, slow: 50 }, 2_000],
    ['count to 10', {}, 150],
  ])('%s with %j sleeps %i ms', async (text, options, expected) => {
    const { clock, slept } = sleeper()
    await play(requestOf([userText('m1', text)]), demoModel({ clock, ...options }))
    expect(slept()).toBe(expected)
  })

  test('an abort ends it before its next piece', async () => {
    const controller = new AbortController()
    const seen: ModelEvent[] = []
    const request = requestOf([userText('m1', 'Be slow')])
    const started = performance.now()
    const playing = (async () => {
      const slow = demoModel({ clock: systemClock, slow: 5_000, delay: 1 })
      setTimeout(() => controller.abort(new Error('cancelled')), 20)
      for await (const event of slow.stream(request, controller.signal)) seen.push(event)
    })()
    await expect(playing).rejects.toThrow('cancelled')
    expect(seen).toEqual([])
    expect(performance.now() - started).toBeLessThan(1_000)

    const quick = play(request, model, AbortSignal.abort(new Error('cancelled')))
    await expect(quick).rejects.toThrow('cancelled')
  })
})

describe('what pages ask for', () => {
  test('a tool that must be called is called, with suggestions', async () => {
    const chips = { name: 'copilotkitSuggest', description: '', parameters: {} }
    const request = requestOf([userText('m1', 'What next?')], {
      tools: [chips],
      parameters: { toolChoice: { name: chips.name } },
    })
    const [[name, input] = []] = callsIn(await play(request))
    expect(name).toBe('copilotkitSuggest')
    expect((input as { suggestions: object[] }).suggestions[0]).toMatchObject({
      title: expect.stringMatching(/./),
      message: expect.stringMatching(/./),
    })
  })

  test('any tool that is offered is used by its name', async () => {
    const paint = { name: 'paint', description: '', parameters: {} }
    const said = 'Use the tool paint with {"color": "teal"}'
    const request = requestOf([userText('m1', said)], { tools: [paint] })
    expect(callsIn(await play(request))).toEqual([['paint', { color: 'teal' }]])
    expect(textIn(await ask('use the tool paint with {color}'))).toContain('not JSON')
  })

  test('what it was sent besides text is told', async () => {
    const data = Buffer.from('twelve bytes').toString('base64')
    const parts: Message['parts'] = [
      { type: 'text', text: 'What is this?' },
      { type: 'media', mediaType: 'image/png', data },
    ]
    const events = await play(requestOf([{ id: 'm1', role: 'user', parts }]))
    expect(textIn(events)).toContain('image/png of 12 bytes')
  })
})

test('a file name of 900,000 points is read in linear time', async () => {
  const events = await play(requestOf([userText('1', `read ${'.'.repeat(900_000)}x`)]))
  expect(events.length).toBeGreaterThan(0)
})

test('the words of a long history are counted without a list of them', async () => {
  const long = ' sea \n\u00a0side'.repeat(50_000)
  const messages: Message[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: long }] }]
  const split = vi.spyOn(String.prototype, 'split')
  const events = await play(requestOf(messages))
  const lists = split.mock.results.filter(({ value }) => value.length > 10_000)
  split.mockRestore()
  expect(lists).toEqual([])
  expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 100_000 } })
})
