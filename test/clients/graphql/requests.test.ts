import { describe, expect, test } from 'vitest'
import type { Agent } from '../../../src/core/agent.ts'
import type { RunOptions } from '../../../src/core/entries.ts'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { serve } from '../../support/serve.ts'
import { story } from '../../support/story.ts'
import { said } from '../../support/tools.ts'
import { ImageMessage, Role } from './client.ts'
import { openPage, succeeded } from './support.ts'

describe('what a page sends along', () => {
  test('forwarded parameters reach the model', async () => {
    const server = await story([[text('Hi.')]])
    const page = openPage(server.url)
    const forwardedParameters = {
      ...{ model: 'big', maxTokens: 100, stop: ['END'], temperature: 0.3, toolChoice: 'required' },
    }
    succeeded(await page.say('hi', undefined, { forwardedParameters }))
    expect(server.model.requests[0]!.parameters).toEqual({
      ...{ model: 'big', maxOutputTokens: 100, stop: ['END'], temperature: 0.3 },
      toolChoice: 'required',
    })
  })

  test('properties reach the agent, and no model', async () => {
    const seen: RunOptions[] = []
    const agent: Agent = {
      name: 'seer',
      async *run(ctx) {
        seen.push(ctx.options)
        const parts = [{ type: 'text' as const, text: 'Seen.' }]
        yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
      },
    }
    const server = await serve({ agents: [agent] })
    const page = openPage(server.url, { properties: { user: 'u1', deep: { a: [1] } } })
    succeeded(await page.say('hi'))
    expect(seen[0]!.forwarded).toMatchObject({ user: 'u1', deep: { a: [1] } })
  })

  test('context, instructions and the full context are instructions, never history', async () => {
    const server = await story([[text('Hi.')], [text('Again.')]])
    const page = openPage(server.url, { system: 'Be brief.' })
    const context = [{ description: 'The current user', value: '{"name":"Ann"}' }]
    const frontend = { actions: [], toDeprecate_fullContext: 'All of the page.' }
    succeeded(await page.say('hi', undefined, { context, frontend }))
    const [first] = server.model.requests
    const instructions = first!.system.join('\n')
    for (const words of ['Be brief.', 'The current user', '"name":"Ann"', 'All of the page.'])
      expect(instructions).toContain(words)
    expect(said(first)).toEqual(['user: hi'])
    succeeded(await page.say('again'))
    expect(server.model.requests[1]!.system.join('\n')).not.toContain('Ann')
    expect(said(server.model.requests[1])).toEqual(['user: hi', 'assistant: Hi.', 'user: again'])
  })

  test('developer messages are instructions too', async () => {
    const server = await story([[text('Hi.')]])
    const page = openPage(server.url, { system: null })
    const developer = {
      ...{ id: 'd1', createdAt: new Date().toISOString() },
      textMessage: { content: 'Speak French.', role: 'developer' },
    }
    const user = { ...developer, id: 'u1', textMessage: { content: 'hi', role: 'user' } }
    succeeded(await page.complete({ messages: [developer, user] as never }))
    expect(server.model.requests[0]!.system.join()).toContain('Speak French.')
    expect(said(server.model.requests[0])).toEqual(['user: hi'])
  })

  test('JSON inside of a text is as deep as JSON may be', async () => {
    const server = await story([[text('Hi.')]])
    const page = openPage(server.url, { agent: 'default' })
    const deep = (levels: number) => ({
      agentStates: [
        { agentName: 'default', state: `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}` },
      ],
    })
    for (const levels of [100, 20_000]) {
      const { error } = await page.say('hi', undefined, deep(levels) as never)
      expect(String(error)).toContain('deeper than 64 levels')
    }
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
    succeeded(await page.say('hi', undefined, deep(60) as never))
  })

  test('an image is given to a model that reads images', async () => {
    const model = { ...scriptedModel([[text('A cat.')], [text('Yes.')]]), accepts: ['image/*'] }
    const server = await serve({ model, builtIns: false })
    const page = openPage(server.url)
    page.add(new ImageMessage({ format: 'png', bytes: 'iVBORw0KGgo=', role: Role.User }))
    succeeded(await page.say('what is it?'))
    const media = { type: 'media', mediaType: 'image/png', data: 'iVBORw0KGgo=' }
    const parts = model.requests[0]!.messages.flatMap((one) => one.parts)
    expect(parts).toContainEqual(expect.objectContaining(media))
    expect(said(model.requests[0]).join()).toContain('what is it?')
    // It is on a page that loads, and is not new when it comes back.
    const other = openPage(server.url)
    await other.load()
    expect(other.shown()).toEqual(page.shown())
    succeeded(await other.say('sure?'))
    expect(model.requests).toHaveLength(2)
  })

  test('an image is refused for a model that reads text only', async () => {
    const server = await story([[text('?')]])
    const page = openPage(server.url)
    page.add(new ImageMessage({ format: 'png', bytes: 'iVBORw0KGgo=', role: Role.User }))
    const heard = await page.say('what is it?')
    if (heard.error)
      expect(heard.error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
    else expect(heard.status).toMatchObject({ code: 'Failed' })
    expect(server.model.requests).toEqual([])
  })
})

describe('guardrails of the page', () => {
  const rules = (allowList: string[], denyList: string[]) => ({
    data: { cloud: { guardrails: { inputValidationRules: { allowList, denyList } } } },
  })
  const denied = {
    ...{ code: 'Failed', reason: 'GUARDRAILS_VALIDATION_FAILED' },
    details: { guardrailsReason: expect.stringMatching(/\S/) },
  }

  test.for([
    ['a word that is denied', rules([], ['dogs']), 'Tell me of Dogs!', false],
    ['a word that only contains one', rules([], ['cat']), 'concatenate this', true],
    ['no word that is allowed', rules(['cats'], []), 'Tell me of dogs', false],
    ['a word that is allowed', rules(['cats'], ['dogs']), 'Tell me of cats', true],
    ['empty rules', rules([], []), 'Tell me of dogs', true],
  ] as const)('%s', async ([, more, words, passes]) => {
    const server = await story([[text('Well.')]])
    const page = openPage(server.url, { publicApiKey: 'ck_pub_test', ...(more as object) })
    const heard = await page.say(words)
    expect(heard.error).toBeUndefined()
    if (passes) succeeded(heard)
    else expect(heard.status).toMatchObject(denied)
    expect(server.model.requests).toHaveLength(passes ? 1 : 0)
  })

  test('with nothing but a key are none', async () => {
    const server = await story([[text('Well.')]])
    const page = openPage(server.url, { publicApiKey: 'ck_pub_test', data: { cloud: {} } })
    succeeded(await page.say('hi'))
  })

  test('deny a message and not the chat: the next one is answered', async () => {
    const server = await story([[text('Meow.')]])
    const page = openPage(server.url, { publicApiKey: 'ck_pub_test', ...rules([], ['dogs']) })
    expect((await page.say('dogs')).status).toMatchObject(denied)
    succeeded(await page.say('cats'))
    expect(page.shown().at(-1)).toBe('assistant: Meow.')
  })
})
