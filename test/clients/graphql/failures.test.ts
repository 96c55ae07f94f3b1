import { describe, expect, test } from 'vitest'
import { type ErrorCode, RuntimeError } from '../../../src/core/errors.ts'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { serve } from '../../support/serve.ts'
import { story } from '../../support/story.ts'
import {
  dataOf,
  document,
  generate,
  openPage,
  post,
  succeeded,
  textInput,
  userMessage,
} from './support.ts'

const failed = {
  ...{ code: 'Failed', reason: 'UNKNOWN_ERROR', __typename: 'FailedResponseStatus' },
  details: { description: expect.any(String), originalError: { code: expect.any(String) } },
}
const once = { retry: { attempts: 1 } }
const quickly = { retry: { first: 0 } }

describe('a run that fails', () => {
  test('before it says a word', async () => {
    const server = await story([[new RuntimeError('model_request')], [text('Now.')]], once)
    const page = openPage(server.url)
    const heard = await page.say('go')
    expect(heard.error).toBeUndefined()
    expect(heard.status).toMatchObject(failed)
    expect(heard.status.details.description).toBe('The model provider refused the request.')
    expect(heard.messages).toEqual([])
    // The chat is not stuck.
    succeeded(await page.say('again'))
    expect(page.shown().at(-1)).toBe('assistant: Now.')
  })

  test('in the middle of a text: it is closed as failed', async () => {
    const stands = gate()
    const server = await story(async function* (_request, _n, signal) {
      yield text('partial ')
      await stands.pass(signal)
      yield new RuntimeError('model_request')
    }, once)
    const page = openPage(server.url)
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('partial')
    stands.open()
    const heard = await watching.done
    expect(heard.error).toBeUndefined()
    expect(heard.status).toMatchObject(failed)
    expect(heard.last.messages).toMatchObject([
      { status: { code: 'Failed', reason: expect.stringMatching(/\S/) } },
    ])
    expect(page.errors).toEqual([])
  })

  test('in the middle of arguments: no page runs what was not finished', async () => {
    const stands = gate()
    const ran: unknown[] = []
    const server = await story(async function* (_request, _n, signal) {
      yield { type: 'input', callId: '1', name: 'paint', text: '{"color":"te' }
      await stands.pass(signal)
      yield new RuntimeError('model_request')
    }, once)
    const handler = (args: unknown) => ran.push(args)
    const page = openPage(server.url, { actions: [{ name: 'paint', handler }] })
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('paint')
    stands.open()
    const heard = await watching.done
    expect(heard.status).toMatchObject(failed)
    const [call] = heard.last.messages
    expect(call).toMatchObject({ name: '', status: { code: 'Failed' } })
    expect(page.shown().join()).not.toContain('paint')
  })

  test.for<[ErrorCode | 'a stranger', RegExp]>([
    ['authentication', /AUTHENTICATION_ERROR|UNKNOWN|CONFIGURATION_ERROR/],
    ['network', /NETWORK_ERROR/],
    ['rate_limit', /NETWORK_ERROR|UNKNOWN/],
    ['too_many_steps', /UNKNOWN|MISUSE|CONFIGURATION_ERROR/],
    ['a stranger', /UNKNOWN/],
  ])('of %s has a code that React knows, and no stack', async ([code, known]) => {
    const error =
      code === 'a stranger' ? new Error('secret at /srv/key.ts:3:1') : new RuntimeError(code)
    const server = await story([[error]], once)
    const { status, answer } = await openPage(server.url).say('go')
    expect(status).toMatchObject(failed)
    expect(status.details.originalError.code).toMatch(known)
    expect(JSON.stringify(answer.stream!.payloads)).not.toMatch(/secret|key\.ts|stack/)
  })

  test('is told as one on a page that loads it: what was said stays, nothing runs', async () => {
    const server = await story([[new RuntimeError('model_request')]], once)
    await openPage(server.url).say('go')
    const page = openPage(server.url)
    expect(await page.load()).toMatchObject({ error: undefined, exists: true })
    expect(page.shown()).toEqual(['user: go'])
    const again = await page.complete()
    expect(again.error).toBeUndefined()
    expect(server.model.requests).toHaveLength(1)
  })
})

