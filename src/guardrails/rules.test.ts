import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type GuardRule, judgeText, readClientRules, readRules } from './rules.ts'
import { textOfInput } from './strings.ts'

const judge = async (rules: readonly GuardRule[], text: string) =>
  judgeText(await readRules(rules, 'input', 200), text)

/** Turns of the event loop until the work is done. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isDone = false
  const counting = (async () => {
    for (; !isDone; turns++) await setImmediate()
  })()
  await work()
  isDone = true
  await counting
  return turns
}

test("the server handles other work while it reads and searches a client's 50,000 characters of words", async () => {
  const deny = Array.from({ length: 249 }, (_, word) =>
    String.fromCharCode(
      0x4e00 + word,
      ...Array.from({ length: 199 }, (_, i) => 0x4e00 + ((i * word) % 0x5000)),
    ),
  )
  const judge = readClientRules({ allow: [], deny })
  expect(await turnsDuring(() => judge('hello'))).toBeGreaterThan(8)
  expect(await judge(`x${deny[3]}`)).toMatchObject({ rule: 'client.deny' })
})

test('a refusal names the word that comes first in the list of a client', async () => {
  const judge = readClientRules({ allow: [], deny: ['top secret', 'cats', 'top', 'dogs'] })
  const named = async (text: string) => (await judge(text))?.reason.split(': ')[1]
  expect(await named('dogs, top cats')).toBe('cats.')
  expect(await named('dogs and top secret')).toBe('top secret.')
  expect(await named('dogs')).toBe('dogs.')
  expect(await named('birds')).toBe(undefined)
})

describe('rules', () => {
  test('words are whole, whatever their case; where there are no spaces, they are found anywhere', async () => {
    const rules: GuardRule[] = [{ decision: 'deny', words: ['Dogs', '秘密', 'c++'] }]
    for (const text of ['my DOGS!', '这是秘密的', 'in C++, then']) {
      expect(await judge(rules, text)).toMatchObject({ rule: 'input.0' })
    }
    for (const text of ['hotdogs', 'dogsled', 'c+', ''])
      expect(await judge(rules, text)).toBe(undefined)
  })

  test.each([' ', '  ', '\n', '\r\n\t', '\u00A0', '\u202F \u3000', '\u2029', '\u0085', '\u200B'])(
    'words with %j between them are the same words',
    async (between) => {
      const rules: GuardRule[] = [{ decision: 'deny', words: [' acme  corp '] }]
      expect(await judge(rules, `of Acme${between}Corp.`)).toMatchObject({ rule: 'input.0' })
      expect(await judge(rules, `of Acme${between}Corps.`)).toBe(undefined)
      expect(await judge(rules, `of Acme-${between}Corp.`)).toBe(undefined)
    },
  )

  test('no white space keeps words busy', async () => {
    const rules: GuardRule[] = [{ decision: 'deny', words: ['a b c', 'a a', 'b b b'] }]
    const started = performance.now()
    for (const text of ['a', 'b', 'a b ', ''])
      await judge(rules, `${text}${' '.repeat(50_000)}`.repeat(4))
    expect(performance.now() - started).toBeLessThan(2_000)
  })

  test('one of those that allow must find something; one that denies wins', async () => {
    const rules: GuardRule[] = [
      { decision: 'allow', words: ['cats'] },
      { id: 'birds', decision: 'allow', pattern: /birds?/i },
      { id: 'no-dogs', decision: 'deny', words: ['dogs'], reason: 'No dogs here.' },
    ]
    expect(await judge(rules, 'a Bird')).toBe(undefined)
    expect(await judge(rules, 'fish')).toMatchObject({ rule: 'input.0' })
    expect(await judge(rules, 'cats and dogs')).toEqual({
      rule: 'no-dogs',
      reason: 'No dogs here.',
    })
  })

  test('no text keeps a pattern busy', async () => {
    const rules: GuardRule[] = [{ decision: 'deny', pattern: /^(a+)+$/ }]
    const started = performance.now()
    expect(await judge(rules, `${'a'.repeat(50_000)}!`)).toBe(undefined)
    expect(performance.now() - started).toBeLessThan(10_000)
  })

  test.each([
    [{ decision: 'deny', pattern: '(?=a)b' }, /guardrails\.input\.0\.pattern: /],
    [{ decision: 'deny' }, /give it words, a pattern or topics/],
    [{ decision: 'deny', words: ['a'], pattern: 'b' }, /one of them/],
    [{ decision: 'ask', words: ['a'] }, /write 'deny' or 'allow'/],
  ])('what can never work is refused at the start: %j', async (rule, problem) => {
    await expect(judge([rule as GuardRule], 'x')).rejects.toThrow(problem)
  })

  test('an input is looked through, whatever its shape', () => {
    const input = { path: 'a', list: [{ deep: 'dr\nop' }, 5, true, null], 'drop table': 1 }
    expect(textOfInput(input)).toBe('path\na\nlist\ndeep\ndr\nop\n5\ntrue\ndrop table\n1')
  })
})
