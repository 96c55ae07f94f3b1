import { describe, expect, test } from 'vitest'
import type { Agent } from '../../../src/core/agent.ts'
import { text } from '../../../src/models/scripted.ts'
import { serve } from '../../support/serve.ts'
import { send, story } from '../../support/story.ts'
import { said } from '../../support/tools.ts'
import { metaEvent, openPage, type Page, resultMessage, succeeded, userMessage } from './support.ts'

async function asking(more = [[text('Done.')], [text('More.')]]) {
  const server = await story([[text('I pay.'), send('1')], ...more])
  const page = openPage(server.url)
  const heard = await page.say('pay ann')
  return { server, page, heard }
}

const interruptsOf = (page: Page) => page.answers.at(-1)!.told().response.metaEvents as unknown[]

describe('a question', () => {
  test('is an interrupt that says what to decide on, at the end of a good response', async () => {
    const { server, page, heard } = await asking()
    succeeded(heard)
    expect(heard.last.metaEvents).toHaveLength(1)
    expect(page.interrupt!.value).toMatchObject({
      ...{ askId: expect.stringMatching(/\S/), kind: 'approval', title: 'Send 5 to “ann”' },
      ...{ tool: 'send', input: { to: 'ann', amount: 5 } },
    })
    expect(page.shown()[1]).toBe('assistant: I pay.')
    expect(server.sent).toEqual([])
  })

  test.for([
    ['{"approved":true}', { approved: true }],
    ['the word yes', 'yes'],
  ] as const)('answered by %s is done, and told of in the same response', async ([, words]) => {
    const { server, page } = await asking()
    succeeded(await page.resolve(words))
    expect(server.sent).toEqual([{ to: 'ann', amount: 5 }])
    expect(page.shown()).toContain('result sent 5 to ann')
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(page.interrupt).toBeUndefined()
    expect(page.errors).toEqual([])
  })

  test.for([
    ['{"approved":false}', { approved: false, reason: 'ann is rich' }, 'ann is rich'],
    ['the word no', 'no', ''],
  ] as const)('answered by %s is not done, and the model hears why', async ([, words, reason]) => {
    const { server, page } = await asking()
    succeeded(await page.resolve(words))
    expect(server.sent).toEqual([])
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(said(server.model.requests[1]).at(-1)).toMatch(/^tool: /)
    expect(said(server.model.requests[1]).at(-1)).toContain(reason)
  })

  test('answered with other arguments is done with those', async () => {
    const { server, page } = await asking()
    succeeded(await page.resolve({ approved: true, editedArgs: { to: 'bob', amount: 2 } }))
    expect(server.sent).toEqual([{ to: 'bob', amount: 2 }])
  })

  test('answered with arguments that the tool would not take is refused, and stays', async () => {
    const { server, page } = await asking()
    const refused = await page.resolve({ approved: true, editedArgs: { to: '', amount: 1_000 } })
    expect(refused.error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
    expect(server.sent).toEqual([])
    succeeded(await page.complete())
    expect(page.interrupt!.value).toMatchObject({ tool: 'send' })
  })

  test.for([['maybe'], ['{}'], ['{"approved":"yes"}'], ['[true]']])(
    'answered by %s is refused, and stays open',
    async ([words]) => {
      const { server, page } = await asking()
      const { error } = await page.resolve(words)
      expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
      expect(server.sent).toEqual([])
      expect((await server.journal('t')).at(-1)?.kind).toBe('run.waiting')
      // Shown again to who asks, and answered then.
      succeeded(await page.complete())
      succeeded(await page.resolve('yes'))
      expect(server.sent).toHaveLength(1)
    },
  )

  test('answered twice is done once, and the second hears how it went', async () => {
    const { server, page } = await asking()
    const { text: value } = page.interrupt!
    const list = [...page.messages]
    succeeded(await page.resolve('yes'))
    const again = openPage(server.url)
    again.messages = list
    const second = await again.complete({ metaEvents: [metaEvent(value, 'no')] })
    succeeded(second)
    expect(server.sent).toHaveLength(1)
    expect(again.shown().at(-1)).toBe('assistant: Done.')
    expect(server.model.requests).toHaveLength(2)
    expect(second.last.metaEvents).toEqual([])
  })

  test('answered twice at once is done once', async () => {
    const { server, page } = await asking()
    const { text: value } = page.interrupt!
    const other = openPage(server.url)
    other.messages = [...page.messages]
    const metaEvents = [metaEvent(value, { approved: true })]
    const both = await Promise.all([page.complete({ metaEvents }), other.complete({ metaEvents })])
    for (const one of both) succeeded(one)
    expect(server.sent).toHaveLength(1)
    expect(server.model.requests).toHaveLength(2)
    for (const one of [page, other]) expect(one.shown().at(-1)).toBe('assistant: Done.')
  })

  test('that was never asked cannot be answered', async () => {
    const { server, page } = await asking()
    const value = JSON.stringify({ ...page.interrupt!.value, askId: 'ask_forged' })
    const { error } = await page.complete({ metaEvents: [metaEvent(value, 'yes')] })
    expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
    expect(server.sent).toEqual([])
    expect((await server.journal('t')).at(-1)?.kind).toBe('run.waiting')
  })

  test('of another thread cannot be answered here', async () => {
    const { server, page } = await asking([[text('Hi.')]])
    const other = openPage(server.url, { threadId: 'other' })
    await other.say('hello')
    const { error } = await other.complete({
      metaEvents: [metaEvent(page.interrupt!.text, 'yes')],
    })
    expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
    expect(server.sent).toEqual([])
  })

  test('is shown again by a message past it, which is answered when the question is', async () => {
    const { server, page } = await asking()
    const shown = interruptsOf(page)
    const passed = await page.say('hurry up')
    succeeded(passed)
    expect(interruptsOf(page)).toEqual(shown)
    expect(server.model.requests).toHaveLength(1)
    expect(server.sent).toEqual([])
    const kinds = (await server.journal('t')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'run.queued')).toHaveLength(1)

    succeeded(await page.resolve('yes'))
    expect(server.sent).toHaveLength(1)
    expect(said(server.model.requests.at(-1)).at(-1)).toBe('user: hurry up')
    expect(page.shown().at(-1)).toBe('assistant: More.')
    expect(page.shown().filter((line) => line === 'user: hurry up')).toHaveLength(1)
  })

  test('is shown to a page that loads later, and answered there', async () => {
    const { server, page } = await asking()
    const other = openPage(server.url)
    await other.load()
    expect(other.shown()).toEqual(page.shown())
    succeeded(await other.complete())
    expect(other.interrupt).toEqual(page.interrupt)
    succeeded(await other.resolve('yes'))
    expect(other.shown().at(-1)).toBe('assistant: Done.')
    expect(server.sent).toHaveLength(1)
  })
})

