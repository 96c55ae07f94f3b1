import { describe, expect, test } from 'vitest'
import { serve } from '../test/support/serve.ts'
import { ConfigError, readConfig, variables } from './config.ts'
import { takenPaths } from './env-fields.ts'
import { strangeNames } from './env-names.ts'

describe('configuration', () => {
  test('has defaults for everything and listens on this machine only', () => {
    expect(readConfig({})).toMatchObject({ port: 8000, host: '127.0.0.1', logLevel: 'info' })
  })

  test('refuses another host without keys, and takes it with them', () => {
    expect(() => readConfig({ HOST: '0.0.0.0' })).toThrow(/HANDRAIL_API_KEYS/)
    const keys = { HANDRAIL_API_KEYS: 'a-key-of-16-chars=acme/ann:user+approver' }
    const config = readConfig({ ...keys, HOST: '0.0.0.0' })
    expect(config.apiKeys.get('a-key-of-16-chars')).toEqual({
      tenant: 'acme',
      user: 'ann',
      roles: ['user', 'approver'],
    })
  })

  test('limits legs only where it is told to', () => {
    expect(readConfig({}).legLimits).toEqual({})
    const limits = { HANDRAIL_TOTAL_LEGS: '8', HANDRAIL_TENANT_LEGS: '2' }
    expect(readConfig(limits).legLimits).toEqual({ total: 8, perTenant: 2 })
  })

  test.each([
    ['PORT', 'eighty'],
    ['PORT', '70000'],
    ['LOG_LEVEL', 'loud'],
    ['HANDRAIL_HITL', 'maybe'],
    ['HANDRAIL_API_KEYS', 'short=ann'],
    ['HANDRAIL_MAX_BODY', '-1'],
    ['DATABASE_URL', 'mysql://localhost/x'],
    ['REDIS_URL', 'localhost:6379'],
    ['REDIS_URL', 'http://localhost:6379'],
    ['HANDRAIL_TOTAL_LEGS', '0'],
    ['HANDRAIL_TOTAL_LEGS', 'many'],
    ['HANDRAIL_TENANT_LEGS', '-1'],
    ['HANDRAIL_TENANT_LEGS', '1.5'],
    ['PORT', '1.5'],
    ['PORT', '0x50'],
    ['PORT', '1e3'],
    ['HANDRAIL_ACTION_LIMIT', 'abc'],
    ['HANDRAIL_MONEY_LIMIT', 'abc'],
    ['HANDRAIL_MONEY_LIMIT', '0'],
    ['HANDRAIL_WEBHOOK_URL', 'foo'],
    ['HANDRAIL_BASE_PATH', '/chats'],
    ['HANDRAIL_BASE_PATH', '/threads/copilotkit'],
    ['HANDRAIL_CORS_ORIGINS', 'foo'],
    ['HANDRAIL_CORS_ORIGINS', 'https://*'],
    ['HANDRAIL_CORS_ORIGINS', 'https://*.example.org'],
    ['HANDRAIL_CORS_ORIGINS', 'chrome-extension://*'],
    ['HANDRAIL_CORS_ORIGINS', 'https://a.example/'],
    ['HANDRAIL_CORS_ORIGINS', 'https://a.example:443'],
  ])('%s=%s is one sentence that names it', (name, value) => {
    expect(() => readConfig({ [name]: value })).toThrow(ConfigError)
    expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name}: [^\\n]+$`))
  })

  test.each([
    [{ PORT: 'abc' }, 'PORT: write a whole number from 0 to 65535, not abc.'],
    [
      { HANDRAIL_MAX_BODY: '4MiB' },
      'HANDRAIL_MAX_BODY: write bytes as a whole number of 1 or more, not 4MiB.',
    ],
    [
      { HANDRAIL_WEBHOOK_URL: 'foo' },
      'HANDRAIL_WEBHOOK_URL: write an address that looks like https://host/path',
    ],
  ])('%o is told what to write', (env, sentence) => {
    expect(() => readConfig(env)).toThrow(sentence)
  })

  test.each([
    ['a-key-of-16-chars=ann,a-key-of-16-chars=bob', /ann and bob have the same key/],
    ['a-key-of-16-chars$=ann', /^HANDRAIL_API_KEYS: the key of ann .* letters, digits or one of/],
    ['a-key-of-16-chars==ann', /^HANDRAIL_API_KEYS: the key of ann /],
    ['a-key-of-16-chars', /^HANDRAIL_API_KEYS: write key=user/],
    ['a-key-of-16-chars=ann:owner', /no role can be called owner/],
  ])('keys %s are refused, and not shown', (text, sentence) => {
    const read = () => readConfig({ HANDRAIL_API_KEYS: text })
    expect(read).toThrow(sentence)
    expect(read).not.toThrow(/a-key-of/)
  })

  test('takes numbers and origins as they are meant', () => {
    const origins = 'https://a.example, http://b.example:81 capacitor://localhost *'
    const read = readConfig({
      HANDRAIL_API_KEYS: 'a-key-of-16-chars=ann',
      ...{ PORT: ' 80 ', HANDRAIL_MONEY_LIMIT: '.5', HANDRAIL_CORS_ORIGINS: origins },
    })
    expect(read).toMatchObject({ port: 80, governor: { moneyLimit: 0.5 } })
    expect([...read.origins]).toEqual(origins.split(/[ ,]+/))
  })

  test.each(['*', ' * ', 'null', 'https://a.example, *', '*,http://a.example'])(
    'HANDRAIL_CORS_ORIGINS=%s without API keys stops the start',
    (origins) => {
      const read = () => readConfig({ HANDRAIL_CORS_ORIGINS: origins })
      expect(read).toThrow(ConfigError)
      expect(read).toThrow(
        /^HANDRAIL_CORS_ORIGINS=\S+ would let every web page .*HANDRAIL_API_KEYS/,
      )
    },
  )

  test('names the setting that is nearest to one that is none', () => {
    const told = strangeNames(
      {
        ...{ HANDRAIL_API_KEY: 'x', HANDRAIL_PORT: '80' },
        ...{ HANDRAIL_DATA: 'x', HANDRAIL_TEST_STORE: 'x', HANDRAIL_WEB: 'off' },
        ...{ HANDRAIL_WEB_PORT: 'tcp://10.0.0.1:80', HANDRAIL_SERVICE_HOST: '10.0.0.1' },
      },
      variables,
    )
    expect(told).toEqual([
      'HANDRAIL_API_KEY is set, and there is no such setting. The nearest is HANDRAIL_API_KEYS.',
      'HANDRAIL_PORT is set, and there is no such setting. The nearest is PORT.',
    ])
  })

  test('knows which paths are taken', async () => {
    const server = await serve()
    const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      paths: Record<string, unknown>
    }
    const first = Object.keys(paths).map((path) => path.split('/')[1]!)
    const free = ['', 'api', 'copilotkit']
    const others = [...new Set(first)].filter((word) => !free.includes(word))
    expect(others.sort()).toEqual([...takenPaths].sort())
  })
})
