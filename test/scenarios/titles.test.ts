import { expect, onTestFinished, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { chatsClient } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'

const model = () => scriptedModel(() => [text('Hello.')])

test('the list, the chat and the threads of AG-UI show the same title for a thread that starts with several user messages', async () => {
  const { url } = await serve({ model: model(), builtIns: false })
  const messages = ['First', 'Second'].map((content, n) => ({
    ...{ id: `m${n}`, role: 'user', content },
  }))
  await agui(url, { messages })
  const get = async (path: string) => (await fetch(url + path)).json()
  const [row] = (await get('/chats')).chats
  const [thread] = (await get('/copilotkit/threads')).threads
  const { title } = await get('/chats/c')
  expect({ row: row.title, thread: thread.name, title }).toEqual({
    ...{ row: 'First', thread: 'First', title: 'First' },
  })
})

test('after keys were switched off, a POST to the key of a user’s thread does not write to that thread', async () => {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory.remove())
  const at = { data: directory.path }
  const env = { HANDRAIL_API_KEYS: 'ann-has-a-long-key=ann' }
  const first = await serve({ model: model(), builtIns: false }, { ...at, env })
  const ann = chatsClient(first.url, { authorization: 'Bearer ann-has-a-long-key' })
  await (await ann.start('c', 'Mine')).rest()
  const { rows } = await first.server.store.threads({ tenant: 'default', owner: 'ann', limit: 9 })
  const threadId = rows[0]!.threadId
  expect(threadId).not.toBe('c')
  await first.close()

  const second = await serve({ model: model(), builtIns: false }, at)
  const before = await second.server.store.read(threadId)
  expect((await second.request('GET', `/chats/${threadId}`)).status).toBe(404)
  await (await second.start(threadId, 'Hello')).rest()
  await agui(second.url, { threadId, messages: [{ id: 'm', role: 'user', content: 'Again' }] })
  expect(await second.server.store.read(threadId)).toEqual(before)
  const { interactions } = await second.chat(threadId)
  expect(interactions.map((one: { user_message: string }) => one.user_message)).toEqual([
    'Hello',
    'Again',
  ])
})
