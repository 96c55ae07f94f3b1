import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Bus } from '../../src/core/store.ts'
import { Page, Stage } from '../support/stage.ts'

let threads = 0

const weights = { begin: 1, push: 12, say: 2, note: 1, end: 1, turn: 6, connect: 4, leave: 2 }
const kinds = Object.entries(weights).map(([kind, weight]) => ({
  arbitrary: fc.constant(kind as keyof typeof weights),
  weight,
}))
const steps = fc.array(
  fc.record({ do: fc.oneof(...kinds), at: fc.nat(2), of: fc.nat(2), more: fc.nat(10) }),
  { minLength: 10, maxLength: 60, size: 'max' },
)

/**
 * Whatever happens when and on which server, every page that comes, goes and comes back elsewhere
 * ends with the same text, and is never shown a text that has a gap or repeats itself.
 */
export function streamsContract(name: string, servers: () => Bus[], numRuns: number): void {
  test(`${name}: every reader, anywhere, ends with the same text and sees nothing twice (I5)`, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const buses = servers()
        const stage = new Stage(buses, `thread-${++threads}`)
        const pages = [new Page(stage), new Page(stage, true), new Page(stage, true)]
        await stage.create()
        await stage.begin(0)
        for (const { do: what, at, of, more } of list) {
          const page = pages[of]!
          if (what === 'begin') await stage.begin(at)
          else if (what === 'push') for (let n = 0; n <= more; n++) stage.push(of)
          else if (what === 'say') await stage.say(of)
          else if (what === 'note') await stage.note(at)
          else if (what === 'end') await stage.end()
          else if (what === 'turn') await pause(more / 3)
          else if (what === 'connect') page.connect(at)
          else await page.leave()
        }
        if (!stage.driver) await stage.begin(list.length % 3)
        for (const [i, page] of pages.entries()) page.connect((list.length + i) % 3)
        stage.push()
        await shown(stage, pages) // what is open, while it is
        await stage.end()
        await shown(stage, pages)
        for (const page of pages) await page.leave()
        stage.close()
      }),
      { numRuns, endOnFailure: true },
    )
  }, 120_000)
}

/** Every page shows all that was written. */
export async function shown(stage: Stage, pages: readonly Page[], timeout = 10_000): Promise<void> {
  await vi.waitFor(
    () => {
      for (const page of pages) {
        expect(page.problem).toBeUndefined()
        expect(Object.fromEntries(page.texts)).toEqual(Object.fromEntries(stage.written))
      }
    },
    { timeout, interval: 2 },
  )
}

/** A few turns of the event loop, or a moment. */
const pause = (ms: number) =>
  new Promise<void>((resolve) => {
    if (ms < 1) setImmediate(resolve)
    else setTimeout(resolve, ms)
  })
