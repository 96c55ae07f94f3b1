import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { serve } from '../../support/serve.ts'
import { look } from '../../support/story.ts'
import { said, tools } from '../../support/tools.ts'
import {
  accept,
  dataOf,
  openPage,
  succeeded,
  textInput,
  typedDocument,
  until,
  userMessage,
} from './support.ts'

/** Long enough for a test to be in it; short enough to wait for its end. */
const grace = 200

/** A run that stands in the middle of its text. */
async function running(env: Record<string, string> = {}) {
  const stands = gate()
  const aborted: unknown[] = []
  const model = scriptedModel(async function* (_request, n, signal) {
    signal.addEventListener('abort', () => aborted.push(signal.reason))
    yield text(`Answer ${n}`)
    if (n === 0) await stands.pass(signal)
    yield text('!')
  })
  const more = { HANDRAIL_GRAPHQL_GRACE_MS: String(grace), ...env }
  const server = await serve({ model, builtIns: false }, { env: more })
  // Queries are answered by an executor that is loaded when the first one comes.
  await openPage(server.url, { threadId: 'warm' }).load()
  const page = openPage(server.url)
  page.add(userMessage('go'))
  const watching = page.begin()
  await watching.sees('Answer 0')
  const ended = async () => (await server.journal('t')).findLast(({ kind }) => isEnd(kind))?.kind
  return { server, model, stands, page, watching, ended, aborted }
}

