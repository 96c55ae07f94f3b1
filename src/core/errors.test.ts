import { expect, test } from 'vitest'
import { errors } from './errors.ts'

const page = () =>
  [
    '# Errors',
    '',
    'One table, `src/core/errors.ts`; every wire turns its rows into its own format. On the chats wire an error is',
    '`{"error": {"code", "message", "field"?, "retryable", ...}}` with the status below. This page is kept equal',
    'to the table by a test (`npm test -- src/core/errors.test.ts -u` writes it anew).',
    '',
    '| code | status | try again | category | sentence |',
    '| --- | --- | --- | --- | --- |',
    ...Object.entries(errors).map(
      ([code, { status, retryable, category, sentence }]) =>
        `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${category} | ${sentence} |`,
    ),
    '',
  ].join('\n')

test('docs/errors.md says what the table says', async () => {
  await expect(page()).toMatchFileSnapshot('../../docs/errors.md')
})
