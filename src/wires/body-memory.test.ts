import { expect, test } from 'vitest'
import { BodyMemory } from './body-memory.ts'

const mebibyte = 1024 * 1024
const overloaded = expect.objectContaining({ code: 'overloaded', retryAfter: 1 })

test('unfinished bodies of one caller beyond 64 MiB are refused, those of another caller are not', () => {
  const memory = new BodyMemory(4 * mebibyte)
  const bodies = Array.from({ length: 16 }, () => memory.body('eve'))
  for (const body of bodies) body.grow(4 * mebibyte)
  expect(() => memory.body('eve').grow(1)).toThrow(overloaded)
  memory.body('ann').grow(4 * mebibyte)
  bodies[0]!.free()
  memory.body('eve').grow(4 * mebibyte)
})

test('unfinished bodies of all callers beyond 256 MiB are refused', () => {
  const memory = new BodyMemory(4 * mebibyte)
  for (const caller of ['a', 'b', 'c', 'd']) memory.body(caller).grow(64 * mebibyte)
  expect(() => memory.body('e').grow(1)).toThrow(overloaded)
})

test('a body of the largest size is accepted beside another one, however large that is', () => {
  const memory = new BodyMemory(100 * mebibyte)
  memory.body('ann').grow(100 * mebibyte)
  memory.body('ann').grow(100 * mebibyte)
  expect(() => memory.body('ann').grow(1)).toThrow(overloaded)
})

test('bytes that were freed are not counted, also if they are freed twice', () => {
  const memory = new BodyMemory(4 * mebibyte)
  const body = memory.body('ann')
  body.grow(3)
  body.grow(4)
  expect(memory.bytes).toBe(7)
  body.free()
  body.free()
  expect(memory.bytes).toBe(0)
})
