import { expect, test } from 'vitest'
import { isJson } from './json.ts'

class List extends Array {}
class Point {
  x = 1
}
const loop: Record<string, unknown> = {}
loop.self = loop
const holes: unknown[] = []
holes[2] = 1

test.each<[string, unknown]>([
  ['an object', { a: [1, 'b', null, true, { c: [] }] }],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
  ['an object with an own __proto__', JSON.parse('{"__proto__":1}')],
  ['an absent property', { a: undefined }],
])('JSON represents %s', (_, value) => expect(isJson(value)).toBe(true))

test.each<[string, unknown]>([
  ...Object.entries({
    ...{ Set: new Set([1]), Map: new Map([[1, 2]]), Date: new Date(0), URL: new URL('http://a') },
    ...{ BigInt: 1n, NaN: Number.NaN, Infinity: Infinity, '-0': -0, undefined, symbol: Symbol() },
    ...{ function: () => 1, 'class instance': new Point(), 'boxed text': Object('a') },
    ...{ bytes: new Uint8Array(1), RegExp: /a/, 'array subclass': List.of(1) },
    ...{ 'array with holes': holes, 'array with undefined': [undefined], loop },
    'array with a property': Object.assign([1], { a: 1 }),
    'symbol key': { [Symbol('a')]: 1 },
    'hidden property': Object.defineProperty({}, 'a', { value: 1 }),
    getter: {
      get a() {
        throw new Error('never called')
      },
    },
    toJSON: { toJSON: () => 1 },
  }),
])('JSON does not represent this value: %s', (_, value) => {
  expect(isJson(value)).toBe(false)
  expect(isJson({ list: [{ value }] }, { list: [{ value: 'sent' }] })).toBe(false)
})

test('a property that was sent and parsed to undefined is not represented', () => {
  expect(isJson({ a: undefined }, { a: 'x' })).toBe(false)
  expect(isJson({ a: [{ b: undefined }] }, { a: [{ b: 1 }] })).toBe(false)
  expect(isJson({ a: undefined }, {})).toBe(true)
})
