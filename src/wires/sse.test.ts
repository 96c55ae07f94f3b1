import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Heartbeats, sse } from './sse.ts'

test('a keep-alive comment never stands within a frame that is sent in several batches', async () => {
  const response = sse(async function* () {
    yield 'data: first '
    await sleep(60)
    yield 'and second\n\n'
    await sleep(60)
    yield 'data: last\n\n'
  }, new Heartbeats(5))
  const text = await response.text()
  expect(text).toContain('data: first and second\n\n')
  expect(text).toContain(': keep-alive\n\n')
})

test('other work runs while a fast reader takes a long stream', async () => {
  let turns = 0
  const count = () => {
    turns++
    immediate = setImmediate(count)
  }
  let immediate = setImmediate(count)
  const batch = `data: ${'x'.repeat(16_000)}\n\n`
  const response = sse(async function* () {
    for (let i = 0; i < 200; i++) yield batch
  }, new Heartbeats())
  turns = 0
  expect((await response.text()).length).toBe(200 * batch.length)
  clearImmediate(immediate)
  expect(turns).toBeGreaterThan(5)
})