describe('a stream of the model that is cut, and tried again', () => {
  test('is taken back: empty and failed, and the answer is in a message of its own', async () => {
    const stands = gate()
    const model = scriptedModel(async function* (_request, n, signal) {
      yield text(n === 0 ? 'Half an ans' : 'The whole answer.')
      if (n > 0) return
      await stands.pass(signal)
      yield new RuntimeError('stream_cut')
    })
    const server = await serve({ model, builtIns: false, ...quickly })
    const page = openPage(server.url)
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('Half an ans')
    stands.open()
    const heard = await watching.done
    succeeded(heard)
    const [cut, whole, ...more] = heard.last.messages
    expect(more).toEqual([])
    expect(cut.content.join('')).toBe('')
    expect(cut.status).toMatchObject({ code: 'Failed' })
    expect(whole.content.join('')).toBe('The whole answer.')
    expect(whole.status).toMatchObject({ code: 'Success' })
    expect(whole.id).not.toBe(cut.id)
    // What was taken back is on no other page, and no message of its own in the next request.
    const other = openPage(server.url)
    await other.load()
    expect(other.shown()).toEqual(['user: go', 'assistant: The whole answer.'])
    succeeded(await page.complete())
    expect(model.requests).toHaveLength(2)
  })

  test('in the middle of a call: the page runs the second, not the first', async () => {
    const stands = gate()
    const model = scriptedModel(async function* (_request, n, signal) {
      if (n === 2) return yield text('Nice.')
      const callId = `c${n}`
      yield { type: 'input', callId, name: 'paint', text: '{"color":' }
      if (n === 0) {
        await stands.pass(signal)
        return yield new RuntimeError('stream_cut')
      }
      yield { type: 'input', callId, name: 'paint', text: '"teal"}' }
      yield { type: 'call', callId, name: 'paint', input: '{"color":"teal"}' }
    })
    const server = await serve({ model, builtIns: false, ...quickly })
    const ran: unknown[] = []
    const handler = (args: unknown) => {
      ran.push(args)
      return 'done'
    }
    const page = openPage(server.url, { actions: [{ name: 'paint', handler }] })
    const saying = page.say('go')
    await stands.reached
    stands.open()
    succeeded(await saying)
    expect(ran.at(-1)).toEqual({ color: 'teal' })
    expect(page.shown().at(-1)).toBe('assistant: Nice.')
    expect(model.requests).toHaveLength(3)
  })
})

describe('a request that is wrong', () => {
  const hi = [textInput('hi', 'u1')]
  test.for([
    ['no JSON', '{nope'],
    ['a document that does not parse', { query: 'mutation {' }],
    ['a field that is not there', { query: '{ nope }' }],
    ['no document', { variables: {} }],
    ['a value that no enum has', dataOf(hi, { metadata: { requestType: 'Nope' } })],
    ['a field that no input has', dataOf(hi, { bogus: 1 })],
    ['a field that is missing', { ...dataOf(hi), frontend: undefined }],
    ['a date that is none', dataOf([{ ...textInput('hi', 'u1'), createdAt: 'soon' }])],
    ['messages that are no list of messages', dataOf(['hi' as never])],
    ['a batch', [{ query: '{ hello }' }, { query: '{ hello }' }]],
  ] as const)('for %s is 400, and begins nothing', async ([, given]) => {
    const server = await story([])
    const body =
      typeof given === 'object' && 'messages' in given
        ? { query: document, variables: { data: given } }
        : given
    const { status, json } = await post(server.url, body)
    expect(status).toBe(400)
    expect(json.errors ?? json.error).toBeTruthy()
    expect((await server.request('GET', '/chats/t')).status).toBe(404)
  })

  test.for([
    ['an empty thread id', dataOf(hi, { threadId: '' })],
    ['a thread id with a control character', dataOf(hi, { threadId: 'a\nb' })],
    ['a thread id that is endless', dataOf(hi, { threadId: 'x'.repeat(10_000) })],
  ] as const)('for %s is an error that React can show', async ([, data]) => {
    const server = await story([[text('Hi.')]])
    const { status, json } = await generate(server.url, data)
    expect(status).toBe(200)
    expect(json.errors).toMatchObject([{ extensions: { code: 'MISUSE' } }])
  })

  test('is something to say for the real client, and it can go on', async () => {
    const server = await story([[text('Hi.')]])
    const page = openPage(server.url)
    const bad = await page.say('hi', 'u1', { metadata: { requestType: 'Nope' as never } })
    // A 400 it takes for a wrong address; told in a 200 it would read why.
    expect(bad.error!.message).toMatch(/CopilotRequestType|API endpoint/)
    succeeded(await page.complete())
    expect(page.shown().at(-1)).toBe('assistant: Hi.')
  })
})
