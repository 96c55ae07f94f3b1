import { describe, expect, test } from 'vitest'
import { providerError, retryAfterOf } from './provider-errors.ts'

const named = (name: string, fields: object = {}) =>
  Object.assign(new Error('oops'), { name, ...fields })
const because = (code: string) =>
  Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(), { code }) })

describe('what SDKs throw and providers send', () => {
  test.each([
    [because('ECONNREFUSED'), 'network'],
    [because('ENOTFOUND'), 'network'],
    [because('UND_ERR_CONNECT_TIMEOUT'), 'network'],
    [named('AI_APICallError', { statusCode: 200 }), 'stream_cut'],
    [named('AI_APICallError', { statusCode: 429 }), 'rate_limit'],
    [
      named('AI_APICallError', { statusCode: 429, responseBody: '{"code":"insufficient_quota"}' }),
      'authentication',
    ],
    [
      named('AI_APICallError', { statusCode: 400, responseBody: 'API key not valid.' }),
      'authentication',
    ],
    [named('AI_APICallError', { statusCode: 418 }), 'model_request'],
    [named('AI_APICallError', { statusCode: 599 }), 'model_overloaded'],
    [named('AI_RetryError', { lastError: named('x', { statusCode: 503 }) }), 'model_overloaded'],
    [named('AI_JSONParseError'), 'model_answer'],
    [named('AI_TypeValidationError'), 'model_answer'],
    [named('AI_UnsupportedFunctionalityError'), 'model_request'],
    [named('AI_LoadAPIKeyError'), 'authentication'],
    [named('TimeoutError'), 'model_timeout'],
    [
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'model_overloaded',
    ],
    [{ type: 'invalid_request_error', message: 'prompt is too long: 9 > 8' }, 'context_too_long'],
    [{ message: 'slow', code: 'rate_limit_exceeded' }, 'rate_limit'],
    [{ message: 'overloaded', code: 500 }, 'model_overloaded'],
    [{ error: { message: 'Rate limit exceeded', code: 429 } }, 'rate_limit'],
    [{ message: 'slow down', code: '429' }, 'rate_limit'],
    [{ message: 'no such model', code: 404 }, 'model_request'],
    [named('DOMException', { code: 20 }), 'internal'],
    [new Error('who knows'), 'internal'],
    ['just text', 'internal'],
    [undefined, 'internal'],
  ])('%o is %s', (thrown, code) => {
    expect(providerError(thrown).code).toBe(code)
  })

  test('a connection that fails after the answer began was cut', () => {
    expect(providerError(because('ECONNRESET'), true).code).toBe('stream_cut')
    expect(providerError(named('AbortError'), true).code).toBe('stream_cut')
  })

  test('an error that causes itself is read once', () => {
    const error: Error & { error?: unknown } = named('x')
    error.cause = error
    error.error = { cause: error }
    expect(providerError(error).code).toBe('internal')
  })

  test('the time to wait is read in every form', () => {
    const now = Date.parse('Mon, 16 Nov 2026 10:00:00 GMT')
    expect(retryAfterOf({ 'retry-after': '3' })).toBe(3)
    expect(retryAfterOf(new Headers({ 'retry-after': '0.5' }))).toBe(0.5)
    expect(retryAfterOf({ 'retry-after-ms': '1500', 'retry-after': '9' })).toBe(1.5)
    expect(retryAfterOf({ 'retry-after': 'Mon, 16 Nov 2026 10:00:30 GMT' }, now)).toBe(30)
    expect(retryAfterOf({ 'retry-after': 'Mon, 16 Nov 2026 09:00:00 GMT' }, now)).toBe(0)
    expect(retryAfterOf({ 'retry-after': 'soon' })).toBeUndefined()
    const body = '{"error":{"details":[{"retryDelay": "34s"}]}}'
    const google = named('AI_APICallError', { statusCode: 429, responseBody: body })
    expect(providerError(google).retryAfter).toBe(34)
  })

  test('a sentence repeats no key', () => {
    const error = named('x', { statusCode: 400, message: 'Bad key sk-proj-abcdefgh12345678 given' })
    expect(providerError(error).message).not.toContain('abcdefgh')
  })
})
