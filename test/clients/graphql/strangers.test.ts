import { expect, test } from 'vitest'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { serve } from '../../support/serve.ts'
import { send } from '../../support/story.ts'
import { tools } from '../../support/tools.ts'
import { metaEvent, openPage, succeeded } from './support.ts'

const keys = { ann: 'key-of-ann-0123456789', bob: 'key-of-bob-0123456789' }
const as = (name: keyof typeof keys) => ({
  headers: { authorization: `Bearer ${keys[name]}` },
})

async function guarded() {
  const box = tools()
  const model = scriptedModel([[text('I pay.'), send('1')], [text('Hello Bob.')], [text('Paid.')]])
  const env = { HANDRAIL_API_KEYS: `${keys.ann}=ann,${keys.bob}=bob` }
  const server = await serve({ model, tools: box.all, builtIns: false }, { env })
  return { server, box, model }
}

test("another user's thread is to everyone else a thread that never was (I10)", async () => {
  const { server, box } = await guarded()
  const ann = openPage(server.url, as('ann'))
  succeeded(await ann.say('pay ann'))
  const { text: value } = ann.interrupt!

  const bob = openPage(server.url, as('bob'))
  const never = openPage(server.url, { ...as('bob'), threadId: 'never' })
  expect(await bob.load()).toEqual(await never.load())
  expect(bob.shown()).toEqual([])
  // Nothing new on it is nothing at all, and a question of hers is none of his.
  const looked = await bob.complete()
  succeeded(looked)
  expect(looked.last).toMatchObject({ messages: [], metaEvents: [] })
  const { error } = await bob.complete({ metaEvents: [metaEvent(value, 'yes')] })
  expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
  expect(error!.message).toBe(
    (await never.complete({ metaEvents: [metaEvent(value, 'yes')] })).error!.message,
  )
  expect(box.sent).toEqual([])

  // The same id is a thread of his own.
  succeeded(await bob.say('hello'))
  expect(bob.shown()).toEqual(['user: hello', 'assistant: Hello Bob.'])
  succeeded(await ann.resolve('yes'))
  expect(ann.shown().at(-1)).toBe('assistant: Paid.')
  expect(box.sent).toHaveLength(1)
})

test('without a key nobody is answered, and the client can say why', async () => {
  const { server, model } = await guarded()
  const page = openPage(server.url)
  const { error } = await page.say('hello')
  expect(error).toBeDefined()
  expect(JSON.stringify(error) + error!.message).toMatch(/AUTHENTICATION|401|API key|Say who/i)
  expect((await page.load()).error).toBeDefined()
  expect(model.requests).toEqual([])
})
