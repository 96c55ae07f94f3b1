import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Arguments, type Condition, type Reading, readArguments } from './predicates.ts'
import { isWithin } from './within.ts'

const reading = (given: Arguments, input: unknown): Reading =>
  readArguments(given, 'policy.0.arguments')(input)
const of = (condition: Condition, value: unknown): Reading =>
  reading({ x: condition }, { x: value })
const problem = (given: unknown): string => {
  try {
    readArguments(given, 'policy.2.arguments')
    return 'was read'
  } catch (error) {
    return (error as Error).message
  }
}

describe('conditions on arguments', () => {
  test.each<[Condition, unknown, Reading]>([
    [{ equals: 5 }, 5, 'yes'],
    [{ equals: 5 }, '5', 'no'],
    [{ equals: { a: 1, b: [2] } }, { b: [2], a: 1 }, 'yes'],
    [{ equals: null }, null, 'yes'],
    [{ oneOf: ['a', 'b'] }, 'b', 'yes'],
    [{ oneOf: ['a', 'b'] }, 'c', 'no'],
    [{ startsWith: 'drafts/' }, 'drafts/a', 'yes'],
    [{ startsWith: 'drafts/' }, 'Drafts/a', 'no'],
    [{ startsWith: 'drafts/' }, 5, 'unread'],
    [{ endsWith: '@us.org' }, 'ann@us.org', 'yes'],
    [{ contains: 'rm ' }, 'x; rm -rf', 'yes'],
    [{ contains: 'b' }, ['a', 'b'], 'yes'],
    [{ contains: { id: 1 } }, [{ id: 1 }], 'yes'],
    [{ contains: 'a' }, { a: 1 }, 'unread'],
    [{ matches: '^https://[a-z.]+/$' }, 'https://a.b/', 'yes'],
    [{ matches: /^ab$/i }, 'AB', 'yes'],
    [{ matches: 'x' }, 'y', 'no'],
    [{ matches: 'x' }, 'x'.repeat(100_001), 'unread'],
    [{ over: 100 }, 101, 'yes'],
    [{ over: 100 }, 100, 'no'],
    [{ over: 100 }, '101', 'unread'],
    [{ over: 100 }, null, 'unread'],
    [{ under: 100 }, Number.NaN, 'unread'],
    [{ over: 0, under: 10 }, 5, 'yes'],
    [{ over: 0, under: 10 }, 50, 'no'],
    [{ absent: true }, 5, 'no'],
    [{ absent: false }, 5, 'yes'],
    [{ absent: false }, null, 'yes'],
    [{ within: 'drafts' }, 'drafts/../x', 'no'],
    [{ host: 'example.com' }, 'https://example.com/a?b', 'yes'],
    [{ host: 'example.com' }, 'https://example.com.evil.org/', 'no'],
    [{ host: 'example.com' }, 'https://EXAMPLE.com:8443', 'yes'],
    [{ host: 'example.com' }, 'https://example.com@evil.org/', 'unread'],
    [{ host: 'example.com' }, 'file:///example.com', 'unread'],
    [{ host: 'example.com' }, 'example.com', 'unread'],
    [{ host: ['a.org', '*.b.org'] }, 'http://x.b.org', 'yes'],
    [{ host: '*.b.org' }, 'http://b.org', 'no'],
    [{ host: '*.b.org' }, 'http://evilb.org', 'no'],
    [{ every: { endsWith: '@us' } }, ['a@us', 'b@us'], 'yes'],
    [{ every: { endsWith: '@us' } }, ['a@us', 'b'], 'no'],
    [{ every: { endsWith: '@us' } }, ['a@us', 5], 'unread'],
    [{ every: { endsWith: '@us' } }, [], 'unread'],
    [{ every: { endsWith: '@us' } }, 'a@us', 'unread'],
    [{ any: { over: 5 } }, [1, 9], 'yes'],
    [{ any: { over: 5 } }, [1, 'x'], 'unread'],
    [{ any: { over: 5 } }, [], 'no'],
    [{ any: { at: { price: { over: 5 } } } }, [{ price: 9 }], 'yes'],
    [{ at: { a: { equals: 1 }, b: { equals: 2 } } }, { a: 1, b: 3 }, 'no'],
    [{ at: { a: { equals: 1 } } }, [1], 'unread'],
  ])('%j of %j is %s', (condition, value, expected) => {
    expect(of(condition, value)).toBe(expected)
  })

  test('what is missing cannot be judged, except for being missing', () => {
    for (const input of [{}, null, 'text', [], undefined])
      expect(reading({ x: { equals: 1 } }, input)).toBe('unread')
    expect(reading({ x: { absent: true } }, {})).toBe('yes')
    expect(reading({ x: { absent: false } }, {})).toBe('no')
    expect(reading({ 'x.y.z': { absent: true } }, { x: 5 })).toBe('yes')
  })

  test('a dot leads into a part; a name with a dot is written with a backslash', () => {
    const input = { to: { address: 'a' }, 'to.address': 'b', list: [{ n: 1 }] }
    expect(reading({ 'to.address': { equals: 'a' } }, input)).toBe('yes')
    expect(reading({ 'to\\.address': { equals: 'b' } }, input)).toBe('yes')
    expect(reading({ 'list.0.n': { equals: 1 } }, input)).toBe('yes')
    expect(reading({ 'list.length': { over: 3 } }, input)).toBe('no')
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__proto__.polluted'])(
    'what an object inherits is no argument: %s',
    (name) => {
      expect(reading({ [name]: { absent: true } }, {})).toBe('yes')
      expect(reading({ [name]: { contains: 'x' } }, {})).toBe('unread')
      const own = JSON.parse('{"__proto__": {"polluted": "x"}, "constructor": "x"}')
      if (name === 'constructor') expect(reading({ [name]: { equals: 'x' } }, own)).toBe('yes')
      expect(({} as { polluted?: string }).polluted).toBeUndefined()
    },
  )

  test('one that does not hold decides, whatever cannot be read', () => {
    expect(reading({ a: { equals: 1 }, b: { over: 1 } }, { a: 2 })).toBe('no')
    expect(reading({ a: { equals: 1 }, b: { over: 1 } }, { a: 1 })).toBe('unread')
  })

  test('a pattern that would take for ever elsewhere is found at once', () => {
    expect(of({ matches: '^(a+)+$' }, `${'a'.repeat(50_000)}b`)).toBe('no')
  })

  test.each([
    [5, "policy.2.arguments: write conditions by the argument's name."],
    [{}, 'policy.2.arguments: name an argument.'],
    [{ a: 5 }, 'policy.2.arguments.a: write a condition: { equals: ... }.'],
    [{ a: {} }, 'policy.2.arguments.a: write a condition: { equals: ... }.'],
    [
      { 'a..b': { equals: 1 } },
      'policy.2.arguments.a..b: name an argument, or a part: to.address.',
    ],
    [
      { a: { startWith: 'x' } },
      /^policy\.2\.arguments\.a\.startWith is not known\. Known: equals, /,
    ],
    [{ a: { toString: 'x' } }, /toString is not known/],
    [{ a: { startsWith: '' } }, 'policy.2.arguments.a.startsWith: write a text that is not empty.'],
    [{ a: { over: '5' } }, 'policy.2.arguments.a.over: write a number.'],
    [{ a: { matches: '(?=x)' } }, /^policy\.2\.arguments\.a\.matches: /],
    [{ a: { oneOf: [] } }, 'policy.2.arguments.a.oneOf: write a list of values.'],
    [{ a: { every: { at: { b: { under: [] } } } } }, /a\.every\.at\.b\.under: write a number/],
    [{ a: { within: '../x' } }, /within: write a folder/],
    [{ a: { equals: undefined } }, 'policy.2.arguments.a.equals: write the value.'],
  ])('what can never work is refused by its place: %j', (given, sentence) => {
    expect(problem(given)).toMatch(sentence)
  })

  test('nothing that a model sends makes it throw, or changes it', () => {
    const given: Arguments = {
      a: { equals: 1 },
      'b.c': { contains: 'x', matches: 'x' },
      d: { every: { host: 'x.org' } },
      e: { within: 'drafts', oneOf: ['x'] },
      f: { any: { over: 1 } },
    }
    const test = readArguments(given, 'p')
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', '__proto__')
    const { json } = fc.letrec((tie) => ({
      json: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.jsonValue(),
        fc.webUrl(),
        fc.dictionary(name, tie('json')),
      ),
    }))
    fc.assert(
      fc.property(json, (input) => {
        const before = JSON.stringify(input)
        expect(['yes', 'no', 'unread']).toContain(test(input))
        expect(JSON.stringify(input)).toBe(before)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a path within a folder', () => {
  test.each<[string, string, boolean | undefined]>([
    ['drafts/a.txt', 'drafts', true],
    ['drafts', 'drafts', true],
    ['./drafts//a', 'drafts/', true],
    ['drafts/../drafts/a', 'drafts', true],
    ['drafts/../x', 'drafts', false],
    ['drafts/a/../../x', 'drafts', false],
    ['../drafts/a', 'drafts', false],
    ['draftsman/a', 'drafts', false],
    ['/drafts/a', 'drafts', false],
    ['drafts\\..\\x', 'drafts', undefined],
    ['drafts/\u0000', 'drafts', undefined],
    ['', 'drafts', undefined],
    ['/srv/a/b', '/srv/a', true],
    ['/srv/a/../b', '/srv/a', false],
    ['/../srv/a', '/srv/a', false],
  ])('%j in %j: %s', (path, folder, expected) => {
    expect(isWithin(path, folder)).toBe(expected)
  })

  test('whatever the way, it is where the way ends', () => {
    const name = fc.constantFrom('drafts', 'a', '..', '.', '', 'x')
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 8 }), (names) => {
        const path = names.join('/')
        fc.pre(path !== '' && !path.startsWith('/'))
        // As a browser follows it; above the root it would stay at the root, so there is a root to spare.
        const { pathname } = new URL(`http://h/0/1/2/3/4/5/6/7/8/${path}`)
        const root = '/0/1/2/3/4/5/6/7/8'
        const inside = pathname === `${root}/drafts` || pathname.startsWith(`${root}/drafts/`)
        const single = !path.includes('//') // browsers keep empty names
        fc.pre(single)
        let depth = 0
        const above = names.some((one) => {
          depth += one === '..' ? -1 : one === '.' || one === '' ? 0 : 1
          return depth < 0
        })
        expect(isWithin(path, 'drafts')).toBe(inside && !above)
      }),
      { numRuns: 1_000 },
    )
  })
})
