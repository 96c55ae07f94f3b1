import { expect, test } from 'vitest'
import { connectionSecrets } from './connection-secrets.ts'

test.each([
  ['a key and the text after its scheme', { authorization: 'Bearer abc' }, ['Bearer abc', 'abc']],
  ['a short value of a secret header', { 'x-api-key': 'abc' }, ['abc']],
  ['a long value of another header', { 'x-vendor': 'abcdefghijkl' }, ['abcdefghijkl']],
  ['no short value of another header', { 'x-tenant': 'acme' }, []],
  ['no header that describes the body', { 'content-type': 'application/json' }, []],
])('the secrets of a connection include %s', (_, headers, texts) => {
  expect(connectionSecrets(headers)).toEqual(texts)
})

test('the secrets of a connection include those of its address, its environment and its arguments', () => {
  const url = 'https://far.example/run?api_key=abc123'
  const env = { API_TOKEN: 'def456', ROOT: '/srv/files/of/the/agents' }
  const args = ['--password', 'ghi789', '--port', '80']
  expect(connectionSecrets({}, { url, env, args })).toEqual([url, 'abc123', 'def456', 'ghi789'])
})
