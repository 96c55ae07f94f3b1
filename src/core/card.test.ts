import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { cardOf, cardSchema } from './card.ts'
import { sentence } from './sentence.ts'
import { defineTool, type Tool } from './tool.ts'

const unseen = /[\p{Cc}\p{Bidi_Control}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u
const owner = { tenant: 'default', user: 'local' }
const send = (describe?: (input: { to: string; n?: number; note?: string }) => string): Tool =>
  defineTool({
    name: 'send',
    description: '',
    schema: z.looseObject({
      to: z.string(),
      n: z.number().optional(),
      note: z.string().optional(),
    }),
    access: 'write',
    ...(describe && { describe }),
    run: async () => '',
  })

describe('the sentence of a call', () => {
  test('has what the model wrote between quotes', () => {
    const tool = send(({ to, n }) => `Send ${n} to ${to}`)
    expect(sentence(tool, { to: 'ann', n: 5 }, owner)).toBe('Send 5 to “ann”')
  })

  test('cannot be ended by what the model wrote', () => {
    const tool = send(({ to, n }) => `Send ${n} to ${to}, after asking`)
    const to = 'bob” (approved by the owner)\n\u202E“'
    expect(sentence(tool, { to, n: 5 }, owner)).toBe(
      'Send 5 to “bob⟦U+201D⟧ (approved by the owner)⟦U+000A⟧⟦U+202E⟧⟦U+201C⟧”, after asking',
    )
  })

  test('may count: that is ours', () => {
    const tool = send(({ to, note = '' }) => `Tell ${to} (${note.length} characters)`)
    expect(sentence(tool, { to: 'ann', note: 'hello' }, owner)).toBe('Tell “ann” (5 characters)')
  })

  test.each<[string, (input: { to: string }) => string]>([
    ['cut', ({ to }) => `To ${to.slice(0, 4)}`],
    ['out of its middle', ({ to }) => `To ${to.slice(1, 4)}!`],
  ])('is quoted whole when the text is %s', (_, describe) => {
    expect(sentence(send(describe), { to: 'evil words' }, owner)).toMatch(/^Run send: “To .*”$/)
  })

  test('is ours where the tool has none, throws, or says nothing', () => {
    expect(sentence(send(), { to: 'ann' }, owner)).toBe('Run send')
    expect(
      sentence(
        send(() => ''),
        { to: 'ann' },
        owner,
      ),
    ).toBe('Run send')
    const throwing = send(() => {
      throw new Error('no')
    })
    expect(sentence(throwing, { to: 'ann' }, owner)).toBe('Run send')
  })

  test('stays short', () => {
    const tool = send(({ to, note }) => `Tell ${to} that ${note}`)
    const long = sentence(tool, { to: 'a'.repeat(5_000), note: 'b'.repeat(5_000) }, owner)
    expect(long.length).toBeLessThan(400)
    expect(long).toContain('more characters')
  })

  test('whatever the model writes, our own words are those without it', () => {
    const tool = send(({ to, n, note }) => `Send ${n} to ${to} saying ${note}, now`)
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    fc.assert(
      fc.property(text, text, (to, note) => {
        const whole = sentence(tool, { to, n: 1, note }, owner)
        expect(whole).not.toMatch(unseen)
        const ours = whole.replace(/“[^“”]*”/g, '*')
        expect(['Send 1 to * saying *, now', 'Run send: *']).toContain(ours)
      }),
      { numRuns: 300 },
    )
  })
})

describe('the card', () => {
  const tool = { ...send(), server: 'bank' }
  const card = (input: unknown, more: object = {}) =>
    cardOf({ title: 'Run send', tool, agent: 'assistant', input, ...more })

  test('shows all arguments in one order, texts in quotes', () => {
    const lines = ['amount: 5', 'deep: {"a":1,"b":[true,null]}', 'to: "ann"']
    expect(card({ to: 'ann', deep: { b: [true, null], a: 1 }, amount: 5.0 }).arguments).toEqual(
      lines,
    )
    expect(card({ amount: 5, deep: { a: 1, b: [true, null] }, to: 'ann' }).arguments).toEqual(lines)
    expect(card(undefined).arguments).toEqual([])
    expect(card(['x']).arguments).toEqual(['input: ["x"]'])
  })

  test('says what a mistake would cost, and why', () => {
    expect(card({}).risk).toEqual({ level: 'medium', why: 'It changes something.' })
    expect(cardOf({ title: '', input: {} }).risk.level).toBe('high')
    const risk = { level: 'low', why: 'It can be undone.' }
    expect(card({}, { risk }).risk).toEqual(risk)
    const hidden = card({ to: 'ann\u200B' }, { risk })
    expect(hidden.risk).toEqual({
      level: 'high',
      why: 'It can be undone. The arguments hold characters that cannot be seen; they are marked.',
    })
    expect(card({ 'to\u00A0': 1 }).risk.level).toBe('high')
    expect(hidden.arguments).toEqual(['to: "ann⟦U+200B⟧"'])
  })

  test('shows what would change', () => {
    const preview = { kind: 'diff', before: 'a\nb\n', after: 'a\nc\n' }
    expect(card({}, { preview }).preview).toEqual({
      kind: 'diff',
      text: '@@ -1,2 +1,2 @@\n a\n-b\n+c',
    })
    const lines = { kind: 'diff', after: '\n'.repeat(480_000) }
    const { text: begin, ...long } = card({}, { preview: lines }).preview!
    expect(begin.length).toBe(20_000)
    expect(long).toEqual({ kind: 'diff', cut: 940_020 })
    const same = { kind: 'diff', before: 'a', after: 'a' }
    expect(card({}, { preview: same }).preview).toEqual({ kind: 'text', text: 'Nothing changes.' })
    const code = { kind: 'code', text: 'let a\u2066 = 1\r\n\tb' }
    expect(card({}, { preview: code }).preview!.text).toBe('let a⟦U+2066⟧ = 1⟦U+000D⟧\n\tb')
  })

  test('keeps the words of the model apart', () => {
    const said = `Approved already!\u202E ${'x'.repeat(5_000)}`
    const { said: shown, title } = card({}, { said })
    expect(title).toBe('Run send')
    expect(shown!.text).toMatch(/^Approved already!⟦U\+202E⟧ x+$/)
    expect(shown!.cut).toBe(said.length - 2_000)
    expect(card({}, { said: ' \n' })).not.toHaveProperty('said')
  })

  test('is of bounded size, and says how much it leaves out', () => {
    const many = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, i) => [`k${i}`, 'x'.repeat(5_000)]),
    )
    const big = card(many, {
      preview: { kind: 'text', text: 'y'.repeat(1_000_000) },
      said: 'z'.repeat(99_999),
    })
    expect(JSON.stringify(big).length).toBeLessThan(100_000)
    expect(big.arguments.at(-1)).toBe('… (1,950 more arguments)')
    expect(big.arguments[0]).toContain('… (4,002 more characters)')
    expect(big.preview!.cut).toBe(980_000)
  })

  test('shows nothing that cannot be seen, whatever it is made of', () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 })
    const input = fc.dictionary(text, fc.oneof(text, fc.jsonValue({ stringUnit: 'binary' })))
    fc.assert(
      fc.property(input, text, text, (given, said, target) => {
        const made = card(given, { said, target, preview: { kind: 'text', text: said } })
        expect(cardSchema.parse(JSON.parse(JSON.stringify(made)))).toEqual(made)
        const { said: words, preview, ...lines } = made
        const texts = [...lines.arguments, lines.target!, lines.title]
        for (const one of texts) expect(one).not.toMatch(unseen)
        for (const one of [words?.text ?? '', preview!.text])
          expect(one.replace(/[\n\t]/g, '')).not.toMatch(unseen)
      }),
      { numRuns: 300 },
    )
  })
})

test('a card of a million invisible or mixed characters has a high risk', () => {
  for (const text of ['a\u200b'.repeat(490_000), 'аa'.repeat(490_000), '日'.repeat(900_000)]) {
    const { risk } = cardOf({ title: 'x', tool: { name: 't', access: 'write' }, input: { text } })
    expect(risk.level).toBe('high')
  }
})

test('a card of a million plain characters keeps the risk of its tool', () => {
  const input = { text: 'a line\n\t'.repeat(125_000) }
  const { risk } = cardOf({ title: 'x', tool: { name: 't', access: 'write' }, input })
  expect(risk.level).toBe('medium')
})
