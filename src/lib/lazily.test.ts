import { expect, test } from 'vitest'
import { lazily } from './lazily.ts'

test('a load is shared, and one that failed is tried again', async () => {
  let loads = 0
  const load = lazily(async () => {
    if (++loads === 1) throw new Error('not there')
    return loads
  })
  const both = [load(), load()]
  for (const one of both) await expect(one).rejects.toThrow('not there')
  expect(await Promise.all([load(), load()])).toEqual([2, 2])
  expect(loads).toBe(2)
})