const isEnd = (kind: string) => /^run\.(completed|failed|cancelled)$/.test(kind)
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('stop', () => {
  test('cancels after the grace: the model is told, and what was said stays', async () => {
    const { server, watching, ended, model, page } = await running()
    const since = Date.now()
    watching.stop()
    await watching.done
    await server.recorded('t', 'run.cancelled')
    expect(Date.now() - since).toBeGreaterThanOrEqual(grace - 20)
    expect(await ended()).toBe('run.cancelled')
    succeeded(await page.say('go on'))
    expect(page.shown().at(-1)).toBe('assistant: Answer 1!')
    expect(said(model.requests[1])).toEqual([...['user: go', 'assistant: Answer 0', 'user: go on']])
  })

  test.for(['its own', 'another'] as const)(
    'before the first byte counts too, with %s document',
    async (which) => {
      const checking = gate()
      const hook = createServer((_request, response) => {
        void checking.pass().then(() => response.end('{"status":"allowed"}'))
      })
      await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void hook.close())
      const { port } = hook.address() as AddressInfo
      const guardrails = { remote: { url: `http://127.0.0.1:${port}` } }
      const model = scriptedModel(async function* (_request, _n, signal) {
        yield text('Answer')
        await gate().pass(signal)
      })
      const env = { HANDRAIL_GRAPHQL_GRACE_MS: String(grace) }
      const server = await serve({ model, builtIns: false, guardrails }, { env })
      const left = new AbortController()
      const variables = { data: dataOf([textInput('go', 'u1')]), properties: {} }
      const query = which === 'its own' ? typedDocument : typedDocument.replaceAll('__typename', '')
      const asking = fetch(`${server.url}/copilotkit`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept },
        body: JSON.stringify({ query, variables }),
        signal: left.signal,
      })
      await checking.reached
      left.abort()
      await expect(asking).rejects.toThrow()
      checking.open()
      await server.recorded('t', 'run.cancelled')
    },
  )

  test('at once with a setting', async () => {
    const { server, watching, ended } = await running({
      ...{ HANDRAIL_GRAPHQL_STOP: 'cancel', HANDRAIL_GRAPHQL_GRACE_MS: '60000' },
    })
    watching.stop()
    await server.recorded('t', 'run.cancelled')
    expect(await ended()).toBe('run.cancelled')
  })

  test('never with another: the run goes on without the page', async () => {
    const { server, watching, stands, ended, aborted } = await running({
      ...{ HANDRAIL_GRAPHQL_STOP: 'continue', HANDRAIL_GRAPHQL_GRACE_MS: '10' },
    })
    watching.stop()
    await watching.done
    await pass(60)
    expect(aborted).toEqual([])
    stands.open()
    await server.recorded('t', 'run.completed')
    expect(await ended()).toBe('run.completed')
    const page = openPage(server.url)
    await page.load()
    expect(page.shown()).toEqual(['user: go', 'assistant: Answer 0!'])
  })

  test('before anything is said', async () => {
    const stands = gate()
    const model = scriptedModel(async function* (_request, n, signal) {
      if (n === 0) await stands.pass(signal)
      yield text('Hi.')
    })
    const env = { HANDRAIL_GRAPHQL_GRACE_MS: String(grace) }
    const server = await serve({ model, builtIns: false }, { env })
    const page = openPage(server.url)
    page.add(userMessage('go'))
    const watching = page.begin()
    await stands.reached
    await until(() => watching.seen.length > 0)
    watching.stop()
    await server.recorded('t', 'run.cancelled')
    succeeded(await page.say('again'))
    expect(page.shown().at(-1)).toBe('assistant: Hi.')
  })

  test('between the steps of a run: no model call comes after it (I7)', async () => {
    const inside = gate()
    const { look: quick } = tools()
    const slow = { ...quick, run: () => inside.pass() }
    const model = scriptedModel([[look('1', 'sea')], [text('No.')]])
    const env = { HANDRAIL_GRAPHQL_GRACE_MS: '10' }
    const server = await serve({ model, tools: [slow], builtIns: false }, { env })
    const page = openPage(server.url)
    page.add(userMessage('the sea?'))
    const watching = page.begin()
    await inside.reached
    watching.stop()
    await server.recorded('t', 'run.cancelling')
    inside.open()
    await server.recorded('t', 'run.cancelled')
    expect(model.requests).toHaveLength(1)
  })

  test('is not what a client does that has read the last payload', async () => {
    const model = scriptedModel((_request, n) => [text(`Answer ${n}.`)])
    const env = { HANDRAIL_GRAPHQL_STOP: 'cancel' }
    const server = await serve({ model, builtIns: false }, { env })
    const page = openPage(server.url)
    for (const words of ['a', 'b', 'c', 'd']) succeeded(await page.say(words))
    const kinds = (await server.journal('t')).map(({ kind }) => kind)
    expect(kinds.filter(isEnd)).toEqual(Array(4).fill('run.completed'))
  })

  test('of a page that only joined stops it for all, and the others are told', async () => {
    const { server, watching } = await running()
    const joined = openPage(server.url)
    await joined.load()
    const joining = joined.begin()
    await joining.sees('Answer 0')
    joining.stop()
    await joining.done
    await server.recorded('t', 'run.cancelled')
    const { status, messages, error } = await watching.done
    expect(error).toBeUndefined()
    expect(status).toMatchObject({ code: 'Failed', reason: 'MESSAGE_STREAM_INTERRUPTED' })
    expect(messages.map((one) => one.status.code)).toEqual(['Failed'])
  })

  test('of somebody else in the middle of arguments: no page runs what was not finished', async () => {
    const stands = gate()
    const model = scriptedModel(async function* (_request, _n, signal) {
      yield { type: 'input', callId: '1', name: 'pay', text: '{"amount":10' }
      await stands.pass(signal)
      yield { type: 'call', callId: '1', name: 'pay', input: '{"amount":1000}' }
    })
    const server = await serve({ model, builtIns: false })
    const page = openPage(server.url, { actions: [{ name: 'pay' }] })
    page.add(userMessage('pay'))
    const watching = page.begin()
    await watching.sees('call pay({"amount":10})')
    const response = await fetch(`${server.url}/copilotkit/agent/default/stop/t`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
    })
    expect(await response.json()).toMatchObject({ stopped: true })
    const { status } = await watching.done
    expect(status).toMatchObject({ code: 'Failed', reason: 'MESSAGE_STREAM_INTERRUPTED' })
    // React looks for calls to run in what it has now, failed ones too.
    expect(page.shown()).not.toContain('call pay({"amount":10})')
  })
})

