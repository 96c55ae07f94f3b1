import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { Slots } from '../../src/core/store.ts'
import type { SlotLimits } from '../../src/queue/local/slots.ts'

export interface OpenedSlots {
  /** Two servers; on slots for a single one, the same. */
  servers: [Slots, Slots]
  dispose(): Promise<void>
}

/** What core relies on, with any number of servers. */
export function slotsContract(
  name: string,
  open: (limits: SlotLimits) => Promise<OpenedSlots>,
): void {
  describe(`${name} slots`, () => {
    let dispose = async () => {}

    async function opened(limits: SlotLimits): Promise<[Slots, Slots]> {
      const found = await open(limits)
      dispose = found.dispose
      return found.servers
    }

    afterEach(async () => {
      await dispose()
    })

    test('give as many places as there are, and one again when one is given back', async () => {
      const [a, b] = await opened({ total: 2 })
      const first = await a.take('t', 'leg1')
      expect(first).toBeDefined()
      expect(await b.take('u', 'leg2')).toBeDefined()
      expect(await a.take('t', 'leg3')).toBeUndefined()
      first!()
      first!() // means nothing
      expect(await freed(b, 't', 'leg3')).toBeDefined()
      expect(await b.take('t', 'leg4')).toBeUndefined()
    })

    test('count the legs of each tenant apart', async () => {
      const [a, b] = await opened({ total: 10, perTenant: 1 })
      expect(await a.take('t', 'leg1')).toBeDefined()
      expect(await b.take('t', 'leg2')).toBeUndefined()
      expect(await b.take('*', 'leg3')).toBeDefined()
      expect(await a.take('*', 'leg4')).toBeUndefined()
      expect(await a.take('', 'leg5')).toBeDefined()
    })

    test('give the same leg the same place', async () => {
      const [a, b] = await opened({ total: 1 })
      expect(await a.take('t', 'leg1')).toBeDefined()
      expect(await a.take('t', 'leg1')).toBeDefined()
      expect(await b.take('t', 'leg2')).toBeUndefined()
    })

    test('have no end without limits', async () => {
      const [a] = await opened({})
      for (let n = 0; n < 100; n++) expect(await a.take('t', `leg${n}`)).toBeDefined()
    })

    test('never give more, whoever asks when', async () => {
      const [a, b] = await opened({ total: 5, perTenant: 3 })
      let legs = 0
      const step = fc.record({ take: fc.boolean(), at: fc.nat(1), of: fc.nat(3) })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
          const held: { tenant: string; leave: () => void }[] = []
          for (const { take, at, of } of steps) {
            const tenant = `tenant${of}`
            if (!take) {
              held.splice(of, 1)[0]?.leave()
              continue
            }
            const mine = held.filter((one) => one.tenant === tenant).length
            const room = held.length < 5 && mine < 3
            const [slots, leg] = [at ? a : b, `leg-${++legs}`]
            const leave = await (room ? freed(slots, tenant, leg) : slots.take(tenant, leg))
            expect(leave !== undefined).toBe(room)
            if (leave) held.push({ tenant, leave })
          }
          for (const { leave } of held) leave()
        }),
        { numRuns: 30 },
      )
    })

    test('never give more to those who ask together', async () => {
      const [a, b] = await opened({ total: 7 })
      const asked = Array.from({ length: 50 }, (_, n) => (n % 2 ? a : b).take('t', `leg${n}`))
      const given = (await Promise.all(asked)).filter((leave) => leave !== undefined)
      expect(given).toHaveLength(7)
    })
  })
}

/** Nobody waits for a place to be given back: another server may hear of it a little later. */
async function freed(slots: Slots, tenant: string, leg: string) {
  const until = Date.now() + 5_000
  for (;;) {
    const leave = await slots.take(tenant, leg)
    if (leave || Date.now() > until) return leave
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
