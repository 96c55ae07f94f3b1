import { expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { send } from '../support/story.ts'
import { tools } from '../support/tools.ts'
import { ending, finished, httpClient, interruptsOf } from './support.ts'

const keys = { ann: 'key-of-ann-0123456789', bob: 'key-of-bob-0123456789' }
const as = (name: keyof typeof keys) => ({ authorization: `Bearer ${keys[name]}` })

test("another user's thread is to everyone else a thread that never was (I10)", async () => {
  const box = tools()
  const model = scriptedModel([[text('I pay.'), send('1')], [text('Hello Bob.')], [text('Paid.')]])
  const env = { HANDRAIL_API_KEYS: `${keys.ann}=ann,${keys.bob}=bob` }
  const server = await serve({ model, tools: box.all, builtIns: false }, { env })
  const ann = httpClient(server.url, 't', { headers: as('ann') })
  const [interrupt] = interruptsOf(await ann.say('pay ann'))
  const get = async (path: string, method = 'GET', body?: object) => {
    const response = await fetch(`${server.url}/copilotkit${path}`, {
      method,
      headers: { ...as('bob'), 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.text() }
  }

  const bob = httpClient(server.url, 't', { headers: as('bob') })
  await bob.connect()
  expect(bob.streams.at(-1)!.events).toEqual([])
  const resume = [
    { interruptId: interrupt!.id, status: 'resolved' as const, payload: { approved: true } },
  ]
  expect(ending(await bob.run({ resume }))).toMatchObject({
    type: 'RUN_ERROR',
    code: 'interrupt_unknown',
  })
  for (const path of ['messages', 'events']) {
    expect(await get(`/threads/t/${path}`)).toEqual(await get(`/threads/never-was/${path}`))
  }
  expect(await get('/threads')).toMatchObject({ body: '{"threads":[],"nextCursor":null}' })
  const stopped = await get('/agent/default/stop/t', 'POST', {})
  expect(stopped.body).toContain('"stopped":false')
  for (const [method, body] of [
    ['PATCH', { name: 'mine' }],
    ['DELETE', {}],
  ] as const) {
    const there = await get('/threads/t', method, body)
    expect(there).toEqual(await get('/threads/never-was', method, body))
    expect(there.status).toBe(404)
  }

  // The same id is a thread of his own.
  finished(await bob.say('hello'))
  expect(bob.shown()).toEqual(['user: hello', 'assistant: Hello Bob.'])
  finished(await ann.run({ resume }))
  expect(ann.shown().at(-1)).toBe('assistant: Paid.')
  expect(box.sent).toHaveLength(1)
})
