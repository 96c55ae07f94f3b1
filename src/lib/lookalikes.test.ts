import { describe, expect, test } from 'vitest'
import { lookalikes } from './lookalikes.ts'

const found = (text: string) => lookalikes(text).map(({ letter }) => letter)

describe('lookalikes', () => {
  test.each([
    ['a Cyrillic а in a domain', 'p\u0430ypal.com', ['\u0430']],
    ['a Cyrillic о in a path', 'notes/t\u043edo.txt', ['\u043e']],
    [
      'a Cyrillic word that reads as Latin, in a domain',
      '\u0430\u0440\u0440\u04cf\u0435.com',
      [...'\u0430\u0440\u0440\u04cf\u0435'],
    ],
    [
      'a Cyrillic name that reads as Latin, in a path',
      'data/\u0441\u043e\u0440.txt',
      [...'\u0441\u043e\u0440'],
    ],
    ['a Latin letter in a Russian word', '\u041f\u0440\u0438\u0432e\u0442', ['e']],
    ['a Greek omicron', 'g\u03bfogle', ['\u03bf']],
    ['a Cherokee letter', '\u13a0dmin', ['\u13a0']],
    ['a full-width letter', '\uff50aypal', ['\uff50']],
    ['a mathematical letter', 'pay\u{1d429}al', ['\u{1d429}']],
    ['a Roman numeral', 'paypa\u217c', ['\u217c']],
    ['a phonetic letter', 'p\u0251ypal', ['\u0251']],
    ['a small capital', 'micro\u1d0dsoft', ['\u1d0d']],
    ['a sign like a slash in a path', 'drafts\u2215secret.txt', ['\u2215']],
    ['signs like slashes in an address', 'https:\uff0f\uff0fa.com', ['\uff0f', '\uff0f']],
    ['a sign like a point, and a letter after it', 'a\u2024p\u0430y', ['\u2024', '\u0430']],
    ['a sign like an at', 'ann\uff20example.com', ['\uff20']],
    ['a letter behind a zero-width space', 'p\u200b\u0430ypal', ['\u0430']],
    ['a letter with a combining mark', 'p\u0430\u0301ypal', ['\u0430']],
    ...[...'ɢɪɴʀʏʙʜʟ'].map((letter): [string, string, string[]] => [
      `the small capital ${letter}`,
      `goo${letter}le.com`,
      [letter],
    ]),
    ['a small full stop', 'paypal\uFE52com', ['\uFE52']],
    ['a small colon', 'https\uFE55//a.com', ['\uFE55']],
    ['an ideographic full stop in an address', 'https://paypal\u3002com/a', ['\u3002']],
    ['an ideographic full stop in an address behind Chinese', '请打开paypal\u3002com', ['\u3002']],
    ['a hyphen in an address', 'pay\u2010pal.com and well\u2010known', ['\u2010']],
    ['signs like backslashes', 'C:\uFF3CUsers\u29F5a', ['\uFF3C', '\u29F5']],
    ['a letter in a circle', 'paypa\u24DB.com', ['\u24DB']],
    ['a letter in a square', '\u{1F171}ank.com', ['\u{1F171}']],
    ['a Cyrillic word with a near twin, in a domain', 'кеу.com', [...'кеу']],
    ['a dotless i in a domain', 'paypa\u0131.com', ['\u0131']],
    ['a dotless i with a dot of its own', 'g\u0131\u0307thub.com', ['\u0131']],
    ['a dotless i in a path', 'notes/f\u0131le', ['\u0131']],
    ['a dotless i behind an at', 'ann@g\u0131thub', ['\u0131']],
    ['a dotless i behind a sign like a point', 'paypa\u0131l\uFF0Ecom', ['\u0131', '\uFF0E']],
    ['a dotless i alone in a domain', '\u0131.com', ['\u0131']],
    ...[...'ɑɡɩɪǀǁǂǃȷĸƅƿƽɣʋɯỿ'].map((letter): [string, string, string[]] => [
      `the Latin letter ${letter} in a domain`,
      `paypa${letter}.com`,
      [letter],
    ]),
    ['Cyrillic with Greek', '\u0416\u0443\u03bd\u0430\u043b', ['\u03bd']],
  ])('finds %s', (_, text, letters) => {
    expect(found(text)).toEqual(letters)
  })

  test.each([
    'plain text, notes/today.txt, https://example.com/a?b=c',
    'ñandú, Zürich, Łódź, ılık, Ærø, đường',
    'Kapı açık. Sıcak çay 5.5 lira (ılık)',
    'ışık.txt, çayır/şarkı',
    'the ǃKung and ǀXam people, Eʋegbe, ɣeti',
    'Привет, как дела? Это а, о и с.',
    'отчёт.pdf',
    'документы/notes.txt',
    'Κύριε, ελέησον',
    'Δt = 5 µs, 10 kΩ, λx, πr²',
    '日本語のAPIとＡＢＣ',
    '한국어 GPT모델',
    'בAPI وAPI ภาษาAPI',
    'Товар стоит 5 USD (скидка 10 %), код ABC-12',
    '1º, 2ª, ½, №5',
    '1⁄2 cup, 2026／11／18, 12：30, モデル：GPT、値段／USD',
    '我们支持React。Vue也可以。日本語。です。',
    'a well\u2010known co\u2011op, see below',
    'Тест.txt, книга.pdf',
    'Blood type 🅰️ or 🅱️, Ⓜ️, 🇩🇪, ⓐ first',
    '👩‍💻 ❤️',
    '\u202E\u200B\uD800',
  ])('finds none in ordinary text: %s', (text) => {
    expect(found(text)).toEqual([])
  })

  test('gives the index of each letter in the text', () => {
    const text = '😀 see p\u0430yp\u0430l and g\u03bfogle'
    for (const { at, letter } of lookalikes(text)) expect(text.startsWith(letter, at)).toBe(true)
    expect(lookalikes(text).map(({ at }) => at)).toEqual([8, 11, 19])
  })

  test('reads long texts of any kind in linear work', () => {
    const texts = [
      '\u0430'.repeat(200_000),
      'a.'.repeat(100_000),
      '\u0430.a'.repeat(60_000),
      '\u4e00'.repeat(200_000),
      `${'a.'.repeat(100_000)} \u0430`,
      'a\u2010'.repeat(100_000),
      'a\u3002'.repeat(100_000),
      '\u2010a.'.repeat(60_000),
    ]
    for (const text of texts) expect(lookalikes(text).length).toBeLessThanOrEqual(text.length)
  })
})
