import { expect, test } from 'vitest'
import { turnstile } from './turnstile.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('lets one in at once, and those who come with it in the next turns, in their order', async () => {
  const enter = turnstile()
  const inside: number[] = []
  const all = Array.from({ length: 40 }, (_, n) => enter().then(() => inside.push(n)))
  await Promise.resolve()
  expect(inside).toEqual([0])
  await turn()
  expect(inside).toEqual([0, 1, 2, 3])
  let turns = 0
  for (; inside.length < 40; turns++) await turn()
  expect(turns).toBeGreaterThan(15)
  await Promise.all(all)
  expect(inside).toEqual(all.map((_, n) => n))
})

test('nobody waits where nobody came before', async () => {
  const enter = turnstile()
  for (let n = 0; n < 3; n++) {
    let inside = false
    void enter().then(() => {
      inside = true
    })
    await Promise.resolve()
    expect(inside).toBe(true)
    await turn()
    await turn()
  }
})
