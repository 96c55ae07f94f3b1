import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hides, mixes, shown, shownLine, visible } from './visible.ts'

/** Undoes it: possible only if no two texts are shown alike. */
const back = (text: string) =>
  text.replace(/⟦U\+([0-9A-F]+)⟧/g, (_, hex: string) =>
    String.fromCodePoint(Number.parseInt(hex, 16)),
  )

const any = fc.string({
  unit: fc.oneof(
    fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)),
    fc.constantFrom(
      '\u202E',
      '\u200B',
      '\u00A0',
      '⟦',
      '⟧',
      'U+202E',
      '👩‍💻',
      '❤️',
      '\uFE0F',
      '\n',
      'a',
    ),
  ),
})

describe('visible text', () => {
  test.each([
    ['direction', 'invoice\u202Efdp.exe', 'invoice⟦U+202E⟧fdp.exe'],
    ['zero width', 'pay\u200Bpal', 'pay⟦U+200B⟧pal'],
    ['spaces', 'a\u00A0b\u3000c\u2007d', 'a⟦U+00A0⟧b⟦U+3000⟧c⟦U+2007⟧d'],
    ['fillers', '\u3164\u2800\u115F\u034F', '⟦U+3164⟧⟦U+2800⟧⟦U+115F⟧⟦U+034F⟧'],
    ['tags', 'x\u{E0041}', 'x⟦U+E0041⟧'],
    ['control', 'a\u0000\u001B[2Jb\r\nc', 'a⟦U+0000⟧⟦U+001B⟧[2Jb⟦U+000D⟧⟦U+000A⟧c'],
    ['half a character', 'a\uD800', 'a⟦U+D800⟧'],
    ['our own brackets', '⟦U+202E⟧', '⟦U+27E6⟧U+202E⟦U+27E7⟧'],
    ['fillers inside a word', 'a\u115Fb', 'a⟦U+115F⟧b'],
    ['selectors without an emoji', 'a\uFE0F\u200D', 'a⟦U+FE0F⟧⟦U+200D⟧'],
  ])('writes out %s', (_, given, seen) => {
    expect(visible(given)).toBe(seen)
    expect(hides(given)).toBe(true)
  })

  test.each([
    ['p\u0430ypal.com', 'p⟦U+0430⟧ypal.com'],
    ['drafts/t\u043Edo.txt', 'drafts/t⟦U+043E⟧do.txt'],
    ['pay\u{1D429}al ❤️ ok', 'pay⟦U+1D429⟧al ❤️ ok'],
    ['p\u200B\u0430ypal', 'p⟦U+200B⟧⟦U+0430⟧ypal'],
  ])('marks letters that look like those of another alphabet: %s', (given, seen) => {
    expect(visible(given)).toBe(seen)
    expect(mixes(given)).toBe(true)
  })

  test.each([
    'plain',
    'Привет, как дела?',
    'отчёт.pdf',
    'ñandú — “quoted”',
    '日本語',
    'שלום',
    '👩‍💻 ❤️ 👍🏽',
  ])('leaves what everybody sees: %s', (text) => {
    expect(visible(text)).toBe(text)
    expect(hides(text)).toBe(false)
    expect(mixes(text)).toBe(false)
  })

  test('shows no two texts alike, and nothing hidden', () => {
    fc.assert(
      fc.property(any, (text) => {
        const seen = visible(text)
        expect(back(seen)).toBe(text)
        expect(seen).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}]/u)
        const lines = visible(text, { lines: true })
        expect(back(lines)).toBe(text)
        expect(lines.replace(/[\n\t]/g, '')).not.toMatch(
          /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}]/u,
        )
      }),
      { numRuns: 2_000 },
    )
  })

  test('cuts with a count, and never through a character or a mark', () => {
    expect(shown('abcdef', 4)).toEqual({ text: 'abcd', cut: 2 })
    expect(shown('abc😀def', 4)).toEqual({ text: 'abc', cut: 5 })
    expect(shown('\u202E'.repeat(5), 2)).toEqual({ text: '⟦U+202E⟧⟦U+202E⟧', cut: 3 })
    expect(shown('abc', 3)).toEqual({ text: 'abc' })
    expect(shownLine('x'.repeat(5_000), 10)).toBe('xxxxxxxxxx… (4,990 more characters)')
  })
})
