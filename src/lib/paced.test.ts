import { expect, test } from 'vitest'
import { paced } from './paced.ts'

test('asks once for all who ask together or soon after, then anew, also after a failure', async () => {
  let now = 0
  let asked = 0
  const ask = paced(
    async () => {
      if (++asked === 2) throw new Error('no')
      return asked
    },
    1_000,
    { monotonic: () => now },
  )
  expect(await Promise.all([ask(), ask()])).toEqual([1, 1])
  now = 999
  expect(await ask()).toBe(1)
  now = 1_000
  await expect(ask()).rejects.toThrow('no')
  await expect(ask()).rejects.toThrow('no')
  now = 2_000
  expect(await ask()).toBe(3)
})
