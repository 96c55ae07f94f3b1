import { describe, expect, test } from 'vitest'
import { draft } from './entries.ts'
import { RunSecrets, withoutTextsIn } from './secrets.ts'
import type { Thread } from './thread.ts'

/** A thread whose runs go on until they are ended. */
const threadWith = (...runIds: string[]) => threadOf('ann', ...runIds)

function threadOf(owner: string, ...runIds: string[]) {
  const runs = new Map(runIds.map((runId) => [runId, { runId, status: 'running' }]))
  const listeners = new Set<() => void>()
  const listen = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const end = (runId: string) => {
    runs.get(runId)!.status = 'completed'
    for (const listener of [...listeners]) listener()
  }
  const state = { tenant: 'acme', owner, runs }
  return { thread: { state, listen } as unknown as Thread, end, listeners }
}

const forwarded = {
  theme: 'dark',
  config: { configurable: { token: 'a', thread_id: 't' } },
  mcpServers: [
    { endpoint: 'https://x.example', apiKey: 'b' },
    { endpoint: 'https://y.example', headers: { Authorization: 'c' } },
  ],
  list: ['plain', 'Bearer abcdef123'],
}

describe('split and join', () => {
  test('secrets at any depth are taken out, and put back where they were', () => {
    const secrets = new RunSecrets()
    const { thread } = threadWith('r')
    const split = secrets.split({ forwarded, headers: {} })
    expect(split.options.forwarded).toEqual({
      theme: 'dark',
      config: { configurable: { thread_id: 't' } },
      mcpServers: [
        { endpoint: 'https://x.example' },
        { endpoint: 'https://y.example', headers: {} },
      ],
      list: ['plain', '[secret]'],
    })
    secrets.keep(thread, 'r', split.secrets)
    expect(secrets.join('r', split.options).forwarded).toEqual(forwarded)
    expect([...secrets.textsOf('r')].sort()).toEqual([
      'Bearer abcdef123',
      'a',
      'abcdef123',
      'b',
      'c',
    ])
  })

  test('the client id of the thread is no secret, whatever it is called', () => {
    const { options } = new RunSecrets().split({ forwarded: { session_id: 's1' } }, 's1')
    expect(options.forwarded).toEqual({ session_id: 's1' })
  })

  test('only listed headers are written, unless they look like a secret', () => {
    const headers = {
      ...{ 'x-tenant': 'acme', 'x-goog-iap-jwt-assertion': 'a', 'x-session-id': 'b' },
      ...{
        'x-anything': 'c',
        'x-mine': 'd',
        'x-locale': 'Bearer abcdef123',
        'x-vendor-token': 'e',
      },
    }
    const secrets = new RunSecrets({ headers: ['X-Mine', 'x-vendor-token'] })
    const split = secrets.split({ headers })
    expect(split.options.headers).toEqual({ 'x-tenant': 'acme', 'x-mine': 'd' })
    secrets.keep(threadWith('r').thread, 'r', split.secrets)
    expect(secrets.join('r', split.options).headers).toEqual(headers)
  })
})

test('names beside their values, in pairs and lists of headers and options, make them secrets', () => {
  const forwarded = {
    env: [
      { name: 'token', value: 'a' },
      { name: 'theme', value: 'dark' },
      { key: 'API_KEY', value: { deep: 'b' } },
    ],
    pairs: [
      ['authorization', 'c'],
      ['accept', 'json'],
    ],
    rawHeaders: ['Accept', 'json', 'X-Auth', 'd'],
    args: ['--api-key', 'e', '--verbose', 'yes'],
    tags: ['auth', 'billing'],
  }
  const secrets = new RunSecrets()
  const split = secrets.split({ forwarded })
  expect(split.options.forwarded).toEqual({
    env: [{ name: 'token' }, { name: 'theme', value: 'dark' }, { key: 'API_KEY' }],
    pairs: [
      ['authorization', '[secret]'],
      ['accept', 'json'],
    ],
    rawHeaders: ['Accept', 'json', 'X-Auth', '[secret]'],
    args: ['--api-key', '[secret]', '--verbose', 'yes'],
    tags: ['auth', 'billing'],
  })
  secrets.keep(threadWith('r').thread, 'r', split.secrets)
  expect(secrets.join('r', split.options).forwarded).toEqual(forwarded)
})

test('secrets in instructions and context are masked, and the run gets them', () => {
  const instructions = [
    'Be brief.',
    'apiKey: abc-def',
    'The user: {"name":"Ann","password":"hunter2","maxTokens":5}',
    'Call https://example.org/?token=abcd with Bearer 0123456789abcdef.',
    'Authorization: Bearer abcd\nCookie: a=b; c=d\nAccept: json',
  ]
  const secrets = new RunSecrets()
  const split = secrets.split({ instructions })
  expect(split.options.instructions).toEqual([
    'Be brief.',
    'apiKey: [secret]',
    'The user: {"name":"Ann","password":"[secret]","maxTokens":5}',
    'Call https://example.org/?token=[secret] with [secret]',
    'Authorization: [secret]\nCookie: [secret]\nAccept: json',
  ])
  secrets.keep(threadWith('r').thread, 'r', split.secrets)
  expect(secrets.join('r', split.options).instructions).toEqual(instructions)
})

