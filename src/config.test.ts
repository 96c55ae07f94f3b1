import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from './config.ts'

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
  ])('%s=%s is one sentence that names it', (name, value) => {
    expect(() => readConfig({ [name]: value })).toThrow(ConfigError)
    expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name}: [^\\n]+$`))
  })
})
