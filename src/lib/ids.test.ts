import { expect, test } from 'vitest'
import { newId } from './ids.ts'

test('ids sort by time, are safe in addresses and file names, and never meet', () => {
  const ids = Array.from({ length: 2_000 }, (_, n) => newId('run', 1_700_000_000_000 + n))
  expect([...ids].sort()).toEqual(ids)
  for (const id of ids) expect(id).toMatch(/^run_[0-9a-z]{30}$/)
  const now = Array.from({ length: 2_000 }, () => newId('run', 1))
  expect(new Set(now).size).toBe(now.length)
})
