import { expect, test } from 'vitest'
import { asDecided, editOf, editOfCall, editsIn } from './edited.ts'
import { type Answer, type Ask, type Draft, draft, type Known } from './entries.ts'
import { fold } from './fold.ts'
import { marksOf } from './marks.ts'

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

const ann = { to: 'ann' }
const bob = { to: 'bob' }

/** A call to ann that was approved with bob, asked about again, and then answered like this. */
function askedAgain(answer?: Partial<Answer>) {
  const about = { title: 'Send', step: 'l', key: 'call:c', tool: 'send', callId: 'c', deadline: 9 }
  const first = raised({ ...about, input: ann, digest: 'd1', atTimeout: 'reject' })
  const second = { ...first, askId: 'ask_2', input: bob, digest: 'd2', replaces: 'ask_1' }
  const drafts: Draft[] = [
    draft('ask.raised', { ask: first }),
    draft('ask.answered', { askId: 'ask_1', state: 'approved', input: bob, digest: 'd2' }),
    draft('ask.raised', { ask: second }),
    ...(answer
      ? [draft('ask.answered', { askId: 'ask_2', state: 'approved', digest: 'd2', ...answer })]
      : []),
  ]
  const envelope = { v: 1, threadId: 't', tx: 'x', at: 1, fence: 0, digest: '', runId: 'r' }
  const actor = { type: 'user', id: 'u' }
  const entries = drafts.map(
    (one, i) => ({ ...envelope, actor, id: `e${i}`, seq: i + 1, ...one }) as Known,
  )
  const state = fold('t', entries)
  const row = marksOf(entries.at(-1)!, fold('t', entries.slice(0, -1))).ask
  return { state, row }
}

test.each<[string, Partial<Answer> | undefined]>([
  ['is pending', undefined],
  ['was rejected', { state: 'rejected' }],
  ['was cancelled', { state: 'cancelled' }],
  ['timed out', { state: 'timeout' }],
])('a call is not shown with the edit of an approval whose replacement %s', (_, answer) => {
  expect(editsIn(askedAgain(answer).state).get('c')).toBeUndefined()
})

test('a replacing approval that is approved as it is has the edit of the one before', () => {
  const { state, row } = askedAgain({})
  const edit = { input: bob, original: ann }
  expect(editOf(state.asks.get('ask_2'))).toMatchObject(edit)
  expect(editOfCall(state, 'ask_2')).toMatchObject(edit)
  expect(editsIn(state).get('c')).toMatchObject(edit)
  expect(row).toMatchObject({ askId: 'ask_2', edited: true })
  expect(asDecided(state.asks.get('ask_2')!)).toMatchObject({ askId: 'ask_2', input: bob })
})

test('a replacing approval that is edited back to the arguments of the model has no edit', () => {
  const { state, row } = askedAgain({ input: ann, digest: 'd1' })
  expect(editOf(state.asks.get('ask_2'))).toBeUndefined()
  expect(editsIn(state).size).toBe(0)
  expect(row).not.toHaveProperty('edited')
  expect(asDecided(state.asks.get('ask_2')!).input).toEqual(ann)
})

test('a question in doubt about an edited call keeps its edit', () => {
  const { state } = askedAgain({})
  const doubt = { ...raised({}), askId: 'ask_3', kind: 'in_doubt' as const, callId: 'c' }
  state.asks.set('ask_3', { ...state.asks.get('ask_2')!, ask: doubt, answer: null })
  expect(editsIn(state).get('c')).toMatchObject({ input: bob })
})
