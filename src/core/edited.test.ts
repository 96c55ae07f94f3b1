import { expect, test } from 'vitest'
import { asDecided, editOf } from './edited.ts'
import type { Ask } from './entries.ts'

const raised = (ask: Partial<Ask>) => ({ askId: 'ask_1', kind: 'approval', ...ask }) as Ask
const approved = (input: unknown) => ({ askId: 'ask_1', state: 'approved', input }) as const

const first = { a: 'x', b: 1 }
const second = { a: 'z', b: 2 }
const proposal = { recommendation: first, recommendations: [first, second] }

test('a partial edit is completed with the fields that it leaves out', () => {
  const ask = raised({ input: proposal, partialEdit: true })
  const answer = approved({ recommendation: { a: 'y' } })
  const changed = { a: 'y', b: 1 }
  const input = { recommendation: changed, recommendations: [changed, second] }
  expect(editOf({ ask, answer })).toEqual({ input, original: proposal })
  expect(asDecided({ ask, answer }).input).toEqual(input)
})

test('a partial edit that changes no field is not an edit', () => {
  const ask = raised({ input: proposal, partialEdit: true })
  for (const recommendation of [first, { b: 1 }, {}])
    expect(editOf({ ask, answer: approved({ recommendation }) })).toBeUndefined()
})

test.each([
  ['a text', 'draft', 'better'],
  ['a list', [1, 2], [3]],
  ['a text in the place of an object', first, 'better'],
])('an edit of %s replaces the whole recommendation', (_, recommendation, better) => {
  const ask = raised({ input: { recommendation }, partialEdit: true })
  const edit = editOf({ ask, answer: approved({ recommendation: better }) })
  expect(edit?.input).toEqual({ recommendation: better })
})

test('an edit of an ask that takes whole inputs is not merged with the input', () => {
  const ask = raised({ input: proposal })
  const input = { recommendation: { a: 'y' } }
  expect(editOf({ ask, answer: approved(input) })?.input).toEqual(input)
})
