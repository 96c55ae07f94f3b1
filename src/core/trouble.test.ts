import { expect, test } from 'vitest'
import { RuntimeError } from './errors.ts'
import { troubleOf } from './trouble.ts'

test('what a provider sent in place of an error is told by its message, and by nothing else of it', () => {
  const causes = (cause: unknown) => troubleOf(new RuntimeError('internal', 'x', { cause })).causes
  expect(causes({ message: 'overloaded', code: 500, body: 'secret' })).toEqual(['overloaded (500)'])
  expect(causes({ error: { message: 'dead' } })).toEqual(['dead'])
  expect(causes(Object.create(null))).toEqual(['an object'])
  expect(causes('just text')).toEqual(['just text'])
})
