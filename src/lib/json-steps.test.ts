import { expect, test } from 'vitest'
import { isLong, jsonSteps, unhurried } from './json-steps.ts'

const odd = {
  text: 'a "quoted" \u2028 text',
  nothing: undefined,
  call: () => 1,
  list: [undefined, null, 1, Number.NaN, { a: undefined, b: [] }, new Date(0)],
  deep: { a: { b: { c: { d: { e: { f: { g: undefined, h: 1 } } } } } } },
  '': {},
}
const large = { ...odd, messages: Array.from({ length: 20_000 }, (_, id) => ({ id, odd })) }

test('JSON that is made in steps equals JSON.stringify', () => {
  for (const value of [odd, large, [], {}, null, 'text', 1, [[odd]]]) {
    const expected = JSON.stringify(value)
    expect([...jsonSteps(value)].join('')).toBe(expected)
    expect([...jsonSteps(value, 2)].join('')).toBe(JSON.stringify(value, null, 2))
  }
})

test('long values are made in several steps, and other work runs in between', async () => {
  expect(isLong(large)).toBe(true)
  expect(isLong(odd)).toBe(false)
  const steps = [...jsonSteps(large)]
  expect(steps.length).toBeGreaterThan(10)
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  for await (const _ of unhurried(jsonSteps(large)));
  clearInterval(timer)
  expect(turns).toBeGreaterThan(1)
})

test('a string longer than a step is divided, and no surrogate pair is', () => {
  for (const text of [
    'x"\n'.repeat(200_000),
    `a${'😀'.repeat(200_000)}`,
    '\ud800'.repeat(250_000),
  ]) {
    const steps = [...jsonSteps({ text })]
    expect(steps.length).toBeGreaterThan(1)
    expect(steps.join('')).toBe(JSON.stringify({ text }))
    for (const step of steps) expect(Buffer.from(step).toString()).toBe(step)
  }
})
