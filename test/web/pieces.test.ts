import { describe, expect, test } from 'vitest'
import { blocksOf } from '../../web/components/chat/blocks.ts'
import { hiddenIn, lookalikesIn } from '../../web/lib/hidden.ts'
import { parted, slim } from '../../web/lib/link/messages.ts'
import { duration } from '../../web/lib/words.ts'

describe('markdown in blocks', () => {
  test.each([
    ['paragraphs', 'one\n\ntwo', ['one\n', 'two']],
    ['code with blank lines', '```js\na\n\nb\n```\n\nafter', ['```js\na\n\nb\n```\n', 'after']],
    ['code that is still being written', 'x\n\n```\na\n\nb', ['x\n', '```\na\n\nb']],
    ['a fence inside of a longer one', '````\n```\n\n```\n````', ['````\n```\n\n```\n````']],
    ['items of one list', '- a\n\n- b\n\n  more\n\nend', ['- a\n\n- b\n\n  more\n', 'end']],
    ['a link and what it means', 'a [b]\n\nc\n\n[b]: /d', ['a [b]\n\nc\n\n[b]: /d']],
    ['a footnote', 'a[^1]\n\n[^1]: b\n\nc', ['a[^1]\n\n[^1]: b\n\nc']],
    ['nothing', '\n\n', []],
  ])('%s', (_name, text, blocks) => {
    expect(blocksOf(text)).toEqual(blocks)
  })

  test('what is written later leaves earlier blocks as they are', () => {
    const text = '# Title\n\nSome words.\n\n- a\n- b\n\n```js\nlet a\n\nlet b\n```\n\nThe end.'
    let before: string[] = []
    for (let end = 1; end <= text.length; end++) {
      const now = blocksOf(text.slice(0, end))
      expect(now.slice(0, before.length - 1)).toEqual(before.slice(0, -1))
      before = now
    }
  })
})

describe('a long list of messages', () => {
  const messages = Array.from({ length: 200 }, (_, n) => ({
    id: `m${n}`,
    role: n % 4 === 0 ? ('user' as const) : ('assistant' as const),
    content: `words ${n}`,
  }))

  test('is held from the beginning of a turn on, and nothing of it is lost', () => {
    const { earlier, held } = parted(messages)
    expect(held[0]?.role).toBe('user')
    expect(held.length).toBeGreaterThanOrEqual(60)
    expect(held.length).toBeLessThan(70)
    expect([...earlier, ...held]).toEqual(messages)
  })

  test('is sent with all ids, and the words of what is new only', () => {
    const { earlier, held } = parted(messages)
    const body = JSON.stringify({ threadId: 't', messages: held })
    const fresh = new Set(['m196'])
    const sent = JSON.parse(slim(body, earlier, { fresh, left: false })) as {
      messages: object[]
    }
    expect(sent.messages).toHaveLength(200)
    expect(sent.messages[196]).toEqual(messages[196])
    expect(sent.messages[3]).toEqual({ id: 'm3', role: 'assistant', content: '' })
    expect(JSON.stringify(sent)).not.toContain('words 197')
  })

  test('does not name the last answer where it may not be whole', () => {
    const held = [...messages.slice(190), { id: 'new', role: 'user', content: 'more' }]
    const body = JSON.stringify({ threadId: 't', messages: held })
    const sent = JSON.parse(slim(body, [], { fresh: new Set(['new']), left: true })) as {
      messages: { id: string }[]
    }
    expect(sent.messages.map(({ id }) => id)).toEqual([
      ...held.slice(0, 7).map(({ id }) => id), // up to what was asked
      'new',
    ])
  })
})

test('a duration is never a minute and sixty seconds', () => {
  const told = [850, 4_200, 59_960, 119_600, 125_000].map(duration)
  expect(told).toEqual(['850 ms', '4.2 s', '1 min 0 s', '2 min 0 s', '2 min 5 s'])
})

test('what a field hides is named, once each; what an emoji is made of is seen', () => {
  expect(hiddenIn('a\u202eb\u200b\u202e c\n\t')).toEqual(['U+202E', 'U+200B'])
  expect(hiddenIn('👩‍🚀 ❤️ ü')).toEqual([])
})

test('a field names letters that look like Latin ones', () => {
  expect(lookalikesIn('p\u0430yp\u0430l.com g\u03bfogle')).toEqual(['U+0430', 'U+03BF'])
  expect(lookalikesIn('paypa\u0131.com, ann@g\u01C0thub')).toEqual(['U+0131', 'U+01C0'])
  expect(lookalikesIn('Привет, ñandú 5 USD, λx, 日本API, ılık çay, ışık.txt')).toEqual([])
})
