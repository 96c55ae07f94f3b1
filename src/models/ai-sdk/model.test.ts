import { expect, test } from 'vitest'
import { userText } from '../../core/messages.ts'
import { aiSdkModel } from './model.ts'

test('a model whose SDK could not be loaded once is loaded again with the next call', async () => {
  let loads = 0
  const model = aiSdkModel({
    ...{ name: 'p/m', provider: 'p', account: 'a', accepts: [], window: 1_000 },
    async load() {
      if (++loads === 1) throw new Error('too many open files')
      throw new Error('loaded') // far enough: what it does then is another test's
    },
  })
  const call = async () => {
    const request = { system: [], messages: [userText('1', 'hi')], tools: [] }
    for await (const _ of model.stream(request, new AbortController().signal));
  }
  await expect(call()).rejects.toThrow()
  await expect(call()).rejects.toMatchObject({ cause: { message: 'loaded' } })
  expect(loads).toBe(2)
})