test('more than 10,000 values in the properties of a request are refused with the field', () => {
  const some = (length: number) => ({ list: Array.from({ length }, (_, i) => ({ n: i })) })
  const secrets = new RunSecrets()
  expect(secrets.split({ forwarded: some(4_999) }).secrets.forwarded).toEqual([])
  const split = () => secrets.split({ forwarded: some(5_001) })
  expect(split).toThrow(expect.objectContaining({ code: 'invalid_request', field: 'properties' }))
})

test('JSON texts beyond the budget of a request count as secrets if they may hold one', () => {
  const text = JSON.stringify({ tokenizer: 'x'.repeat(3_000) })
  const list = Array.from({ length: 100 }, () => text)
  const { options } = new RunSecrets().split({ forwarded: { list: [...list, '{"theme":"dark"}'] } })
  const written = options.forwarded?.list as string[]
  expect([written[0], written[99], written[100]]).toEqual([text, '[secret]', '{"theme":"dark"}'])
})

describe('keeping', () => {
  const some = (secrets: RunSecrets, token: string) =>
    secrets.split({ forwarded: { token } }).secrets

  test('a request without secrets leaves those of the run, and one with some replaces them', () => {
    const secrets = new RunSecrets()
    const { thread } = threadWith('r')
    secrets.keep(thread, 'r', secrets.split({ headers: { 'x-vendor-token': 'one' } }).secrets)
    secrets.keep(thread, 'r', secrets.split({ headers: { 'x-anything': 'two' } }).secrets)
    const both = { 'x-vendor-token': 'one', 'x-anything': 'two' }
    expect(secrets.join('r', {}).headers).toEqual(both)
    secrets.keep(thread, 'r', some(secrets, 'three'))
    expect(secrets.join('r', {})).toEqual({
      forwarded: { token: 'three' },
      headers: { 'x-anything': 'two' },
    })
  })

  test('the end of a run drops its secrets and its listener', () => {
    const secrets = new RunSecrets()
    const { thread, end, listeners } = threadWith('r')
    secrets.keep(thread, 'r', some(secrets, 'one'))
    secrets.keep(thread, 'r', some(secrets, 'two'))
    end('r')
    expect([secrets.textsOf('r'), listeners.size]).toEqual([[], 0])
  })

  test('the oldest runs lose their secrets when all together are too large', () => {
    const secrets = new RunSecrets({ maxTotal: 3_000 })
    const { thread } = threadWith('a', 'b', 'c')
    for (const runId of ['a', 'b', 'c'])
      secrets.keep(thread, runId, some(secrets, 'x'.repeat(1_000)))
    const kept = ['a', 'b', 'c'].map((runId) => secrets.textsOf(runId).length)
    expect(kept).toEqual([0, 1, 1])
  })

  test.each<[string, ConstructorParameters<typeof RunSecrets>[0]]>([
    ['bytes', { maxTotal: 5_000 }],
    ['runs', { maxRuns: 3 }],
  ])(
    'a user whose secrets exceed the limit of %s drops no secrets of another user (I10)',
    (_, limits) => {
      const secrets = new RunSecrets(limits)
      secrets.keep(threadOf('bob', 'b').thread, 'b', some(secrets, 'of bob'))
      const { thread } = threadOf('ann', '1', '2', '3', '4', '5')
      for (const runId of ['1', '2', '3', '4', '5'])
        secrets.keep(thread, runId, some(secrets, 'x'.repeat(2_000)))
      const kept = ['b', '1', '2', '3', '4', '5'].filter((id) => secrets.textsOf(id).length > 0)
      expect(kept).toEqual(['b', '4', '5'])
    },
  )
})

test('the sentence of an error is written without the secrets of its run', () => {
  const error = { code: 'remote_refused', message: 'no: sesame-1 is wrong', retryable: false }
  const about = { effectId: 'e', effect: 'remote' as const, name: 'far' }
  const failed = withoutTextsIn(draft('effect.failed', { ...about, error }), () => ['sesame-1'])
  expect(JSON.stringify(failed)).not.toContain('sesame')
  const retry = draft('event', { name: 'retry', value: { attempt: 2, message: 'sesame-1?' } })
  expect(withoutTextsIn(retry, () => ['sesame-1']).body).toMatchObject({
    value: { message: '***?' },
  })
})

/** Counts how often the fields of an object are listed. */
function counted<T extends object>(value: T) {
  const counts = { lists: 0 }
  const proxied = new Proxy(value, {
    ownKeys(target) {
      counts.lists++
      return Reflect.ownKeys(target)
    },
  })
  return { counts, proxied }
}

