import { expect, test } from 'vitest'
import { masked } from './masked.ts'

test.for([
  ['Authorization: Bearer abc.def', 'Authorization: ***'],
  ['the key sk-proj-0123456789 is wrong', 'the key *** is wrong'],
  ['{"api_key":"abc","name":"x"}', '{"api_key":"***","name":"x"}'],
  ['GET /a?access_token=abc&page=2', 'GET /a?access_token=***&page=2'],
  ['postgres://ann:pw@host/db is away', 'postgres://***@host/db is away'],
  ['password = hunter2; retry', 'password = ***; retry'],
  ['eyJhbGciOi.eyJzdWIi.c2ln expired', '*** expired'],
])('leaves out what looks like a secret: %s', ([text, left]) => {
  expect(masked(text!)).toBe(left)
})

test('leaves out what is known to be one, and nothing else', () => {
  const text = 'a token of gratitude for tulips-9, at /accounts/ACC-001'
  expect(masked(text)).toBe(text)
  expect(masked(text, ['tulips-9', 'at'])).toBe(
    'a token of gratitude for ***, at /accounts/ACC-001',
  )
})

// A quadratic search takes longer than the limit of a test for these texts.
test.each([' ', 'eyJ-', 'passw', 'token', 'token ', ': ', 'bearer ', '://a', 'eyJa.'])(
  'a long text of %j is read in linear time',
  (part) => {
    const text = part.repeat(1_000_000 / part.length)
    expect(masked(text).length).toBeLessThanOrEqual(text.length)
  },
)
