import { describe, expect, test } from 'vitest'
import { multipart, type Payload } from './multipart.ts'
import { tell } from './telling.ts'

/** Frames as the contract has them. */
const framed = (payloads: readonly unknown[], end = '--\r\n') =>
  `\r\n---${payloads.map((one) => `${part(JSON.stringify(one))}\r\n---`).join('')}${end}`
const part = (text: string, length = Buffer.byteLength(text)) =>
  `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n${text}`

const G = 'generateCopilotResponse'
const at = '2026-11-15T19:55:24.462Z'
const first = { data: { [G]: { threadId: 't', messages: [], metaEvents: [] } }, hasNext: true }
const message = { __typename: 'TextMessageOutput', id: 'm', createdAt: at, content: [] }
const said = { ...message, role: 'assistant', parentMessageId: null }
const item = { items: [said], path: [G, 'messages', 0] }
const piece = (i: number, ...items: unknown[]) => ({
  items,
  path: [G, 'messages', 0, 'content', i],
})
const status = (code = 'Success', more = {}) => ({
  data: { status: { code, ...more } },
  path: [G, 'messages', 0],
})
const at0 = [G, 'messages', 0]
const paint = {
  ...{ __typename: 'ActionExecutionMessageOutput', id: 'c', createdAt: at, name: 'paint' },
  ...{ arguments: [], parentMessageId: null },
}
const ended = { data: { status: { code: 'Success' } }, path: [G] }
const next = (...incremental: unknown[]) => ({ incremental, hasNext: true })
const last = { hasNext: false }

const good = [first, next(item, piece(0, 'Wö', 'rld')), next(status()), next(ended), last]

describe('the judge of bytes', () => {
  const decode = (text: string, cuts: number[] = []) => {
    const decoder = multipart()
    const bytes = Buffer.from(text)
    let from = 0
    for (const cut of [...cuts, bytes.length]) {
      decoder.push(bytes.subarray(from, cut))
      from = cut
    }
    decoder.end()
    return decoder
  }

  test('reads what is right, whole or in any two pieces', () => {
    const text = framed(good)
    expect(decode(text)).toMatchObject({ wrong: [], payloads: good })
    const late = 'a part was sent without the delimiter that closes it'
    for (let cut = 0; cut < Buffer.byteLength(text); cut++) {
      const { wrong, payloads } = decode(text, [cut])
      expect(payloads).toEqual(good)
      expect(wrong.filter((one) => one !== late)).toEqual([])
    }
  })

  test.for([
    ['line feeds alone', framed(good).replaceAll('\r\n', '\n')],
    ['no delimiter at the front', framed(good).slice(2)],
    ['a length in characters', `\r\n---${part('{"hasNext":false,"ö":1}', 23)}\r\n-----\r\n`],
    ['a length that is too long', `\r\n---${part('{"hasNext":false}', 19)}\r\n-----\r\n`],
    ['no headers', '\r\n---\r\n\r\n{"hasNext":false}\r\n-----\r\n'],
    ['no JSON', `\r\n---${part('{nope')}\r\n-----\r\n`],
    ['a line break in the JSON', `\r\n---${part('{\r\n"hasNext":false}')}\r\n-----\r\n`],
    ['no last payload', framed(good.slice(0, -1))],
    ['no end', framed(good, '')],
    ['another part after the end', framed([...good, last])],
    ['bytes after the end', framed(good, '--\r\n\r\n')],
  ] as const)('finds %s', ([, text]) => {
    expect(decode(text).wrong).not.toEqual([])
  })

  test('finds a delimiter that comes with the next part', () => {
    const text = framed(good)
    const end = text.indexOf('\r\n---', 5)
    expect(decode(text, [Buffer.byteLength(text.slice(0, end))]).wrong).toHaveLength(1)
  })
})

describe('the judge of what is said', () => {
  const judged = (payloads: readonly unknown[]) => tell(payloads as Payload[])

  test('has nothing against what is right', () => {
    const { wrong, whole, response } = judged(good)
    expect(wrong).toEqual([])
    expect(whole).toBe(true)
    expect(response.messages[0].content).toEqual(['Wö', 'rld'])
    const kept = [first, { hasNext: true }, ...good.slice(1)]
    expect(judged(kept).wrong).toEqual([])
    const named = next(
      { ...item, items: [paint] },
      { items: ['{'], path: [...at0, 'arguments', 0] },
    )
    const nameless = { data: { name: '', status: { code: 'Failed', reason: 'no' } }, path: at0 }
    const back = next({ items: [''], path: [...at0, 'arguments', 0] }, nameless)
    expect(judged([first, named, back, next(ended), last]).wrong).toEqual([])
    const taken = next(piece(0, '', ''), status('Failed', { reason: 'taken back' }))
    expect(judged([first, good[1], taken, next(ended), last]).wrong).toEqual([])
  })

  test.for([
    ['content before its message', [first, next(piece(0, 'a'))]],
    ['a gap', [first, next(item, piece(1, 'a'))]],
    ['a gap between messages', [first, next({ ...item, path: [G, 'messages', 1] })]],
    ['a second start', [first, next(item, piece(0, 'a'), piece(0, 'b'))]],
    ['the same message twice', [first, next(item, { ...item, path: [G, 'messages', 1] })]],
    ['content after the status', [first, next(item, status(), piece(0, 'a'))]],
    ['two statuses', [first, next(item, status(), status())]],
    ['a message without status', [first, next(item, ended), last]],
    ['a message that is pending', [first, next(item, status('Pending'))]],
    ['a response without status', [first, next(item, status()), last]],
    ['a message after the response', [first, next(ended, item)]],
    ['something after the end', [first, next(ended), last, next(item)]],
    ['taken back in part', [first, next(item, piece(0, 'a', 'b'), piece(0, ''), status('Failed'))]],
    ['taken back and good', [first, next(item, piece(0, 'a'), piece(0, ''), status())]],
    [
      'a call taken back that has its name',
      [
        ...[first, next({ ...item, items: [paint] })],
        next({ items: ['{'], path: [...at0, 'arguments', 0] }),
        next({ items: [''], path: [...at0, 'arguments', 0] }, status('Failed', { reason: 'no' })),
      ],
    ],
    ['failed for no reason', [first, next(item, status('Failed'))]],
    ['a response that is there at once', [{ ...first, hasNext: false }]],
    ['an error in an entry', [first, next({ ...item, errors: [{ message: 'no' }] })]],
    ['entries by id', [first, { pending: [], ...next(item) }]],
    ['a missing field', [first, next({ ...item, items: [message] })]],
    ['an unknown type', [first, next({ ...item, items: [{ ...said, __typename: 'Song' }] })]],
    ['a date that is none', [first, next({ ...item, items: [{ ...said, createdAt: 'now' }] })]],
    [
      'a code that React cannot take',
      [first, next({ data: { status: failed('INTERNAL_SERVER_ERROR') }, path: [G] })],
    ],
  ] as const)('finds %s', ([, payloads]) => {
    expect(judged(payloads).wrong).not.toEqual([])
  })
})

function failed(code: string) {
  const details = { description: 'no', originalError: { code } }
  return { code: 'Failed', reason: 'UNKNOWN_ERROR', details }
}
