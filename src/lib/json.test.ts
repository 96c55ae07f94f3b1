import { expect, test } from 'vitest'
import { isJson, lossIn } from './json.ts'

class List extends Array {}
class Point {
  x = 1
}
const loop: Record<string, unknown> = {}
loop.self = loop
const getter = {
  get a() {
    throw new Error('no')
  },
}
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

test.each<[string, unknown, string]>([
  ['a Set', { to: new Set(['bob']) }, 'it.to is a Set'],
  ['a Map in a list', { items: [{ how: new Map([['a', 1]]) }] }, 'it.items[0].how is a Map'],
  ['the value itself', new Map(), 'it is a Map'],
  ['a value that contains itself', loop, 'it.self contains itself'],
])('a value is lost in JSON: %s', (_, value, loss) => {
  expect(lossIn(value, 'it')).toBe(loss)
  expect(lossIn(value, 'it', { strict: true })).toBe(loss)
})

test.each<[string, unknown, string]>([
  ['a class instance', { at: new Point() }, 'it.at is an instance of Point'],
  ['a function', { run: () => 1 }, 'it.run is a function'],
  ['NaN', { amount: Number.NaN }, 'it.amount is NaN'],
  ['a BigInt', [1n], 'it[0] is a BigInt'],
  ['undefined in a list', [undefined], 'it[0] is undefined'],
  ['a getter that throws', getter, 'it has a part that cannot be read'],
])('only a strict check finds what JSON changes or hides: %s', (_, value, loss) => {
  expect(lossIn(value, 'it')).toBeUndefined()
  expect(lossIn(value, 'it', { strict: true })).toContain(loss)
})

test('JSON loses nothing of plain data and of values with toJSON', () => {
  const hidden = { toJSON: () => ({ amount: 5 }) }
  const value = { a: [1, -0, 'b', null, { c: undefined }], at: new Date(0), hidden }
  expect(lossIn(value, 'it', { strict: true })).toBeUndefined()
  expect(lossIn({ toJSON: () => new Set() }, 'it', { strict: true })).toBe('it is a Set')
})
