import { FakeListChatModel } from '@langchain/core/utils/testing'
import { expect, test } from 'vitest'
import { triesOnce } from './langchain.ts'

test('a chat model tries once, also one that has functions among its fields', () => {
  const model = Object.assign(new FakeListChatModel({ responses: ['x'] }), { onEach: () => {} })
  triesOnce(model)
  expect((model.caller as unknown as { maxRetries: number }).maxRetries).toBe(0)
})
