import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isRuntimeError } from '../core/errors.ts'
import type { ModelEvent } from '../core/model.ts'
import { type GuardRule, readRules } from './rules.ts'
import { watchOutput } from './watch.ts'

const text = (text: string): ModelEvent => ({ type: 'text', text })
const lookBack = 40

/** What a reader sees of the pieces, piece by piece, and whether it was cut. */
async function watched(rules: readonly GuardRule[], events: readonly ModelEvent[]) {
  const watch = watchOutput(await readRules(rules, 'output', lookBack), lookBack)
  const shown: ModelEvent[] = []
  try {
    for (const event of events) shown.push(...watch.take(event))
    shown.push(...watch.end())
  } catch (error) {
    if (!isRuntimeError(error, 'guardrail')) throw error
    return { shown: textOf(shown), denied: error.data?.rule }
  }
  return { shown: textOf(shown), events: shown }
}

const textOf = (events: readonly ModelEvent[]) =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')

const deny = (more: Partial<GuardRule>): GuardRule => ({ decision: 'deny', ...more })

test('a word across pieces is found before any of it is shown', async () => {
  const rules = [deny({ words: ['top secret'] })]
  const pieces = ['It is ', 'to', 'p sec', 'ret', ', they say'].map(text)
  expect(await watched(rules, pieces)).toEqual({ shown: 'It is ', denied: 'output.0' })
})

test('so is one with much white space in it', async () => {
  const rules = [deny({ words: ['top secret'] })]
  const pieces = ['It is ', 'to', 'p', ' \n', '\u00A0 ', ' sec', 'ret', ', they say'].map(text)
  expect(await watched(rules, pieces)).toEqual({ shown: 'It is ', denied: 'output.0' })
  const passed = 'It is top  \n sec ond'
  expect(await watched(rules, [...passed].map(text))).toMatchObject({ shown: passed })
})

test('what only begins like it, or goes on, is shown', async () => {
  const rules = [deny({ words: ['dog', 'top secret'] })]
  const pieces = ['The dog', 'ma of ', 'to', 'p se', 'lling books, do', 'gged'].map(text)
  const whole = 'The dogma of top selling books, dogged'
  expect(await watched(rules, pieces)).toMatchObject({ shown: whole })
})

test('where it looks back into the middle of a word, it finds no other', async () => {
  const rules = [deny({ words: ['dog'] }), deny({ pattern: /^dog/ })]
  for (let length = 30; length < 60; length++) {
    const pieces = [text('hotdog '), text('x'.repeat(length)), ...[...'yz'].map(text)]
    expect(await watched(rules, pieces)).not.toHaveProperty('denied')
  }
})

test('at the end of the message it is decided', async () => {
  expect(await watched([deny({ words: ['dog'] })], [text('a dog')])).toEqual({
    shown: 'a ',
    denied: 'output.0',
  })
})

test('a pattern is found in what is held back', async () => {
  const rules = [deny({ id: 'cards', pattern: /\b\d{4}([ -]\d{4}){3}\b/ })]
  const pieces = [...'Your card is 1234 5678 9012 3456, keep it.'].map(text)
  const { shown, denied } = await watched(rules, pieces)
  expect(denied).toBe('cards')
  expect('Your card is ').toContain(shown)
  const long = `${'x'.repeat(500)} 1234 `
  expect(await watched(rules, [...long].map(text))).toMatchObject({ shown: long })
})

test('what comes between is shown in its place', async () => {
  const usage: ModelEvent = { type: 'usage', usage: {} }
  const call: ModelEvent = { type: 'call', callId: 'c', name: 't', input: '{}' }
  const { events } = await watched([deny({ pattern: 'x+y' })], [text('first'), call, usage])
  expect(events).toEqual([text('first'), call, usage])
})

test('with rules that allow, nothing is shown before it is whole', async () => {
  const rules: GuardRule[] = [{ decision: 'allow', words: ['cats'] }]
  expect(await watched(rules, [text('about '), text('dogs')])).toEqual({
    shown: '',
    denied: 'output.0',
  })
  const passes = await watched(rules, [text('about '), text('cats')])
  expect(passes).toMatchObject({ shown: 'about cats' })
})

test('however a text is cut into pieces, it is denied if and only if the whole is', async () => {
  const words = fc.constantFrom(
    'dog',
    'dogma',
    'top secret',
    'top',
    'secret',
    ' ',
    '\n',
    ', ',
    '12',
    '345',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(words, { maxLength: 12 }),
      fc.array(fc.nat(7)),
      async (list, cuts) => {
        const rules = [deny({ words: ['dog', 'top secret'] }), deny({ pattern: /\b\d{5}\b/ })]
        const whole = list.join('')
        const pieces: ModelEvent[] = []
        for (let at = 0, i = 0; at < whole.length; i++) {
          const end = at + 1 + (cuts[i % Math.max(1, cuts.length)] ?? 0)
          pieces.push(text(whole.slice(at, end)))
          at = end
        }
        const forbidden = /(?<![\p{L}\p{N}])(dog|top\s+secret)(?![\p{L}\p{N}])|\b\d{5}\b/u.test(
          whole,
        )
        const { shown, denied } = await watched(rules, pieces)
        expect(denied !== undefined).toBe(forbidden)
        if (!forbidden) expect(shown).toBe(whole)
        else expect(shown).not.toMatch(/(?<![a-z])top\s+secret/)
      },
    ),
  )
})
