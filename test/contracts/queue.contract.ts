import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Queue } from '../../src/core/store.ts'

export interface OpenedQueues {
  /** Two servers; on a queue for a single one, the same. */
  servers: [Queue, Queue]
  dispose(): Promise<void>
}

const soon = { timeout: 10_000, interval: 2 }
export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** What core relies on, with any number of servers. */
export function queueContract(name: string, open: () => Promise<OpenedQueues>): void {
  describe(`${name} queue`, () => {
    let a: Queue
    let b: Queue
    let dispose: () => Promise<void>
    let stop: AbortController
    let served: Promise<void>[]

    beforeEach(async () => {
      const opened = await open()
      ;[a, b] = opened.servers
      dispose = opened.dispose
      stop = new AbortController()
      served = []
    })

    afterEach(async () => {
      stop.abort()
      await Promise.all(served)
      await dispose()
    })

    function serve(queue: Queue, worker: (threadId: string) => Promise<void>): void {
      served.push(queue.serve(worker, stop.signal))
    }

    test('looks at what is rung, whatever its id is', async () => {
      const ids = ['t', '*', 'a:b', '{t}', '12', 'ü', '\ud800', 'x'.repeat(2_000), '__proto__']
      const looks: string[] = []
      serve(a, async (threadId) => {
        looks.push(threadId)
      })
      for (const id of ids) b.ring(id)
      await vi.waitFor(() => expect([...looks].sort()).toEqual([...ids].sort()), soon)
    })

    test('a near ring is heard where it rings', async () => {
      const looks: string[] = []
      const looker = (name: string) => async (threadId: string) => {
        looks.push(`${threadId} by ${name}`)
      }
      serve(a, looker('a'))
      if (b !== a) serve(b, looker('b'))
      const name = b === a ? 'a' : 'b'
      for (let n = 0; n < 20; n++) b.ring(`t${n}`, true)
      const expected = Array.from({ length: 20 }, (_, n) => `t${n} by ${name}`)
      await vi.waitFor(() => expect([...looks].sort()).toEqual(expected.sort()), soon)
    })

    test('looks once for many rings, and again if it rings meanwhile', async () => {
      let looks = 0
      let finish = () => {}
      serve(a, async () => {
        looks++
        await new Promise<void>((resolve) => {
          finish = resolve
        })
      })
      for (let n = 0; n < 50; n++) a.ring('t')
      await vi.waitFor(() => expect(looks).toBe(1), soon)
      await sleep(50)
      a.ring('t')
      b.ring('t')
      await sleep(50)
      expect(looks).toBe(1)
      finish()
      await vi.waitFor(() => expect(looks).toBe(2), soon)
      finish()
      await sleep(50)
      expect(looks).toBeLessThanOrEqual(3)
      finish()
    })

    test('looks at other threads meanwhile', async () => {
      const looks: string[] = []
      let finish = () => {}
      serve(a, async (threadId) => {
        looks.push(threadId)
        if (threadId === 'slow')
          await new Promise<void>((resolve) => {
            finish = resolve
          })
      })
      a.ring('slow')
      await vi.waitFor(() => expect(looks).toEqual(['slow']), soon)
      for (let n = 0; n < 20; n++) a.ring(`t${n}`)
      await vi.waitFor(() => expect(looks).toHaveLength(21), soon)
      finish()
    })

    test('misses nothing that rings at any moment', async () => {
      let written = 0
      let seen = 0
      serve(a, async () => {
        const now = written
        await sleep(Math.random() * 3)
        seen = Math.max(seen, now)
      })
      for (let n = 0; n < 200; n++) {
        written++
        ;(n % 2 ? a : b).ring('t')
        await sleep(Math.random() * 4)
      }
      await vi.waitFor(() => expect(seen).toBe(200), soon)
    })

    test('rings at a time, and earlier if asked to', async () => {
      const looks: [string, number][] = []
      const start = Date.now()
      serve(a, async (threadId) => {
        looks.push([threadId, Date.now() - start])
      })
      a.ringAt('late', start + 1_000)
      a.ringAt('late', start + 400)
      a.ringAt('past', start - 1)
      await vi.waitFor(() => expect(looks.map(([id]) => id)).toContain('late'), soon)
      const at = looks.find(([id]) => id === 'late')![1]
      expect(at).toBeGreaterThanOrEqual(395)
      expect(at).toBeLessThan(950)
      expect(looks.map(([id]) => id)).toContain('past')
    })

    test('takes the same time for the same thread as one ring', async () => {
      const looks: string[] = []
      serve(a, async (threadId) => {
        looks.push(threadId)
      })
      const at = Date.now() + 300
      for (let n = 0; n < 30; n++) (n % 2 ? a : b).ringAt('t', at)
      await vi.waitFor(() => expect(looks).toHaveLength(1), soon)
      await sleep(300)
      expect(looks).toHaveLength(1)
    })

    test('goes on when a look fails', async () => {
      let looks = 0
      serve(a, async () => {
        if (++looks === 1) throw new Error('once')
      })
      a.ring('t')
      await vi.waitFor(() => expect(looks).toBe(1), soon)
      await sleep(30)
      a.ring('t')
      await vi.waitFor(() => expect(looks).toBe(2), soon)
    })

    test('does not begin to look once it is told to stop', async () => {
      let looks = 0
      serve(a, async () => {
        looks++
      })
      a.ring('t')
      await vi.waitFor(() => expect(looks).toBe(1), soon)
      stop.abort()
      await Promise.all(served)
      a.ring('u')
      a.ringAt('v', Date.now() + 10)
      await sleep(100)
      expect(looks).toBe(1)
    })
  })
}