const items = <T>(length: number, item: (n: number) => T) =>
  Array.from({ length }, (_, n) => item(n))

test('join copies a list once, however many secrets it has', () => {
  const copiesFor = (length: number) => {
    const secrets = new RunSecrets()
    const list = items(length, (n) => `Bearer abcdef${n}`)
    const split = secrets.split({ forwarded: { list } })
    secrets.keep(threadWith('r').thread, 'r', split.secrets)
    const open = split.options.forwarded?.list as string[]
    expect(open).toEqual(items(length, () => '[secret]'))
    const iterate = Array.prototype[Symbol.iterator]
    let copies = 0
    Array.prototype[Symbol.iterator] = function <T>(this: T[]) {
      if (this.length === length) copies++
      return iterate.call(this) as ArrayIterator<T>
    }
    const joined = secrets.join('r', split.options)
    Array.prototype[Symbol.iterator] = iterate
    expect(joined.forwarded).toEqual({ list })
    return copies
  }
  expect(copiesFor(201)).toBeLessThanOrEqual(copiesFor(23) + 2)
})

test('join changes no value of the options', () => {
  const secrets = new RunSecrets()
  const split = secrets.split({ forwarded })
  secrets.keep(threadWith('r').thread, 'r', split.secrets)
  const before = structuredClone(split.options)
  secrets.join('r', split.options)
  expect(split.options).toEqual(before)
})

test('a secret in a field named __proto__ comes back as a field', () => {
  const secrets = new RunSecrets()
  const forwarded = JSON.parse('{"a":{"__proto__":{"token":"abc"}}}')
  const split = secrets.split({ forwarded })
  secrets.keep(threadWith('r').thread, 'r', split.secrets)
  expect(JSON.stringify(secrets.join('r', split.options).forwarded)).toBe(JSON.stringify(forwarded))
})

test('the name beside values is looked for once, however many values an object has', () => {
  const variants = items(64, (n) =>
    [...'values'].map((letter, at) => ((n >> at) & 1 ? letter.toUpperCase() : letter)).join(''),
  )
  const listsFor = (names: readonly string[]) => {
    const fields = Object.fromEntries(names.map((name) => [name, 'x']))
    const { counts, proxied } = counted({ ...fields, name: 'theme' })
    expect(new RunSecrets().split({ forwarded: { a: proxied } }).secrets.forwarded).toEqual([])
    return counts.lists
  }
  expect(listsFor(variants)).toBe(listsFor(variants.slice(0, 4)))
})

test('the texts of a run are collected once until its secrets change', () => {
  const secrets = new RunSecrets()
  const { thread } = threadWith('r')
  secrets.keep(thread, 'r', secrets.split({ forwarded: { token: 'sesame-1' } }).secrets)
  const texts = secrets.textsOf('r')
  expect(secrets.textsOf('r')).toBe(texts)
  secrets.keep(thread, 'r', secrets.split({ forwarded: { token: 'sesame-2' } }).secrets)
  expect(secrets.textsOf('r')).toEqual(['sesame-2'])
})

test('a header of a run is the one that join returns', () => {
  const secrets = new RunSecrets({ headers: ['x-mine'] })
  const headers = { 'x-mine': 'a', 'x-other': 'b', 'x-token': 'c' }
  const split = secrets.split({ headers })
  secrets.keep(threadWith('r').thread, 'r', split.secrets)
  for (const [name, value] of Object.entries(headers))
    expect(secrets.header('r', split.options, name)).toBe(value)
  expect(secrets.header('r', split.options, 'x-none')).toBeUndefined()
})

test('types and names beside values make them secrets, and other types do not', () => {
  const forwarded = {
    typed: [
      { type: 'bearer', value: 'a' },
      { type: 'apiKey', value: 'b' },
      { kind: 'password', v: 'c' },
      { type: 'text', value: 'd' },
      { type: 'password', text: 'Enter your password' },
    ],
    short: [
      { k: 'token', v: 'e' },
      { k: 'theme', v: 'f' },
      { id: '7', name: 'token', value: 'g' },
      { property: 'api_key', value: 'h' },
      { k: 'key', v: 'i' },
    ],
  }
  const { secrets } = new RunSecrets().split({ forwarded })
  expect(secrets.forwarded.map(({ value }) => value)).toEqual(['a', 'b', 'c', 'e', 'g', 'h'])
})

test('passwords in sentences and calls of curl are masked in instructions', () => {
  const { options } = new RunSecrets().split({
    instructions: [
      'The password is hunter2, the token is required.',
      'Run curl -u ann:hunter2 https://example.org',
      'docker run -u ann:staff',
    ],
  })
  expect(options.instructions).toEqual([
    'The password is [secret], the token is required.',
    'Run curl -u ann:[secret] https://example.org',
    'docker run -u ann:staff',
  ])
})
