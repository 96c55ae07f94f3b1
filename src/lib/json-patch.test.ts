import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonical } from './canonical.ts'
import { applyPatch, createPatch, type Operation, sameJson } from './json-patch.ts'

const json = fc.jsonValue({ maxDepth: 4 })

test('a patch turns the first value into the second and leaves the first unchanged', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const copy = structuredClone(before)
      const patch = createPatch(before, after)
      fc.pre(patch !== undefined) // a key named like a prototype
      const sent = JSON.parse(JSON.stringify(patch)) as Operation[]
      expect(canonical(applyPatch(before, sent))).toEqual(canonical(after))
      expect(before).toEqual(copy)
    }),
    { numRuns: 500 },
  )
})

test('sameJson compares values by their JSON, whatever the order of their keys', () => {
  fc.assert(fc.property(json, (value) => sameJson(value, JSON.parse(JSON.stringify(value)))))
  expect(sameJson({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true)
  expect(sameJson({ a: undefined }, {})).toBe(true)
  expect(sameJson([1, 2], [1, 3])).toBe(false)
  expect(sameJson({ a: 1 }, { toString: 1 })).toBe(false)
  expect(sameJson(new Date(5), new Date(5).toJSON())).toBe(true)
})

describe('createPatch', () => {
  test('names only the fields that changed', () => {
    const before = { a: 1, list: ['x', 'y'], 'o/~': { deep: true } }
    const after = { a: 2, list: ['x', 'y', 'z'], 'o/~': { deep: false }, more: null }
    expect(createPatch(before, after)).toEqual([
      { op: 'replace', path: '/a', value: 2 },
      { op: 'add', path: '/list/-', value: 'z' },
      { op: 'replace', path: '/o~1~0/deep', value: false },
      { op: 'add', path: '/more', value: null },
    ])
  })

  test('replaces an array of which most places changed', () => {
    const list = (from: number) => Array.from({ length: 1_000 }, (_, i) => from + i)
    expect(createPatch({ list: list(0) }, { list: list(5_000) })).toEqual([
      { op: 'replace', path: '/list', value: list(5_000) },
    ])
  })

  test('compares arrays of 50,000 different values in linear time', { timeout: 20_000 }, () => {
    const list = (from: number) => Array.from({ length: 50_000 }, (_, i) => ({ id: from + i }))
    expect(createPatch({ list: list(0) }, { list: list(50_000) })).toHaveLength(1)
  })

  test('gives up when the values or the patch are too large', () => {
    const wide = (value: number) =>
      Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, value]))
    expect(createPatch(wide(1), wide(2))).toBeUndefined()
    const same = { list: new Array(200_000).fill(1) }
    expect(createPatch(same, structuredClone(same))).toBeUndefined()
  })

  test('gives up when a path would name a prototype', () => {
    expect(createPatch({ constructor: 1 }, { constructor: 2 })).toBeUndefined()
  })

  test('replaces values below 64 levels whole', () => {
    const deep = (levels: number, leaf: number) => {
      let value: unknown = leaf
      for (let i = 0; i < levels; i++) value = { a: value }
      return value
    }
    const [operation] = createPatch(deep(50_000, 1), deep(50_000, 2))!
    expect(operation!.path).toBe('/a'.repeat(64))
  })
})

describe('applyPatch', () => {
  test('supports every operation of RFC 6902', () => {
    const patch: Operation[] = [
      { op: 'test', path: '/list', value: [1, 2] },
      { op: 'add', path: '/list/0', value: 0 },
      { op: 'copy', from: '/list', path: '/copy' },
      { op: 'move', from: '/list/2', path: '/list/0' },
      { op: 'remove', path: '/gone' },
      { op: 'replace', path: '/name', value: 'new' },
    ]
    const value = { list: [1, 2], gone: true, name: 'old' }
    expect(applyPatch(value, patch)).toEqual({ list: [2, 0, 1], copy: [0, 1, 2], name: 'new' })
    expect(value).toEqual({ list: [1, 2], gone: true, name: 'old' })
  })

  // biome-ignore format: a table
  test.each<[string, Operation[]]>([
    ['a test that fails', [{ op: 'test', path: '/a', value: 2 }]],
    ['a path that leads nowhere', [{ op: 'replace', path: '/b/c', value: 2 }]],
    ['removing a missing field', [{ op: 'remove', path: '/b' }]],
    ['removing the place after the last', [{ op: 'remove', path: '/list/-' }]],
    ['a place beyond the array', [{ op: 'add', path: '/list/9', value: 2 }]],
    ['a move into itself', [{ op: 'move', from: '/o', path: '/o/p' }]],
    ['a prototype', [{ op: 'add', path: '/__proto__/admin', value: true }]],
    ['a constructor', [{ op: 'add', path: '/constructor/prototype/admin', value: true }]],
    ['an unknown operation', [{ op: 'merge', path: '/a', value: 1 } as unknown as Operation]],
    ['too many operations', new Array(10_001).fill({ op: 'add', path: '/a', value: 1 })],
  ])('throws for %s', (_, patch) => {
    expect(() => applyPatch({ a: 1, list: [1], o: {} }, patch)).toThrow()
  })

  test('throws for copies that double a value again and again', () => {
    const copies = Array.from({ length: 40 }, (_, i) => [
      { op: 'copy' as const, from: '/a', path: `/b/${i % 2}` },
      { op: 'copy' as const, from: '/b', path: '/a' },
    ])
    const patch = copies.flat()
    expect(() => applyPatch({ a: { x: 1 }, b: {} }, patch)).toThrow('copies too much')
  })
})
