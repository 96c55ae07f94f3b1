import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Guardrails } from '../../src/guardrails/guardrails.ts'
import { WordSearch } from '../../src/guardrails/words.ts'
import { call, type ScriptedStep, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { transcript } from '../support/chats.ts'
import { generate } from '../support/graphql.ts'
import { look, story } from '../support/story.ts'
import { names as eventNames, find, problem, said } from '../support/tools.ts'

const noDogs = { decision: 'deny', words: ['dogs'], reason: 'No dogs here.' } as const

const guarded = (steps: readonly ScriptedStep[], guardrails: Guardrails, more = {}) =>
  story(steps, { guardrails, ...more })

/** What the journal says was denied. */
async function denials(server: Awaited<ReturnType<typeof story>>, chat = 'c') {
  const entries = await server.journal(chat)
  const events = entries.flatMap(({ kind, body }) => (kind === 'event' ? [body] : [])) as {
    name: string
    value: Record<string, unknown>
  }[]
  return events.filter(({ name }) => name === 'guardrail').map(({ value }) => value)
}

describe('what is said', () => {
  test('chats: a typed refusal, an entry, and no model call; the next message is answered', async () => {
    const server = await guarded([[text('Hello.')]], { input: [noDogs] })
    const body = { user_message: 'I like dogs' }
    const refused = await server.request('POST', '/chats/c/interactions', body)
    expect(await problem(refused)).toMatchObject({
      ...{ http: 422, code: 'guardrail', message: 'No dogs here.' },
    })
    expect(server.model.requests).toEqual([])
    expect(await denials(server)).toEqual([
      {
        ...{ where: 'input', rule: 'input.0', reason: 'No dogs here.' },
        ...{ messageId: expect.any(String), text: 'I like dogs' },
      },
    ])
    expect((await server.chat('c')).interactions).toEqual([])
    await (await server.start('c', 'hi')).rest()
    expect(said(server.model.requests[0])).toEqual(['user: hi'])
  })

  test('what must not be stored is not', async () => {
    const server = await guarded([], { input: [noDogs], redact: true })
    await server.request('POST', '/chats/c/interactions', { user_message: 'my dogs and my pin' })
    const journal = JSON.stringify(await server.journal('c'))
    expect(journal).toContain('No dogs here.')
    expect(journal).not.toContain('my pin')
  })

  test('AG-UI: RUN_ERROR, and what was refused is left out when it comes again', async () => {
    const server = await guarded([[text('Meow.')], [text('Purr.')]], { input: [noDogs] })
    const dogs = { id: 'm1', role: 'user', content: 'dogs' }
    const refusal = { type: 'RUN_ERROR', code: 'guardrail', message: 'No dogs here.' }
    expect(await agui(server.url, { messages: [dogs] })).toEqual([expect.objectContaining(refusal)])
    expect(await agui(server.url, { runId: 'r2', messages: [dogs] })).toHaveLength(1)
    expect(await denials(server)).toHaveLength(1)
    const cats = { id: 'm2', role: 'user', content: 'cats' }
    const events = await agui(server.url, { runId: 'r3', messages: [dogs, cats] })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(said(server.model.requests[0])).toEqual(['user: cats'])
    const third = { id: 'm3', role: 'user', content: 'more' }
    await agui(server.url, { runId: 'r4', messages: [dogs, cats, third] })
    expect(said(server.model.requests[1])).toEqual([
      ...['user: cats', 'assistant: Meow.', 'user: more'],
    ])
  })

  test('what was refused is in nobody’s way when a tool of the page answers', async () => {
    const steps = [[call('call1', 'paint', { colour: 'red' })], [text('Painted.')]]
    const server = await guarded(steps, { input: [noDogs] })
    const tools = [{ name: 'paint', description: '', parameters: { type: 'object' } }]
    const dogs = { id: 'm1', role: 'user', content: 'dogs' }
    const cats = { id: 'm2', role: 'user', content: 'cats' }
    await agui(server.url, { messages: [dogs], tools })
    await agui(server.url, { runId: 'r2', messages: [dogs, cats], tools })
    const done = { id: 'm3', role: 'tool', toolCallId: 'call1', content: 'red now' }
    const events = await agui(server.url, { runId: 'r3', messages: [dogs, cats, done], tools })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(said(server.model.requests[1]).at(-1)).toBe('tool: red now')
  })

  test("GraphQL: the contract's status, also for the page's own rules, which only tighten", async () => {
    const server = await guarded([[text('Meow.')]], { input: [noDogs] })
    const say = (id: string, content: string, rules = {}) =>
      generate(server.url, id, content, { cloud: { guardrails: { inputValidationRules: rules } } })
    const status = (reason: string) => ({
      ...{ code: 'Failed', reason: 'GUARDRAILS_VALIDATION_FAILED' },
      details: { guardrailsReason: reason },
    })
    expect((await say('m1', 'dogs', { allowList: ['dogs'] })).status).toEqual(
      status('No dogs here.'),
    )
    const birds = await say('m2', 'birds', { denyList: ['birds'] })
    expect(birds.status).toEqual(status('The message is about something not allowed here: birds.'))
    expect((await say('m3', 'cats')).status).toMatchObject({ code: 'Success' })
    expect(await denials(server)).toMatchObject([{ rule: 'input.0' }, { rule: 'client.deny' }])
  })

  test.each([
    ['33,000 words', Array.from({ length: 33_000 }, (_, i) => String.fromCharCode(0x3400 + i))],
    ['a word of 66,000 characters', ['x'.repeat(66_000)]],
  ])('a denyList with %s is refused by name and starts nothing', async (_, denyList) => {
    const server = await guarded([], {})
    const cloud = { guardrails: { inputValidationRules: { allowList: [], denyList } } }
    const refused = generate(server.url, 'm1', 'hello', { cloud })
    await expect(refused).rejects.toThrow(/inputValidationRules\.denyList: .*Send/)
    expect(server.model.requests).toEqual([])
  })

  test('1,000 words of a client are searched in a message of 1 MB', async () => {
    const server = await guarded([[text('Meow.')]], {})
    const denyList = Array.from({ length: 1_000 }, (_, i) => `${'ab '.repeat(15)}${i}`)
    const cloud = { guardrails: { inputValidationRules: { allowList: ['dog'], denyList } } }
    const long = 'ab '.repeat(350_000)
    const say = (id: string, content: string) => generate(server.url, id, content, { cloud })
    expect((await say('m1', `${long} 999 dog`)).status.details.guardrailsReason).toContain('ab 999')
    expect((await say('m2', `${long} dog`)).status).toMatchObject({ code: 'Success' })
  })

  test('the server handles other work between the steps that read the words of a client', async () => {
    const server = await guarded([[text('Meow.')]], {})
    let turns = 0
    const turnsOfSteps: number[] = []
    const build = WordSearch.build
    vi.spyOn(WordSearch, 'build').mockImplementation(function* (words) {
      for (const steps = build(words); ; yield) {
        const { done, value } = steps.next()
        turnsOfSteps.push(turns)
        if (done) return value
      }
    })
    const denyList = Array.from({ length: 249 }, (_, word) =>
      String.fromCharCode(
        ...Array.from({ length: 200 }, (_, i) => 0x4e00 + ((word + i * word) % 0x5000)),
      ),
    )
    const cloud = { guardrails: { inputValidationRules: { allowList: [], denyList } } }
    let isCounting = true
    const counting = (async () => {
      for (; isCounting; turns++) await setImmediate()
    })()
    const { status } = await generate(server.url, 'm1', denyList[5]!, { cloud })
    isCounting = false
    await counting
    vi.restoreAllMocks()
    expect(status.details.guardrailsReason).toContain(denyList[5])
    expect(new Set(turnsOfSteps).size).toBeGreaterThan(8)
  })

  test('a message that is too long for a pattern of the operator is refused', async () => {
    const server = await guarded([], {
      input: [{ id: 'cards', decision: 'deny', pattern: /\d{16}/ }],
    })
    const body = { user_message: 'x'.repeat(100_001) }
    const refused = await server.request('POST', '/chats/c/interactions', body)
    expect(await problem(refused)).toMatchObject({
      ...{ http: 422, code: 'guardrail', message: expect.stringContaining('Shorten it') },
    })
  })

  test('history that a client brings does not get around it', async () => {
    const server = await guarded([[text('Meow.')]], { input: [noDogs] })
    await agui(server.url, {
      messages: [
        { id: 'm1', role: 'user', content: 'dogs' },
        { id: 'm2', role: 'assistant', content: 'Yes?' },
        { id: 'm3', role: 'user', content: 'go on' },
      ],
    })
    expect(said(server.model.requests[0])).toEqual(['assistant: Yes?', 'user: go on'])
  })
})

describe('what models say', () => {
  const secret = {
    id: 'secret',
    decision: 'deny',
    words: ['top secret'],
    reason: 'Not that.',
  } as const

  test('is cut before it is shown, taken back, and the run says why', async () => {
    const pieces = ['It is ', 'to', 'p sec', 'ret', ' stuff'].map(text)
    const server = await guarded([pieces], { output: [secret] })
    const frames = await (await server.start('c', 'tell me')).rest()
    const shown = frames.filter(({ event }) => event === 'answer_delta')
    expect(shown.map(({ data }) => data.delta).join('')).toBe('It is ')
    expect([...transcript(frames).values()]).toEqual([])
    expect(find(frames, 'error')).toMatchObject({ code: 'guardrail', error: 'Not that.' })
    expect(eventNames(frames)).toContain('retracted')
    expect(await denials(server)).toEqual([
      { where: 'output', rule: 'secret', reason: 'Not that.' },
    ])
    expect(JSON.stringify(await server.journal('c'))).not.toContain('top secret')
  })

  test('AG-UI and GraphQL are told with their own words', async () => {
    const steps = [[text('top secret')], [text('top secret')], [text('All well.')]]
    const server = await guarded(steps, { output: [secret] })
    const events = await agui(server.url, { messages: [{ id: 'm1', role: 'user', content: 'a' }] })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'guardrail' })
    expect(JSON.stringify(events)).not.toContain('top')
    const { status } = await generate(server.url, 'm2', 'b', { threadId: 'd' })
    expect(status).toMatchObject({ reason: 'GUARDRAILS_VALIDATION_FAILED' })
    await (await server.start('c', 'and now?')).rest()
    expect(said(server.model.requests[2])).toEqual(['user: a', 'user: and now?'])
  })
})

