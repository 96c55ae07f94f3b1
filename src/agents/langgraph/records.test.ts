import { expect, test } from 'vitest'
import { type CheckpointRec, differing, Records } from './records.ts'

const rec = (n: number, values: CheckpointRec['values'], parentId?: string): CheckpointRec => ({
  ...{ type: 'checkpoint', ns: '', checkpoint: '{}', metadata: '{}', values },
  versions: { list: n, other: 1 },
  ...(parentId !== undefined && { parentId }),
})

test('a list that grows costs what was added, and every version of it can be read', () => {
  const records = new Records()
  const texts = Array.from({ length: 50 }, (_, n) => {
    return JSON.stringify(Array.from({ length: n + 1 }, (_, i) => `${i} ${'😀'.repeat(40)}`))
  })
  let written = 0
  for (const [n, text] of texts.entries()) {
    const value = differing(text, texts[n - 1])
    written += JSON.stringify(value).length
    records.add(`c${n}`, rec(n, { list: value }, n > 0 ? `c${n - 1}` : undefined))
  }
  for (const [n, text] of texts.entries())
    expect(records.value('', `c${n}`, 'list')).toEqual({ text })
  expect(written).toBeLessThan(texts.at(-1)!.length * 2)
  expect(differing(`${'😀'.repeat(200)}😀`, `${'😀'.repeat(200)}😁`)).toEqual({
    keep: 400,
    add: '😀',
  })
})

test('a value stands until its version is another, and is gone where it was taken away', () => {
  const records = new Records()
  records.add('a', rec(1, { list: { text: '1' } }))
  records.add('b', rec(1, {}, 'a'))
  records.add('c', rec(2, {}, 'b'))
  records.add('d', rec(3, { list: null }, 'c'))
  expect(records.value('', 'b', 'list')).toEqual({ text: '1' })
  expect(records.value('', 'c', 'list')).toBeUndefined()
  expect(records.value('', 'd', 'list')).toBeUndefined()
})
