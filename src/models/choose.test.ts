import { AIMessageChunk } from '@langchain/core/messages'
import { FakeStreamingChatModel } from '@langchain/core/utils/testing'
import { describe, expect, test } from 'vitest'
import { answerOf, ask, failureOf, weather } from '../../test/contracts/model.contract.ts'
import { around } from '../../test/support/providers/around.ts'
import { userText } from '../core/messages.ts'
import { modelFor } from './choose.ts'
import { copilotkitAdapter, type ServiceRequest } from './copilotkit-adapter.ts'
import { langchain } from './langchain.ts'
import type { Load } from './maker.ts'
import { openai } from './openai.ts'

const here = around('http://127.0.0.1:9')
const nowhere = { ...here, access: { openai: {}, anthropic: {}, google: {} } }

describe('a model is chosen', () => {
  test('by name, by a maker, or as it is', () => {
    expect(modelFor('openai/gpt-5', here)).toMatchObject({ name: 'openai/gpt-5', window: 272_000 })
    expect(modelFor('anthropic/a/b', here).name).toBe('anthropic/a/b')
    expect(modelFor('google/gemini-2.5-pro', here).window).toBe(1_048_576)
    expect(modelFor('openai-compatible/llama3:8b', here).window).toBe(32_000)
    expect(modelFor('demo', here).name).toBe('demo')
    const own = openai({ model: 'x', apiKey: 'k', name: 'mine', window: 5, accepts: [] })
    const model = modelFor(own, nowhere)
    expect(model).toMatchObject({ name: 'mine', window: 5, accepts: [] })
    expect(modelFor(model, nowhere)).toBe(model)
  })

  test.each([
    ['openai/gpt-5', 'OPENAI_API_KEY'],
    ['anthropic/claude', 'ANTHROPIC_API_KEY'],
    ['google/gemini', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    ['openai-compatible/x', 'OPENAI_BASE_URL'],
    ['mistral/x', 'openai/<model>'],
    ['openai/', 'openai/<model>'],
    ['constructor/x', 'openai/<model>'],
  ])('%s, or is refused with a sentence that names %s', (name, named) => {
    expect(() => modelFor(name, nowhere)).toThrow(named)
  })

  test.each([
    'openai/gpt-5',
    'anthropic/claude',
    'google/gemini-2.5-pro',
    'openai-compatible/llama3',
  ])('%s has its SDK loaded when it is made', async (name) => {
    const loads: Promise<unknown>[] = []
    const load: Load = (begin) => {
      const loading = begin()
      loads.push(loading)
      return () => loading
    }
    modelFor(name, { ...here, load })
    expect(await Promise.all(loads)).toHaveLength(1)
  })

  test('without a key where clients bring theirs; without theirs it is an authentication error', async () => {
    const model = modelFor('openai/gpt-5', { ...nowhere, clientKeys: true })
    expect(await failureOf(answerOf(model, ask('hi')))).toMatchObject({ code: 'authentication' })
  })
})

describe('LangChain', () => {
  test('any chat model streams', async () => {
    const fake = new FakeStreamingChatModel({
      chunks: ['a', 'b'].map((content) => new AIMessageChunk({ content })),
    })
    expect((await answerOf(langchain(fake), ask('hi'))).text).toBe('ab')
  })

  test('a function may answer at once, in pieces, or with messages', async () => {
    const chains = [
      () => 'ab',
      async () => new AIMessageChunk({ content: 'ab' }),
      async function* () {
        yield 'a'
        yield new AIMessageChunk({ content: [{ type: 'text', text: 'b' }] })
      },
    ]
    for (const chain of chains)
      expect((await answerOf(langchain(chain), ask('hi'))).text).toBe('ab')
  })

  test('a function is given the messages, the tools and a signal', async () => {
    const model = langchain(({ messages, tools, signal }) => {
      const kinds = messages.map((message) => message.getType()).join()
      return `${kinds} ${tools[0]?.function.name} ${signal.aborted}`
    })
    const { text } = await answerOf(model, ask('hi', { tools: [weather] }))
    expect(text).toBe('system,human get_weather false')
  })
})

test('what a service adapter returns as extensions is given to it the next time', async () => {
  const seen: unknown[] = []
  const model = copilotkitAdapter({
    async process({ eventSource, extensions }: ServiceRequest) {
      seen.push(extensions)
      await eventSource.stream(async (events) => {
        events.next({ type: 'TextMessageContent', messageId: 'm', content: 'hi' })
        events.sendActionExecution({
          actionExecutionId: 'c',
          actionName: 'get_weather',
          args: '{}',
        })
        events.complete()
      })
      return { threadId: 't', extensions: { openaiAssistantAPI: { threadId: 'remote' } } }
    },
  })
  const first = await answerOf(model, ask('hi', { tools: [weather] }))
  expect(first.text).toBe('hi')
  expect(first.calls).toMatchObject([{ callId: 'c', name: 'get_weather', input: '{}' }])
  const kept = first.events.find((event) => event.type === 'meta')
  const said = {
    id: 'a',
    role: 'assistant' as const,
    parts: [{ type: 'text' as const, text: 'hi' }],
  }
  const messages = [userText('u', 'hi'), { ...said, ...kept }, userText('u2', 'go on')]
  await answerOf(model, ask('', { messages }))
  expect(seen).toEqual([undefined, { openaiAssistantAPI: { threadId: 'remote' } }])
})