test('what tools are called with: the call is refused, and the model hears why', async () => {
  const rule = {
    decision: 'deny',
    pattern: /passw(or)?d/i,
    tool: 'lo*',
    reason: 'No secrets.',
  } as const
  const steps = [[look('1', '/etc/PASSWD')], [look('2', '/etc/hosts')], [text('Done.')]]
  const server = await guarded(steps, { arguments: [rule] })
  await (await server.start('c', 'look')).rest()
  expect(server.looked).toEqual(['/etc/hosts'])
  expect(said(server.model.requests[1]).at(-1)).toBe('tool: This call is not allowed: No secrets.')
  expect(await denials(server)).toMatchObject([
    { where: 'arguments', rule: 'arguments.0', tool: 'look' },
  ])
})

describe('topics', () => {
  const weapons = { decision: 'deny', topics: ['weapons', 'drugs'], reason: 'Not here.' } as const
  const judge = (answers: readonly string[]) =>
    scriptedModel(answers.map((answer) => [text(answer)]))
  const governor = { HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: '3' }

  test('are judged by one call that counts, and a denied message leads to no other', async () => {
    const classifier = judge(['2', '0', '1, 2'])
    const server = await guarded([[text('Well.')]], { input: [weapons], classifier })
    const start = (user_message: string) =>
      server.request('POST', '/chats/c/interactions', { user_message })
    expect((await start('where do I buy pills')).status).toBe(422)
    expect(server.model.requests).toEqual([])
    await (await server.start('c', 'hello')).rest()
    expect((await start('both')).status).toBe(422)
    expect(classifier.requests).toHaveLength(3)
    expect(classifier.requests[0]!.system[0]).toContain('1. weapons\n2. drugs')
    const { governor } = (await server.server.runtime.thread('c')).state
    expect(governor).toMatchObject({ total: 4 })
  })

  test('what could not be judged does not pass, unless the operator says so', async () => {
    const classifier = judge(['I think it is fine!'])
    const closed = await guarded([], { input: [weapons], classifier })
    const body = { user_message: 'hello' }
    const refused = await closed.request('POST', '/chats/c/interactions', body)
    expect(await problem(refused)).toMatchObject({ http: 503, code: 'guardrail_away' })
    expect(closed.model.requests).toEqual([])
    const open = await guarded([[text('Well.')]], {
      ...{ input: [weapons], classifier: judge(['?']), whenAway: 'allow' },
    })
    await (await open.start('c', 'hello')).rest()
    expect(open.model.requests).toHaveLength(1)
  })

  test('a spent budget is not passed by them, however many come at once (I9)', async () => {
    const classifier = scriptedModel(() => [text('1')])
    const { serve } = await import('../support/serve.ts')
    const guardrails: Guardrails = { input: [weapons], classifier }
    const settings = { model: scriptedModel([]), builtIns: false, guardrails }
    const server = await serve(settings, { env: governor })
    await server.request('POST', '/chats', { id: 'c' })
    const start = (_: unknown, i: number) =>
      server.request('POST', '/chats/c/interactions', { user_message: `message ${i}` })
    const statuses = await Promise.all(Array.from({ length: 8 }, start))
    const count = (status: number) => statuses.filter((one) => one.status === status).length
    expect([count(422), count(503)]).toEqual([3, 5])
    expect(classifier.requests).toHaveLength(3)
  })
})

