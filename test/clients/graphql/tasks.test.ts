import { describe, expect, test } from 'vitest'
import { RuntimeError } from '../../../src/core/errors.ts'
import { call, scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { serve } from '../../support/serve.ts'
import { look, send, story } from '../../support/story.ts'
import { said } from '../../support/tools.ts'
import { actionInput, dataOf, openPage, succeeded, userMessage } from './support.ts'

const extract = {
  ...{ name: 'extract', description: 'extract a value' },
  parameters: { type: 'object', properties: { value: { type: 'string' } } },
}

/** As React's `extract()` and suggestions send it: no thread, and little else. */
const bare = (action: typeof extract, forwardedParameters: object, requestType = 'Task') =>
  ({
    frontend: { actions: [actionInput(action)], url: 'http://localhost:3000/' },
    metadata: { requestType },
    forwardedParameters,
    ...{ runId: undefined, extensions: undefined, metaEvents: undefined, agentStates: undefined },
    context: undefined,
  }) as never

const onlyExtract = { toolChoice: 'function', toolChoiceFunctionName: 'extract' }

describe('a request without a thread', () => {
  test.for(['Task', 'Suggestion', 'TextareaCompletion', 'TextareaPopover'])(
    'of type %s is one call of the model, read as it comes, and leaves no trace',
    async (requestType) => {
      const stands = gate()
      const server = await story(async function* (_request, _n, signal) {
        yield { type: 'input', callId: '1', name: 'extract', text: '{"value":"for' }
        await stands.pass(signal)
        yield { type: 'input', callId: '1', name: 'extract', text: 'ced"}' }
        yield call('1', 'extract', { value: 'forced' })
      })
      const page = openPage(server.url, { threadId: null, system: 'Extract the value.' })
      page.add(userMessage('the value is forced'))
      const watching = page.begin(bare(extract, onlyExtract, requestType))
      await watching.sees('call extract({"value":"for"})')
      stands.open()
      const heard = await watching.done
      succeeded(heard)
      expect(page.shown().at(-1)).toBe('call extract({"value":"forced"})')
      expect(heard.last.threadId).toEqual(expect.any(String))
      const [request, ...more] = server.model.requests
      expect(more).toEqual([])
      expect(request!.parameters?.toolChoice).toEqual({ name: 'extract' })
      expect(request!.tools.map(({ name }) => name)).toEqual(['extract'])
      expect(request!.system.join()).toContain('Extract the value.')
      expect(said(request)).toEqual(['user: the value is forced'])
      const { threads } = (await (await server.request('GET', '/copilotkit/threads')).json()) as {
        threads: unknown[]
      }
      expect(threads).toEqual([])
      const chats = await (await server.request('GET', '/chats')).json()
      expect(JSON.stringify(chats)).not.toContain(heard.last.threadId)
    },
  )

  test('of a task has no user message, only instructions, and must call something', async () => {
    const server = await story([[call('1', 'extract', { value: 'x' })]])
    const page = openPage(server.url, { threadId: null, system: 'Do the task.' })
    succeeded(await page.complete(bare(extract, { toolChoice: 'required' })))
    expect(page.shown()).toEqual(['call extract({"value":"x"})'])
    expect(server.model.requests[0]!.parameters?.toolChoice).toBe('required')
    expect(server.model.requests[0]!.system.join()).toContain('Do the task.')
  })

  test('runs no tool of the server, whatever the model says', async () => {
    const server = await story([[send('1'), look('2', 'sea')]])
    const page = openPage(server.url, { threadId: null })
    page.add(userMessage('pay'))
    const heard = await page.begin(bare(extract, onlyExtract)).done
    expect(heard.error).toBeUndefined()
    expect([server.sent, server.looked]).toEqual([[], []])
    expect(server.model.requests).toHaveLength(1)
  })

  test('that fails says so', async () => {
    const model = scriptedModel([[new RuntimeError('model_request')]])
    const server = await serve({ model, builtIns: false, retry: { attempts: 1 } })
    const page = openPage(server.url, { threadId: null })
    page.add(userMessage('x'))
    const heard = await page.begin(bare(extract, onlyExtract)).done
    if (heard.error)
      expect(heard.error).toMatchObject({ graphQLErrors: [{ message: expect.any(String) }] })
    else expect(heard.status).toMatchObject({ code: 'Failed', reason: 'UNKNOWN_ERROR' })
  })

  test('that its page leaves is stopped', async () => {
    const stands = gate()
    let stopped = false
    const model = scriptedModel(async function* (_request, _n, signal) {
      signal.addEventListener('abort', () => {
        stopped = true
      })
      yield text('so ')
      await stands.pass(signal)
    })
    const env = { HANDRAIL_GRAPHQL_GRACE_MS: '10' }
    const server = await serve({ model, builtIns: false }, { env })
    const page = openPage(server.url, { threadId: null })
    page.add(userMessage('x'))
    const watching = page.begin(bare(extract, onlyExtract))
    await watching.sees('so')
    watching.stop()
    await watching.done
    while (!stopped) await new Promise((resolve) => setImmediate(resolve))
  })
})

test('a request of a thread with a choice of tool goes to its thread', async () => {
  const server = await story([[text('Hi.')]])
  const page = openPage(server.url, { actions: [{ name: 'paint' }] })
  const forwardedParameters = { toolChoice: 'function', toolChoiceFunctionName: 'paint' }
  succeeded(await page.say('hi', undefined, { forwardedParameters }))
  expect(server.model.requests[0]!.parameters?.toolChoice).toEqual({ name: 'paint' })
  expect((await server.journal('t')).length).toBeGreaterThan(0)
  expect(dataOf([]).threadId).toBe('t')
})
