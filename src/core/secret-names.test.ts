import { expect, test } from 'vitest'
import { isSecret } from './secrets.ts'

test.each([
  ...[
    'token',
    'accessToken',
    'access_token',
    'ACCESS-TOKEN',
    'id_token',
    'tokens',
    'x-vendor-token',
  ],
  ...[
    'apiKey',
    'api_key',
    'API-KEY',
    'apikey',
    'apiKeys',
    'openaiApiKey',
    'OPENAI_KEY',
    'x-api-key',
  ],
  ...['privateKey', 'private_key', 'privateKeyPem', 'accessKey', 'access_key', 'accessKeyId'],
  ...[
    'secretKey',
    'aws_secret_access_key',
    'signingKey',
    'clientSecret',
    'client_secret',
    'secrets',
  ],
  ...[
    'password',
    'dbPassword',
    'passwd',
    'pwd',
    'userpassword',
    'passphrase',
    'credential',
    'creds',
  ],
  ...['authorization', 'auth', 'x-auth', 'basicAuth', 'oauth', 'bearer', 'cookie', 'set-cookie'],
  ...['jwt', 'x-jwt', 'x-goog-iap-jwt-assertion', 'x-amzn-oidc-data', 'assertion', 'signature'],
  ...['x-session-id', 'sessionId', 'session_id', 'sid', 'connectionString', 'connection_string'],
  ...['stripe_secret_key', 'DB_PASSWORD', 'smtpPass', 'DB_PASS', 'dbPw', 'githubtoken', 'botToken'],
  ...['providerKeys', 'openaiKeys', 'authHeader', 'authData', 'x-csrf', 'githubPat', 'psk'],
  ...['openaiapikey', 'clientsecretvalue', 'proxyauthorization', 'recoveryCodes', 'seedPhrase'],
  ...['sasToken', 'aPiKeY', 'ToKeN', 'token2', `token_${'x'.repeat(300)}`, 'license-key'],
  ...['authorisation', 'proxyAuthorisation', 'keyMaterial', 'key_material'],
  ...['JWTToken', 'authToken', 'xsrfToken', 'sessionToken', 'refreshtoken'],
])('a field named %s is a secret', (name) => {
  expect(isSecret(name, 'some value')).toBe(true)
  expect(isSecret(name, { nested: 'some value' })).toBe(true)
})

test.each<[string, unknown]>([
  ...(['maxTokens', 'max_tokens', 'tokenCount', 'token_limit', 'inputTokens'] as const).flatMap(
    (name): [string, unknown][] => [
      [name, 100],
      [name, '100'],
    ],
  ),
  ['tokens', 12],
  ['tokenizer', 'cl100k'],
  ['author', 'Ann'],
  ['authors', ['Ann']],
  ['authenticated', true],
  ['key', 'theme'],
  ['primaryKey', 'id'],
  ['cacheKey', 'c'],
  ['publicKey', 'c'],
  ['keyboard', 'qwerty'],
  ['monkey', 'x'],
  ['secretary', 'Ann'],
  ['session', 'morning'],
  ['threadId', 't'],
  ['user_id', 'u'],
  ['passenger', 'Ann'],
  ['compass', 'north'],
  ['design', 'flat'],
  ['url', 'https://example.org/path?page=2&sort=key'],
  ['note', 'Bearer of good news'],
  ['text', 'the token was lost; the key = unknown'],
  ['json', '{"theme":"dark","maxTokens":5,"keyboard":"qwerty","password":null}'],
  ['authType', 'oauth-like'],
  ['authUrl', 'https://login.example.org/'],
  ['tokenType', 'bearer'],
  ['pin', 'left'],
  ['passive', 'yes'],
  ['path', '/a/pattern'],
  ['code', 'DE'],
  ['selectedKeys', ['a', 'b']],
  ['url', 'https://user@example.org/monkey?author=ann'],
  ['text', 'Please note: the token: it expires soon'],
  ['text', 'task-force-with-a-long-name and basic information'],
  ['password', null],
  ['pk', 'a'],
  ['keyMaterials', ['wood', 'steel']],
  ...['key', 'seed', 'session', 'nonce', 'login'].map((name): [string, unknown] => [
    name,
    'abc123',
  ]),
  ['text', 'The password is required. Your password is too short. The token is 12 characters.'],
  ['text', 'docker run -u 1000:1000 image; sort -u file'],
  ['text', 'curl -u 1000:1000'],
])('a field named %s with the value %j is no secret', (name, value) => {
  expect(isSecret(name, value)).toBe(false)
})

test.each([
  'Bearer abcdef123456',
  'Basic dXNlcjpwYXNz',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  'sk-proj-abcdefgh12345678',
  'ghp_abcdefghijklmnop1234',
  'xoxb-1234567890-abcdef',
  'AKIAIOSFODNN7EXAMPLE',
  'postgres://app:hunter2@db.example/app',
  'https://example.org/hook?token=abc123',
  'https://acc.blob.example/x?sv=1&sig=abc',
  'Server=db;User Id=app;Password=hunter2;',
  '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----',
  '{"mcp":{"apiKey":"abc"}}',
  'Bearer xyz',
  '[{"name":"token","value":"abc"}]',
  '"{\\"apiKey\\":\\"abc\\"}"',
  `{"text":"${'x'.repeat(20_000)}","apiKey":"abc"}`,
  `curl -H 'Authorization: Bearer abc' https://example.org`,
  'Cookie: a=b; c=d',
  'THEME=dark\nAPI_KEY=abc',
  'npx server --api-key abc',
  '--token=abc',
  'https://0123456789abcdef0123@example.org/repository.git',
  'https://example.org/#access_token=abc',
  'https://hooks.slack.com/services/T000/B000/k3ykey',
  'the key is sk-proj-abcdefgh12345678, do not tell',
  'hook=https://example.org/?token=abc',
])('the text %j is a secret under any name', (value) => {
  expect(isSecret('note', value)).toBe(true)
})

test.each(['accessToken', 'token', 'otp'])('a number named %s is a secret', (name) => {
  expect(isSecret(name, 123_456)).toBe(true)
})

// A quadratic search takes longer than the limit of a test for these texts.
test('a megabyte of hostile text is examined in linear time', () => {
  const parts = [
    'eyJ-',
    'a:',
    '?key',
    '[{',
    'token=',
    'a=',
    '--a',
    'sk-sk-',
    '://a',
    '"token":',
    'SG.a-',
    'password is ',
    'curl -u ',
    ' ',
  ] as const
  for (const part of parts) {
    const text = part.repeat(1_000_000 / part.length)
    isSecret('note', text)
    isSecret(text, 'note')
  }
})
