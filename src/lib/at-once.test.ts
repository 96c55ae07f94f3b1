import { expect, test } from 'vitest'
import { atOnce } from './at-once.ts'

test('gives what is said at once', () => {
  for (const said of [true, 'yes', 0, null, undefined, { a: 1 }])
    expect(atOnce(() => said)).toBe(said)
})

test('nothing is said by what throws', () => {
  const thrower = () => {
    throw new Error('no')
  }
  const odd = Object.defineProperty({}, 'then', { get: thrower })
  expect(atOnce(thrower)).toBeUndefined()
  expect(atOnce(() => odd)).toBeUndefined()
})

test('nothing is said by a promise, and one that is broken harms nobody', async () => {
  const unheard: unknown[] = []
  const hear = (error: unknown) => void unheard.push(error)
  process.on('unhandledRejection', hear)
  expect(atOnce(async () => 'later')).toBeUndefined()
  expect(atOnce(() => Promise.reject(new Error('broken')))).toBeUndefined()
  await new Promise((resolve) => setTimeout(resolve, 20))
  process.off('unhandledRejection', hear)
  expect(unheard).toEqual([])
})