describe('a service that judges', () => {
  interface Asked {
    input: string
    validTopics: string[]
    invalidTopics: string[]
  }

  async function service(answer: (asked: Asked) => object | number | 'never') {
    const asked: Asked[] = []
    const listening = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      asked.push(JSON.parse(body) as Asked)
      const said = answer(asked.at(-1)!)
      if (said === 'never') return
      if (typeof said === 'number') response.writeHead(said).end()
      else response.writeHead(200).end(JSON.stringify(said))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => listening.once('listening', resolve))
    onTestFinished(() => {
      listening.closeAllConnections()
      listening.close()
    })
    const { port } = listening.address() as AddressInfo
    return { asked, url: `http://127.0.0.1:${port}/guardrails/validate` }
  }

  test("is asked with the operator's topics and with the page's, and both must allow", async () => {
    const { asked, url } = await service(({ input, invalidTopics }) => {
      const denied = invalidTopics.find((topic) => input.includes(topic))
      return denied ? { status: 'denied', reason: `Off topic: ${denied}` } : { status: 'allowed' }
    })
    const server = await guarded([[text('Meow.')]], { remote: { url, deny: ['dogs'] } })
    const rules = { guardrails: { inputValidationRules: { allowList: [], denyList: ['birds'] } } }
    const say = (id: string, content: string) => generate(server.url, id, content, { cloud: rules })
    const reason = (topic: string) => ({ details: { guardrailsReason: `Off topic: ${topic}` } })
    expect((await say('m1', 'dogs')).status).toMatchObject(reason('dogs'))
    expect((await say('m2', 'birds')).status).toMatchObject(reason('birds'))
    expect((await say('m3', 'cats')).status).toMatchObject({ code: 'Success' })
    expect(asked.map(({ invalidTopics }) => invalidTopics[0])).toEqual([
      ...['dogs', 'dogs', 'birds', 'dogs', 'birds'],
    ])
    expect(server.model.requests).toHaveLength(1)
  })

  test.each([
    ['fails', 500],
    ['hangs', 'never'],
    ['says something else', { status: 'maybe' }],
  ] as const)('one that %s lets nothing pass, and every response ends', async (_, answer) => {
    const { url } = await service(() => answer)
    const server = await guarded([[text('Well.')]], { remote: { url, timeout: 500 } })
    const { status } = await generate(server.url, 'm1', 'hi')
    expect(status).toMatchObject({ code: 'Failed', reason: 'UNKNOWN_ERROR' })
    expect(server.model.requests).toEqual([])
    const remote = { url, timeout: 500 }
    const open = await guarded([[text('Well.')]], { remote, whenAway: 'allow' })
    await (await open.start('c', 'hi')).rest()
    expect(open.model.requests).toHaveLength(1)
  })
})

test('an approval that changes the arguments to forbidden ones runs nothing', async () => {
  const rule = { decision: 'deny', words: ['bob'], reason: 'Not bob.' } as const
  const steps = [[call('1', 'send', { to: 'ann', amount: 1 })], [text('Done.')]]
  const server = await guarded(steps, { arguments: [rule] })
  const stream = await server.start('c', 'pay')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  const edited_input = { to: 'bob', amount: 1 }
  await server.approve('c', interaction, { approval_id, approved: true, edited_input })
  await stream.rest()
  expect(server.sent).toEqual([])
  expect(said(server.model.requests[1]).at(-1)).toBe('tool: This call is not allowed: Not bob.')
})
