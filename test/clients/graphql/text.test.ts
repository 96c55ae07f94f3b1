import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { serve } from '../../support/serve.ts'
import { story } from '../../support/story.ts'
import { said } from '../../support/tools.ts'
import { dataOf, generate, openPage, succeeded, textInput, userMessage } from './support.ts'

describe('a text', () => {
  test('is on the page piece by piece, each before the model may write the next', async () => {
    const pieces = ['Hello', ' wörld', ' ✓', '\n"quoted"', '\r\n---', '\u2028 end']
    const stands = pieces.map(() => gate())
    const server = await story(async function* (_request, _n, signal) {
      for (const [i, piece] of pieces.entries()) {
        yield text(piece)
        await stands[i]!.pass(signal)
      }
    })
    const page = openPage(server.url)
    page.add(userMessage('hello'))
    const watching = page.begin()
    for (const [i, stand] of stands.entries()) {
      await stand.reached
      await watching.sees(pieces.slice(0, i + 1).join(''))
      const now = watching.seen.at(-1)!
      expect(now.status, 'nothing has ended yet').toBeUndefined()
      expect(now.messages[0].status).toBeUndefined()
      stand.open()
    }
    const heard = await watching.done
    succeeded(heard)
    expect(page.shown()).toEqual(['user: hello', `assistant: ${pieces.join('')}`])
    expect(heard.last).toMatchObject({ threadId: 't', messages: [{ role: 'assistant' }] })
    expect(heard.messages[0]!.status.code).toBe('Success')
    expect(new Set(heard.seen.map(({ messages }) => messages[0]?.content.join(''))).size).toBe(
      pieces.length + 1,
    )
    expect([page.errors, page.warnings]).toEqual([[], []])
  })

  test('of many pieces is whole, and pieces that come together are sent together', async () => {
    const pieces = Array.from({ length: 2_000 }, (_, i) => `${i} `)
    const server = await story([pieces.map(text)])
    const page = openPage(server.url)
    const heard = await page.say('count')
    succeeded(heard)
    expect(page.shown().at(-1)).toBe(`assistant: ${pieces.join('')}`)
    expect(heard.answer.stream!.payloads.length).toBeLessThan(pieces.length)
  })

  test('that was begun before another says something is not mixed up with it', async () => {
    const server = await story((request) => [text(`You said ${said(request).at(-1)}.`)])
    const [a, b] = ['a', 'b'].map((threadId) => openPage(server.url, { threadId }))
    await Promise.all([a!.say('one'), b!.say('two')])
    expect(a!.shown()).toEqual(['user: one', 'assistant: You said user: one.'])
    expect(b!.shown()).toEqual(['user: two', 'assistant: You said user: two.'])
  })
})

describe('a chat', () => {
  test('goes on: the model hears everything once, and the page’s instructions beside it', async () => {
    const server = await story([[text('One.')], [text('Two.')], [text('Three.')]])
    const page = openPage(server.url, { system: 'Speak plainly.' })
    for (const words of ['first', 'second', 'third']) succeeded(await page.say(words))
    const all = [
      ...['user: first', 'assistant: One.', 'user: second', 'assistant: Two.'],
      ...['user: third', 'assistant: Three.'],
    ]
    expect(page.shown()).toEqual(all)
    expect(said(server.model.requests[2])).toEqual(all.slice(0, -1))
    for (const { system } of server.model.requests)
      expect(system.filter((one) => one.includes('Speak plainly.'))).toHaveLength(1)
    const stored = (await server.journal('t')).filter(({ kind }) => kind === 'message.added')
    expect(JSON.stringify(stored)).not.toContain('Speak plainly.')
  })

  test('is the same on a page that loads it', async () => {
    const server = await story([[text('One.')], [text('Two.')]])
    const page = openPage(server.url)
    await page.say('first')
    const other = openPage(server.url)
    expect(await other.load()).toMatchObject({ error: undefined, exists: true })
    expect(other.shown()).toEqual(page.shown())
    expect(other.messages.map(({ id }) => id)).toEqual(page.messages.map(({ id }) => id))
    succeeded(await other.say('second'))
    expect(said(server.model.requests[1])).toEqual([
      ...['user: first', 'assistant: One.', 'user: second'],
    ])
  })

  test.for(['/copilotkit', '/api/copilotkit', '/copilotkit/graphql'])('is at %s', async (path) => {
    const server = await story([[text('Hi.')]])
    const page = openPage(server.url, { path })
    succeeded(await page.say('hello'))
    expect(page.shown().at(-1)).toBe('assistant: Hi.')
  })

  test('without a thread gets one, by whose id it goes on', async () => {
    const server = await story([[text('One.')], [text('Two.')]])
    const page = openPage(server.url, { threadId: null })
    const first = await page.say('first')
    succeeded(first)
    const { threadId } = first.last
    expect(threadId).toMatch(/\S/)
    const second = await page.say('second', undefined, { threadId })
    succeeded(second)
    expect(second.last.threadId).toBe(threadId)
    expect(said(server.model.requests[1])).toEqual([
      ...['user: first', 'assistant: One.', 'user: second'],
    ])
  })

  test('without a thread is a new one each time', async () => {
    const server = await story([[text('One.')], [text('Two.')]])
    const ids = await Promise.all(
      ['a', 'b'].map(async (id) => {
        const data = { ...dataOf([textInput('hi', id)]), threadId: undefined }
        return (await generate(server.url, data)).response.threadId
      }),
    )
    expect(new Set(ids).size).toBe(2)
  })

  test('has its runId and extensions sent back to it', async () => {
    const server = await story([[text('One.')], [text('Two.')], [text('Three.')]])
    const extensions = { openaiAssistantAPI: { runId: 'r', threadId: 'x' } }
    const more = { runId: 'mine', extensions }
    const { response } = await generate(server.url, dataOf([textInput('hi', 'u1')], more))
    expect(response.runId).toBe('mine')
    const page = openPage(server.url, { threadId: 'p' })
    succeeded(await page.say('first'))
    // Whatever came back must be taken again.
    succeeded(await page.say('second'))
    expect(page.shown().at(-1)).toMatch(/^assistant: /)
  })

  test('says nothing when there is nothing to say', async () => {
    const model = scriptedModel([[]])
    const server = await serve({ model, builtIns: false })
    const page = openPage(server.url)
    const heard = await page.say('hello')
    expect(heard.error).toBeUndefined()
    expect(['Success', 'Failed']).toContain(heard.status.code)
    expect(page.shown().join('')).toMatch(/^user: hello(assistant: )?$/)
  })
})

describe('the same as text/event-stream', () => {
  test('to who accepts nothing else', async () => {
    const server = await story([[text('Hello '), text('you.')]])
    const headers = { accept: 'text/event-stream' }
    const data = dataOf([textInput('hello', 'u1')])
    const { headers: told, response } = await generate(server.url, data, { headers })
    expect(told.get('content-type')).toContain('text/event-stream')
    expect(response.messages[0].content.join('')).toBe('Hello you.')
    expect(response.status.code).toBe('Success')
  })
})
