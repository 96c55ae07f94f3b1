import { expect, test } from 'vitest'
import { classify, type ErrorCode, errors } from './errors.ts'

const page = () =>
  [
    '# Errors',
    '',
    'One table, `src/core/errors.ts`; every wire turns its rows into its own format. On the chats wire an error is',
    '`{"error": {"code", "message", "field"?, "retryable", ...}}` with the status below. This page is kept equal',
    'to the table by a test (`npm test -- src/core/errors.test.ts -u` writes it anew). `type` and `severity` are how',
    'dashboards tell them apart; what is tried again by itself is a warning.',
    '',
    '| code | status | try again | category | type | severity | sentence |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...Object.entries(errors).map(([code, { status, category }]) => {
      const { type, retryable, severity, sentence } = classify(code as ErrorCode)
      const again = retryable ? 'yes' : 'no'
      return `| \`${code}\` | ${status} | ${again} | ${category} | ${type} | ${severity} | ${sentence} |`
    }),
    '',
  ].join('\n')

test('docs/errors.md says what the table says', async () => {
  await expect(page()).toMatchFileSnapshot('../../docs/errors.md')
})
