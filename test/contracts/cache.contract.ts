import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Cache } from '../../src/core/store.ts'

export function cacheContract(name: string, open: () => Promise<Cache>): void {
  describe(`${name} cache`, () => {
    let cache: Cache

    beforeEach(async () => {
      cache = await open()
    })

    afterEach(async () => {
      await cache.close()
    })

    test('keeps what it is given, for a while', async () => {
      await cache.set('a', { agents: ['x'], n: 1 }, 800)
      expect(await cache.get('a')).toEqual({ agents: ['x'], n: 1 })
      await vi.waitFor(async () => expect(await cache.get('a')).toBeUndefined(), 5_000)
    })

    test('counts the time anew when it is set again', async () => {
      await cache.set('a', 1, 150)
      await new Promise((resolve) => setTimeout(resolve, 100))
      await cache.set('a', 2, 5_000)
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(await cache.get('a')).toBe(2)
    })

    test('knows nothing of what was never set, or was deleted', async () => {
      expect(await cache.get('never')).toBeUndefined()
      await cache.set('a', null, 5_000)
      expect(await cache.get('a')).toBeNull()
      await cache.delete('a')
      await cache.delete('a')
      expect(await cache.get('a')).toBeUndefined()
    })

    test('keeps keys apart, whatever they are', async () => {
      const keys = [
        'a',
        'A',
        '*',
        'a*',
        'a b',
        '__proto__',
        'ü',
        '\ud800',
        '\udfff',
        'x'.repeat(999),
      ]
      for (const key of keys) await cache.set(key, `of ${key}`, 5_000)
      for (const key of keys) expect(await cache.get(key)).toBe(`of ${key}`)
    })

    test('gives out copies', async () => {
      const value = { list: [1] }
      await cache.set('a', value, 5_000)
      value.list.push(2)
      const first = (await cache.get('a')) as typeof value
      first.list.push(3)
      expect(await cache.get('a')).toEqual({ list: [1] })
    })

    test('does not keep what JSON cannot hold', async () => {
      const circle: Record<string, unknown> = {}
      circle.self = circle
      for (const value of [circle, undefined, () => {}, 1n]) {
        await cache.set('a', 'before', 5_000)
        await cache.set('a', value, 5_000)
        expect(await cache.get('a')).toBeUndefined()
      }
    })
  })
}