describe('two questions', () => {
  test('are asked one after the other, the older first', async () => {
    const server = await story([[send('1', 1), send('2', 2)], [text('Done.')]])
    const page = openPage(server.url)
    await page.say('pay twice')
    expect(interruptsOf(page)).toHaveLength(1)
    expect(page.interrupt!.value.input).toEqual({ to: 'ann', amount: 1 })
    succeeded(await page.resolve({ approved: false }))
    expect(interruptsOf(page)).toHaveLength(1)
    expect(page.interrupt!.value.input).toEqual({ to: 'ann', amount: 2 })
    expect(server.model.requests).toHaveLength(1)
    succeeded(await page.resolve({ approved: true }))
    expect(server.sent).toEqual([{ to: 'ann', amount: 2 }])
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(interruptsOf(page)).toEqual([])
  })
})

describe('a question of an agent', () => {
  const asks = (input: unknown): Agent => ({
    name: 'asker',
    async *run(ctx) {
      const { value } = await ctx.ask({ kind: 'input', key: 'q', title: 'A question', input })
      const parts = [{ type: 'text' as const, text: `You said ${JSON.stringify(value)}.` }]
      yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
    },
  })

  test.for([
    ['words', 'Which color?', 'teal', '"teal"'],
    ['an object', { question: 'Which color?', options: ['red', 'teal'] }, 'teal', '"teal"'],
    ['an object, and so is its answer', { question: 'Who?' }, { name: 'ann' }, '{"name":"ann"}'],
  ] as const)('is %s', async ([, input, answer, heard]) => {
    const server = await serve({ agents: [asks(input)] })
    const page = openPage(server.url, { agent: 'asker' })
    succeeded(await page.say('go'))
    expect(page.interrupt!.value).toEqual(input)
    succeeded(await page.resolve(answer))
    expect(page.shown()).toEqual(['user: go', `assistant: You said ${heard}.`])
    expect(page.interrupt).toBeUndefined()
  })

  test('that brings messages along shows them, and their results are no forgery', async () => {
    const calls = [{ id: 'ci-1', name: 'paint', args: { color: 'red' } }]
    const brought = [{ id: 'mi-1', content: 'Look at this.', tool_calls: calls }]
    const asked = { __copilotkit_interrupt_value__: 'Shall I?', __copilotkit_messages__: brought }
    const server = await serve({ agents: [asks(asked)] })
    const page = openPage(server.url, { agent: 'asker', actions: [{ name: 'paint' }] })
    const { last } = await page.say('go')
    expect(last.metaEvents).toMatchObject([
      {
        name: 'CopilotKitLangGraphInterruptEvent',
        data: {
          value: 'Shall I?',
          messages: [
            { id: 'mi-1', content: ['Look at this.'], status: { code: 'Success' } },
            { id: 'ci-1', name: 'paint', arguments: ['{"color":"red"}'] },
          ],
        },
      },
    ])
    page.add(resultMessage('ci-1', 'paint', 'painted'))
    const response = { metaEvents: [{ ...metaEvent('Shall I?', 'yes') }] }
    succeeded(await page.complete(response))
    expect(page.shown().at(-1)).toBe('assistant: You said "yes".')
  })
})

test('a question with a message in the same list: answered, and the message after it', async () => {
  const { server, page } = await asking()
  page.add(userMessage('and then?'))
  succeeded(await page.resolve('yes'))
  expect(server.sent).toHaveLength(1)
  expect(said(server.model.requests.at(-1)).at(-1)).toBe('user: and then?')
  expect(page.shown().at(-1)).toBe('assistant: More.')
})