describe('a reload', () => {
  test('inside of the grace keeps the run, and the page joins it', async () => {
    const { server, watching, stands, ended } = await running()
    watching.stop()
    await watching.done
    const page = openPage(server.url)
    expect(await page.load()).toMatchObject({ exists: true })
    await pass(grace + 60)
    expect(await ended()).toBeUndefined()
    const joining = page.begin()
    await joining.sees('Answer 0')
    stands.open()
    succeeded(await joining.done)
    expect(page.shown()).toEqual(['user: go', 'assistant: Answer 0!'])
    expect(await ended()).toBe('run.completed')
    const other = openPage(server.url)
    await other.load()
    expect(other.shown()).toEqual(page.shown())
  })

  test('by a request with nothing new does so too', async () => {
    const { watching, stands, page, ended } = await running()
    watching.stop()
    await watching.done
    page.messages = page.messages.slice(0, 1)
    const joining = page.begin()
    await joining.sees('Answer 0')
    await pass(grace + 60)
    expect(await ended()).toBeUndefined()
    stands.open()
    succeeded(await joining.done)
    expect(page.shown()).toEqual(['user: go', 'assistant: Answer 0!'])
  })

  test('of another thread keeps nothing', async () => {
    const { server, watching } = await running()
    watching.stop()
    await watching.done
    await openPage(server.url, { threadId: 'other' }).load()
    await server.recorded('t', 'run.cancelled')
  })

  test('and then stop again: cancelled', async () => {
    const { server, watching } = await running()
    watching.stop()
    await watching.done
    const page = openPage(server.url)
    await page.load()
    const joining = page.begin()
    await joining.sees('Answer 0')
    joining.stop()
    await joining.done
    await server.recorded('t', 'run.cancelled')
  })
})

describe('a new message while it runs', () => {
  test('cancels what runs, and is answered next', async () => {
    const { server, model, watching, page } = await running({ HANDRAIL_GRAPHQL_GRACE_MS: '60000' })
    const other = openPage(server.url)
    await other.load()
    const said2 = other.say('something else')
    const first = await watching.done
    // Somebody else's message ended it: the page is told, and nothing of it hangs.
    expect(first.status).toMatchObject({ code: 'Failed', reason: 'MESSAGE_STREAM_INTERRUPTED' })
    expect(first.last.messages[0].status.code).toBe('Failed')
    succeeded(await said2)
    expect(other.shown().at(-1)).toBe('assistant: Answer 1!')
    expect(said(model.requests[1]).at(-1)).toBe('user: something else')
    const kinds = (await server.journal('t')).map(({ kind }) => kind)
    expect(kinds.filter(isEnd)).toEqual(['run.cancelled', 'run.completed'])
    expect(page.errors).toEqual([])
  })

  test('after a stop does not wait for the grace', async () => {
    const { watching, page, ended } = await running({ HANDRAIL_GRAPHQL_GRACE_MS: '60000' })
    watching.stop()
    await watching.done
    succeeded(await page.say('something else'))
    expect(page.shown().at(-1)).toBe('assistant: Answer 1!')
    expect(await ended()).toBe('run.completed')
  })

  test('that is the same message again joins it: one run, one answer', async () => {
    const { server, stands, watching, model } = await running()
    const again = openPage(server.url)
    again.messages = openPage(server.url).messages
    const [first] = (await server.journal('t')).filter(({ kind }) => kind === 'message.added')
    const { id } = (first!.body as { message: { id: string } }).message
    again.add(userMessage('go', id))
    const joining = again.begin()
    await joining.sees('Answer 0')
    stands.open()
    for (const one of [await watching.done, await joining.done]) succeeded(one)
    expect(model.requests).toHaveLength(1)
    expect(again.shown()).toEqual(['user: go', 'assistant: Answer 0!'])
  })
})
